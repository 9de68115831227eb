/** The OpenAI Chat Completions protocol. */

import type { JsonObject } from '../../lib/json.ts';
import type { ModelEntry, Protocol } from '../protocol.ts';
import { decodeRequest } from './decode-request.ts';
import { decodeStream } from './decode-stream.ts';
import { digestReply, digestStream } from './digest.ts';
import { encodeRequest } from './encode-request.ts';
import { encodeStream } from './encode-stream.ts';
import { decodeError, encodeError } from './errors.ts';
import { decodeReply, encodeReply } from './reply.ts';

/** `GET /v1/models`: `{object: "list", data: [{id, object, created, owned_by}]}`. */
function encodeModels(models: readonly ModelEntry[]): JsonObject {
  return {
    object: 'list',
    data: models.map(({ id, created, provider }) => ({
      id,
      object: 'model',
      created,
      owned_by: provider,
    })),
  };
}

/** Chat Completions, both as the client's and as the vendor's side. */
export const openaiChat = {
  name: 'openai-chat',
  upstreamPath: '/chat/completions',
  decodeRequest,
  encodeRequest,
  decodeReply,
  encodeReply,
  decodeStream,
  encodeStream,
  decodeError,
  encodeError,
  digestReply,
  digestStream,
  terminalMarks: [],
  encodeModels,
} satisfies Protocol;

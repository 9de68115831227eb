/** The codec of the OpenAI Chat Completions protocol. */

import type { JsonObject } from '../../lib/json/json.ts';
import type { Codec, ModelEntry } from '../codec.ts';
import { decodeReply } from './reply/decode-reply.ts';
import { digestReply, digestStream } from './reply/digest.ts';
import { encodeReply } from './reply/encode-reply.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';

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
  terminalPrefixes: [],
  encodeModels,
} satisfies Codec;

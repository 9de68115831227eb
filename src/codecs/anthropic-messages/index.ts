/** The codec of the Anthropic Messages protocol. */

import type { JsonObject } from '../../lib/json/json.ts';
import type { Codec, ModelEntry } from '../codec.ts';
import { decodeReply } from './reply/decode-reply.ts';
import { digestReply, digestStream } from './reply/digest.ts';
import { encodeReply } from './reply/encode-reply.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { withoutUnknownFields } from './request/known-fields.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';
import { PROTOCOL } from './wire.ts';

/** `GET /v1/models`: a single page with every model. */
function encodeModels(models: readonly ModelEntry[]): JsonObject {
  return {
    data: models.map(({ id, created, facts }) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: new Date(created * 1000).toISOString(),
      ...(facts?.context !== undefined && { max_input_tokens: facts.context }),
      ...(facts?.output !== undefined && { max_tokens: facts.output }),
    })),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}

export const anthropicMessages = {
  name: PROTOCOL,
  modelAt: { answer: ['model'], frame: ['message', 'model'] },
  upstreamPath: '/v1/messages',
  decodeRequest,
  encodeRequest,
  withoutUnknownFields,
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

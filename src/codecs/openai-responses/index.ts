/** The OpenAI Responses protocol, both sides. */

import type { JsonObject } from '../../lib/json/json.ts';
import type { Codec, ModelEntry } from '../codec.ts';
import { digestReply, digestStream, namesItem, terminalMarks } from './reply/digest.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeReply, encodeReply } from './reply/reply.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';
import { withPrevious } from './stream/previous.ts';
import { PROTOCOL } from './wire.ts';

/** `GET /v1/models` as OpenAI's list. */
function encodeModels(models: readonly ModelEntry[]): JsonObject {
  return {
    object: 'list',
    data: models.map(({ id, provider, created }) => ({
      id,
      object: 'model',
      created,
      owned_by: provider,
    })),
  };
}

export const openaiResponses = {
  name: PROTOCOL,
  upstreamPath: '/responses',
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
  terminalMarks,
  namesItem,
  withPrevious,
  encodeModels,
} satisfies Codec;

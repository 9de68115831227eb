/** The OpenAI Responses protocol, both sides. */

import type { JsonObject } from '../../lib/json.ts';
import type { ModelEntry, Protocol } from '../protocol.ts';
import { decodeRequest } from './decode-request.ts';
import { decodeStream } from './decode-stream.ts';
import { digestReply, digestStream, tellsItem, terminalMarks } from './digest.ts';
import { encodeRequest } from './encode-request.ts';
import { encodeStream } from './encode-stream.ts';
import { decodeError, encodeError } from './errors.ts';
import { withPrevious } from './previous.ts';
import { decodeReply, encodeReply } from './reply.ts';
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
  tellsItem,
  withPrevious,
  encodeModels,
} satisfies Protocol;

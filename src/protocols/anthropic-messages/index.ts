/** Anthropic Messages: the protocol as the gateway sees it. */

import type { JsonObject } from '../../lib/json.ts';
import type { ModelEntry, Protocol } from '../protocol.ts';
import { decodeRequest } from './decode-request.ts';
import { decodeStream } from './decode-stream.ts';
import { digestReply, digestStream } from './digest.ts';
import { encodeRequest } from './encode-request.ts';
import { encodeStream } from './encode-stream.ts';
import { decodeError, encodeError } from './errors.ts';
import { withoutUnknown } from './fields.ts';
import { decodeReply, encodeReply } from './reply.ts';
import { PROTOCOL } from './wire.ts';

/** `GET /v1/models`: one page that holds everything. */
function encodeModels(models: readonly ModelEntry[]): JsonObject {
  return {
    data: models.map(({ id, created }) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: new Date(created * 1000).toISOString(),
    })),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}

export const anthropicMessages = {
  name: PROTOCOL,
  upstreamPath: '/v1/messages',
  decodeRequest,
  encodeRequest,
  withoutUnknown,
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

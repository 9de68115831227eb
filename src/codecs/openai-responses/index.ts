/** The codec of the OpenAI Responses protocol. */

import { openaiModels } from '../../conversation/models/model-entry.ts';
import type { Codec } from '../codec.ts';
import { decodeReply } from './reply/decode-reply.ts';
import { carriesItemIds, digestReply, digestStream, terminalPrefixes } from './reply/digest.ts';
import { encodeReply, encodeReplyText } from './reply/encode-reply.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';
import { withPreviousResponseId } from './stream/previous-response-id.ts';
import { soundFrames } from './stream/sound-frames.ts';
import { PROTOCOL } from './wire.ts';

export const openaiResponses = {
  name: PROTOCOL,
  modelAt: { answer: ['model'], frame: ['response', 'model'] },
  upstreamPath: '/responses',
  decodeRequest,
  encodeRequest,
  decodeReply,
  encodeReply,
  encodeReplyText,
  decodeStream,
  encodeStream,
  decodeError,
  encodeError,
  digestReply,
  digestStream,
  terminalPrefixes,
  carriesItemIds,
  withPreviousResponseId,
  soundFrames,
  encodeModels: openaiModels,
} satisfies Codec;

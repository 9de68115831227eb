/** The codec of the OpenAI Chat Completions protocol. */

import { openaiModels } from '../../conversation/models/model-entry.ts';
import type { Codec } from '../codec.ts';
import { decodeReply } from './reply/decode-reply.ts';
import { digestReply, digestStream } from './reply/digest.ts';
import { encodeReply } from './reply/encode-reply.ts';
import { decodeError, encodeError } from './reply/errors.ts';
import { decodeRequest } from './request/decode-request.ts';
import { encodeRequest } from './request/encode-request.ts';
import { decodeStream } from './stream/decode-stream.ts';
import { encodeStream } from './stream/encode-stream.ts';

export const openaiChat = {
  name: 'openai-chat',
  modelAt: { answer: ['model'], frame: ['model'] },
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
  // A last chunk without choices, and `"usage":null` in the others:
  // https://developers.openai.com/api/reference/resources/chat (stream_options)
  usageIsAsked: {
    member: 'usage',
    option: ['stream_options', 'include_usage'],
    alone: 'choices',
  },
  encodeModels: openaiModels,
} satisfies Codec;

/** The table of codecs: which one speaks each protocol. */

import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import type { ProtocolName } from '../conversation/protocol-names.ts';

export const CODECS: Readonly<Record<ProtocolName, Codec>> = {
  'anthropic-messages': anthropicMessages,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

import { anthropicMessages } from '../codecs/anthropic-messages/index.ts';
import type { Codec } from '../codecs/codec.ts';
import { googleGemini } from '../codecs/google-gemini/index.ts';
import { openaiChat } from '../codecs/openai-chat/index.ts';
import { openaiResponses } from '../codecs/openai-responses/index.ts';
import type { ProtocolName } from '../conversation/types.ts';

export const CODECS: Readonly<Record<ProtocolName, Codec>> = {
  'anthropic-messages': anthropicMessages,
  'google-gemini': googleGemini,
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
};

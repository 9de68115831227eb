/** The names of the four protocols, as configuration, command line, samples and logs spell them. */

export const PROTOCOL_NAMES = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'google-gemini',
] as const;

export type ProtocolName = (typeof PROTOCOL_NAMES)[number];

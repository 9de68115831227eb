/** Repairs raw request bodies with values of the wrong type, before they are decoded. */

import type { Notes } from '../../../conversation/notes.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { repairChatBody } from './chat.ts';
import { repairGeminiBody } from './gemini.ts';
import { repairMessagesBody } from './messages.ts';
import { repairResponsesBody } from './responses.ts';

const REPAIRS: Readonly<Record<ProtocolName, (body: JsonObject) => JsonObject>> = {
  'anthropic-messages': repairMessagesBody,
  'openai-chat': repairChatBody,
  'openai-responses': repairResponsesBody,
  'google-gemini': repairGeminiBody,
};

/**
 * Repairs the history so that the protocol's decoder accepts it: ids that are no strings, content that is
 * null, blocks that are no objects or have no type. Keeps everything readable. Returns the same reference if
 * there is nothing to repair, or if the body cannot be repaired.
 */
export function repairBody(body: Json, protocol: ProtocolName, notes: Notes): Json {
  if (!isObject(body)) return body;
  const repaired = REPAIRS[protocol](body);
  if (repaired !== body) notes.add('malformed_content_mended');
  return repaired;
}

/** Raw bodies in which something has the wrong type, made readable before they are decoded. */

import type { Notes } from '../../../conversation/notes.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { repairChatBody } from './chat.ts';
import { repairMessagesBody } from './messages.ts';
import { repairResponsesBody } from './responses.ts';

const REPAIRS: Readonly<Record<ProtocolName, (body: JsonObject) => JsonObject>> = {
  'anthropic-messages': repairMessagesBody,
  'openai-chat': repairChatBody,
  'openai-responses': repairResponsesBody,
};

/**
 * The body with a history that the decoder of its protocol reads without complaint: ids that are no
 * strings, content that is null, blocks that are no objects or do not say what they are. Whatever can
 * be read is kept. The same reference where there is nothing to mend, or nothing that can be.
 */
export function repairBody(body: Json, protocol: ProtocolName, notes: Notes): Json {
  if (!isObject(body)) return body;
  const mended = REPAIRS[protocol](body);
  if (mended !== body) notes.add('malformed_content_mended');
  return mended;
}

/** Raw bodies in which something has the wrong type, made readable before they are decoded. */

import type { Notes } from '../../../conversation/notes.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { mendChatBody } from './chat.ts';
import { mendMessagesBody } from './messages.ts';
import { mendResponsesBody } from './responses.ts';

const MENDERS: Readonly<Record<ProtocolName, (body: JsonObject) => JsonObject>> = {
  'anthropic-messages': mendMessagesBody,
  'openai-chat': mendChatBody,
  'openai-responses': mendResponsesBody,
};

/**
 * The body with a history that the decoder of its protocol reads without complaint: ids that are no
 * strings, content that is null, blocks that are no objects or do not say what they are. Whatever can
 * be read is kept. The same reference where there is nothing to mend, or nothing that can be.
 */
export function repairBody(body: Json, protocol: ProtocolName, notes: Notes): Json {
  if (!isObject(body)) return body;
  const mended = MENDERS[protocol](body);
  if (mended !== body) notes.add('malformed_content_mended');
  return mended;
}

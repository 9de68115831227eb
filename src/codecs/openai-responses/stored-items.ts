/** What a store of responses needs of this protocol: bodies as items, and a conversation with earlier items in front. */

import type { Conversation } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { decodeInputItem } from './request/decode-items.ts';
import { toolsLoadedBy } from './request/decode-request.ts';
import { addLoadedTools } from './request/decode-tools.ts';
import { objects, PROTOCOL } from './wire.ts';

/** The output items of a response object, as they can stand in the input of the next request. */
export function outputItems(encodedReply: JsonObject): readonly JsonObject[] {
  return objects(encodedReply.output);
}

/** The input of a request body as items; a string is the user's message. */
export function inputItems(body: JsonObject): readonly JsonObject[] {
  return typeof body.input === 'string'
    ? [{ type: 'message', role: 'user', content: body.input }]
    : objects(body.input);
}

/**
 * The conversation with earlier items in front: how `previous_response_id` is expanded for an
 * upstream that does not keep responses.
 *
 * `settings.previousResponseId` stays, so that the reply names it. The origin becomes the expanded
 * body (all items, no `previous_response_id`) with the expanded parts: an encoder finds the settings
 * unchanged against it and sends that body, in which the id does not occur. The result is another
 * conversation than the one the client's bytes stand for, so those bytes must not be forwarded.
 * @throws GatewayError invalid_request when an item cannot be read
 */
export function prependItems(
  conversation: Conversation,
  items: readonly JsonObject[],
): Conversation {
  const earlier = items.map((item, i) => decodeInputItem(item, `input[${i}]`));
  const tools = addLoadedTools(conversation.tools, toolsLoadedBy(earlier));
  const origin = conversation.origin;
  if (origin?.protocol !== PROTOCOL) {
    return { ...conversation, turns: [...earlier, ...conversation.turns], tools };
  }
  const { previous_response_id: _, ...value } = origin.value;
  const { parts } = origin;
  const untouched = conversation.turns === parts.turns;
  // A string becomes an item among the others; as such it has a wire of its own.
  const own =
    untouched && typeof value.input === 'string'
      ? inputItems(value).map((item) => decodeInputItem(item, 'input'))
      : conversation.turns;
  const turns = [...earlier, ...own];
  return {
    ...conversation,
    turns,
    tools,
    origin: {
      protocol: PROTOCOL,
      value: { ...value, input: [...items, ...inputItems(value)] },
      parts: {
        ...parts,
        turns: untouched ? turns : [...earlier, ...parts.turns],
        tools: conversation.tools === parts.tools ? tools : parts.tools,
      },
    },
  };
}

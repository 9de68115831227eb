/** Items of bodies for a response store, and conversations with earlier items prepended. */

import type { Conversation } from '../../conversation/types.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { decodeInputItem } from './request/decode-items.ts';
import { toolsLoadedBy } from './request/decode-request.ts';
import { addLoadedTools } from './request/decode-tools.ts';
import { objects, PROTOCOL } from './wire.ts';

/** The output items of a response object, in the form of input items of the next request. */
export function outputItems(encodedReply: JsonObject): readonly JsonObject[] {
  return objects(encodedReply.output);
}

/** The input of a request body as items; a string becomes a user message. */
export function inputItems(body: JsonObject): readonly JsonObject[] {
  return typeof body.input === 'string'
    ? [{ type: 'message', role: 'user', content: body.input }]
    : objects(body.input);
}

/**
 * The conversation with earlier items prepended: expands `previous_response_id` for an upstream that does not
 * store responses.
 *
 * `settings.previousResponseId` stays, so that the reply names it. The origin becomes the expanded body (all
 * items, no `previous_response_id`) with the expanded parts, so an encoder finds the settings unchanged and
 * sends that body without the id. The client's bytes no longer match the result and must not be forwarded.
 * @throws GatewayError invalid_request if an item cannot be read
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
  // A string becomes an item like the others, with its own wire.
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

/** Reads bodies that are not of their protocol's form: damaged histories, and at Chat Completions requests of Responses or tools of another API. */

import { openaiChat } from '../../codecs/openai-chat/index.ts';
import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import type { Notes } from '../../conversation/notes.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import type { Target } from '../../conversation/target.ts';
import { hasForeignTools, withChatTools } from '../../conversation/tools/chat-form.ts';
import { repairBody } from '../../features/tool-pairing/index.ts';
import type { RepairBody } from '../../gateway/client-request.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { object } from '../../lib/json/typed-reads.ts';

/** Repairs a body so that its decoder accepts it; returns the same reference if it cannot. */
export const mendBody: RepairBody = (body, protocol, notes) => {
  const own = protocol === 'openai-chat' ? chatBody(body, notes) : body;
  if (own === body) return repairBody(body, protocol, notes);
  // Its history may be damaged as well.
  try {
    openaiChat.decodeRequest(own);
    return own;
  } catch {
    return repairBody(own, protocol, notes);
  }
};

/**
 * Cursor sends the body of Responses to `/chat/completions`, or freeform tools in the form of Responses among those of
 * Chat, and expects the answers of Chat (forum.cursor.com/t/153019, forum.cursor.com/t/159298).
 */
function chatBody(body: Json, notes: Notes): Json {
  if (!isObject(body)) return body;
  const flat = flatFreeform(body.tools);
  const asResponses = body.messages === undefined && body.input !== undefined;
  const foreign = !asResponses && hasForeignTools(body);
  if (!asResponses && flat.length === 0 && !foreign) return body;
  const names = new Set(flat.map((tool) => String(tool.name)));
  const chat: { [name: string]: Json | undefined } = asResponses
    ? fromResponses(body, names, notes)
    : withChatTools(body, (member) => notes.add('parameter_mapped', member, 'the form of Chat'));
  const messages = chat.messages;
  if (Array.isArray(messages)) chat.messages = messages.map((one) => withFreeform(one, names));
  if (flat.length > 0) {
    // The name beside `custom` says in which form the client knows its calls.
    const own = flat.map(({ type, ...custom }) => ({ type: type!, name: custom.name!, custom }));
    const others = Array.isArray(chat.tools) ? chat.tools.filter((tool) => !isFlat(tool)) : [];
    chat.tools = [...others, ...own];
    if (!asResponses) notes.add('responses_form_read', 'tools', 'freeform tools of Responses');
  }
  return chat;
}

const isFlat = (tool: Json): tool is JsonObject =>
  isObject(tool) &&
  tool.type === 'custom' &&
  tool.custom === undefined &&
  // Anthropic's functions may have this type.
  tool.input_schema === undefined &&
  typeof tool.name === 'string' &&
  tool.name !== '';

const flatFreeform = (tools: Json | undefined): readonly JsonObject[] =>
  Array.isArray(tools) ? tools.filter(isFlat) : [];

const CHAT: Target = {
  provider: '',
  model: '',
  protocol: openaiChat.name,
  profile: { ...NO_PROFILE, fileIds: true },
};

/** The request in the words of Chat; calls of freeform tools are those of functions until {@link withFreeform}. */
function fromResponses(
  body: JsonObject,
  freeform: ReadonlySet<string>,
  notes: Notes,
): { [name: string]: Json } {
  const { stream_options: options, ...rest } = body;
  const tools = Array.isArray(body.tools) ? body.tools.filter((tool) => !isFlat(tool)) : undefined;
  const choice = object(body.tool_choice);
  const input = Array.isArray(body.input) ? body.input.map(functionItem) : body.input!;
  const chosen =
    choice?.type === 'custom' && freeform.has(String(choice.name))
      ? { tool_choice: undefined }
      : {};
  const conversation = openaiResponses.decodeRequest(
    Object.fromEntries(
      Object.entries({ ...rest, ...chosen, input, tools }).filter(
        ([, value]) => value !== undefined,
      ),
    ) as JsonObject,
  );
  notes.add('responses_form_read', 'input', 'the body of Responses at Chat Completions');
  const chat: { [name: string]: Json } = {
    ...openaiChat.encodeRequest(conversation, CHAT, notes),
    model: body.model ?? '',
  };
  if (choice !== undefined && 'tool_choice' in chosen) {
    chat.tool_choice = { type: 'custom', custom: { name: choice.name! } };
  }
  // Cursor asks for usage in the way of Chat.
  delete chat.stream_options;
  if (isObject(options) && options.include_usage !== undefined) {
    chat.stream_options = { include_usage: options.include_usage };
  }
  if (body.stream !== undefined) chat.stream = body.stream;
  return chat;
}

/** A freeform call or its result as one of a function, whose arguments are the text. */
function functionItem(item: Json): Json {
  if (!isObject(item)) return item;
  if (item.type === 'custom_tool_call') {
    const { input, ...rest } = item;
    return { ...rest, type: 'function_call', arguments: input ?? '' };
  }
  return item.type === 'custom_tool_call_output' ? { ...item, type: 'function_call_output' } : item;
}

/** The message with calls of these functions as freeform calls. */
function withFreeform(message: Json, names: ReadonlySet<string>): Json {
  if (names.size === 0 || !isObject(message) || !Array.isArray(message.tool_calls)) return message;
  const calls = message.tool_calls.map((call): Json => {
    const called = isObject(call) ? object(call.function) : undefined;
    if (!isObject(call) || called === undefined || !names.has(String(called.name))) return call;
    const { function: _, ...rest } = call;
    const custom = { name: called.name!, input: called.arguments ?? '' };
    return { ...rest, type: 'custom', custom };
  });
  return { ...message, tool_calls: calls };
}

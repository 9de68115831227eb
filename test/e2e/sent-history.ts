/** The history that an upstream received, message by message, in one shape for the three protocols. */

import type { Json, JsonObject } from '../../src/lib/json/json.ts';
import type { FakeProtocol, Protocol } from '../support/fake-upstream/index.ts';

/** One message; calls and results carry the ids that link them. */
export type Sent =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly calls: readonly {
        readonly id: string;
        readonly name: string;
        readonly input: Json;
      }[];
    }
  | { readonly role: 'tool'; readonly id: string; readonly text: string };

const list = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? (value as JsonObject[]) : [];
const parsed = (value: Json | undefined): Json => JSON.parse(String(value)) as Json;

function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => (typeof part.text === 'string' ? part.text : ''))
    .join('');
}

/** The history of a request's body without system prompts; messages that are separate on the wire stay separate. */
export function sentHistory(spoken: FakeProtocol, body: JsonObject): readonly Sent[] {
  const protocol = spoken as Protocol;
  switch (protocol) {
    case 'openai-chat':
      return list(body.messages).flatMap(fromChat);
    case 'anthropic-messages':
      return list(body.messages).flatMap(fromMessages);
    case 'openai-responses':
      return fromItems(list(body.input));
  }
}

function fromChat(message: JsonObject): readonly Sent[] {
  const text = textOf(message.content);
  if (message.role === 'tool') return [{ role: 'tool', id: String(message.tool_call_id), text }];
  if (message.role === 'user') return [{ role: 'user', text }];
  if (message.role !== 'assistant') return [];
  const calls = list(message.tool_calls).map((call) => {
    const { name, arguments: input } = call.function as JsonObject;
    return { id: String(call.id), name: String(name), input: parsed(input) };
  });
  return [{ role: 'assistant', text, calls }];
}

function fromMessages(message: JsonObject): readonly Sent[] {
  const blocks = list(message.content);
  const text = textOf(message.content);
  if (message.role === 'assistant') {
    const calls = blocks
      .filter((block) => block.type === 'tool_use')
      .map(({ id, name, input }) => ({ id: String(id), name: String(name), input: input ?? null }));
    return [{ role: 'assistant', text, calls }];
  }
  const results = blocks
    .filter((block) => block.type === 'tool_result')
    .map(
      (block): Sent => ({
        role: 'tool',
        id: String(block.tool_use_id),
        text: textOf(block.content),
      }),
    );
  return text === '' ? results : [...results, { role: 'user', text }];
}

/** Adjacent items of one answer are one message. */
function fromItems(items: readonly JsonObject[]): readonly Sent[] {
  const out: Sent[] = [];
  let last: { text: string; calls: { id: string; name: string; input: Json }[] } | undefined;
  const assistant = () => {
    if (last === undefined) {
      last = { text: '', calls: [] };
      out.push({ role: 'assistant', ...last });
      // The same object, so that later items are added to it.
      last = out.at(-1) as unknown as typeof last;
    }
    return last!;
  };
  for (const item of items) {
    if (item.type === 'function_call') {
      const { call_id: id, name, arguments: input } = item;
      assistant().calls.push({ id: String(id), name: String(name), input: parsed(input) });
    } else if (item.type === 'function_call_output') {
      last = undefined;
      out.push({ role: 'tool', id: String(item.call_id), text: textOf(item.output) });
    } else if (item.role === 'assistant') assistant().text += textOf(item.content);
    else if (item.role === 'user') {
      last = undefined;
      out.push({ role: 'user', text: textOf(item.content) });
    }
  }
  return out;
}

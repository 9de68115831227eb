/** What the Messages API would refuse of an encoded request, by the fake vendor, and what it may not hold besides. */

import { isObject, type JsonObject } from '../../../src/lib/json/json.ts';
import { objects } from '../../../src/lib/json/typed-reads.ts';
import { checkMessages } from '../../support/fake-upstream/check-messages.ts';
import { Refusal } from '../../support/fake-upstream/refusal.ts';

const TYPES: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'document', 'tool_result'],
  assistant: ['text', 'tool_use', 'thinking', 'redacted_thinking'],
  system: ['text'],
};

/** None where it is sound, but for what tool pairing repairs. */
export function faults(request: JsonObject): readonly string[] {
  // JSON drops undefined members.
  const body = JSON.parse(JSON.stringify(request)) as JsonObject;
  try {
    checkMessages(body, {}, { anySeal: true, anyOrder: true, firstUser: true });
  } catch (thrown) {
    if (thrown instanceof Refusal) return [thrown.message];
    throw thrown;
  }
  const messages = objects(body.messages);
  return [
    ...messages.flatMap((message, i) => faultsOf(message, messages[i - 1], `messages.${i}`)),
    ...(isObject(body.thinking) && body.thinking.type !== 'disabled' && Number(body.top_p) < 0.95
      ? ['top_p: thinking']
      : []),
  ];
}

function faultsOf(
  { role, content }: JsonObject,
  before: JsonObject | undefined,
  at: string,
): readonly string[] {
  const blocks = objects(content);
  const types = blocks.map(({ type }) => String(type));
  const lead = types.findIndex((type) => type !== 'tool_result');
  const last = types.lastIndexOf('tool_use');
  const found = {
    'two in a row': role !== 'system' && role === before?.role,
    'a block of another role': types.some((type) => !TYPES[String(role)]?.includes(type)),
    'no signature': blocks.some(({ type, signature }) => type === 'thinking' && !signature),
    'no link': blocks.some(
      ({ source }) =>
        isObject(source) && source.type === 'url' && !String(source.url).startsWith('http'),
    ),
    'results do not lead': lead >= 0 && types.slice(lead).includes('tool_result'),
    'something behind the last call': last >= 0 && last !== types.length - 1,
  };
  return Object.entries(found).flatMap(([what, is]) => (is ? [`${at}: ${what}`] : []));
}

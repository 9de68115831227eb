/** In a stream of Responses, what comes before a call that is written anew has left as the vendor's bytes: no item comes twice. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import type { Part } from '../support/fake-upstream/answer.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startInProcess({
    profiles: { functions: { toolTypes: ['function'] } },
    providers: {
      vendor: {
        protocol: 'openai-responses',
        base_url: upstream.baseUrl('openai-responses'),
        profile: 'functions',
        keys: ['k'],
        models: ['m'],
      },
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});
beforeEach(() => upstream.clear());

const TOOLS = [
  { type: 'function', name: 'read', parameters: { type: 'object' }, strict: false },
  { type: 'custom', name: 'patch' },
];
const text: Part = { kind: 'text', text: 'Let me see.' };
const read = (id: string): Part => ({ kind: 'call', name: 'read', arguments: '{"a":1}', id });
const patch = (id: string): Part => ({
  kind: 'call',
  name: 'patch',
  arguments: '{"input":"x"}',
  id,
});

test.each<[string, Part[], string[]]>([
  ['a text', [text, patch('c1')], ['message', 'custom_tool_call']],
  ['a call', [read('c1'), patch('c2')], ['function_call', 'custom_tool_call']],
  [
    'a text and a call, and a call behind it',
    [text, read('c1'), patch('c2'), read('c3')],
    ['message', 'function_call', 'custom_tool_call', 'function_call'],
  ],
  [
    'thoughts and a text',
    [{ kind: 'reasoning', text: 'Hm.' }, text, patch('c1')],
    ['reasoning', 'message', 'custom_tool_call'],
  ],
  ['two of its kind', [patch('c1'), patch('c2')], ['custom_tool_call', 'custom_tool_call']],
  ['nothing else', [text, read('c1')], ['message', 'function_call']],
])('behind %s', async (_, parts, types) => {
  upstream.enqueue({ parts });
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    body: JSON.stringify({ model: 'm', stream: true, input: 'x', tools: TOOLS }),
  });
  const events = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject);
  const itemsOf = (type: string) =>
    events.filter((event) => event.type === type).map(({ item }) => item as JsonObject);
  const added = itemsOf('response.output_item.added');
  const done = itemsOf('response.output_item.done');
  expect(done.map(({ type }) => type as string)).toEqual(types);
  expect(done.map(({ id }) => id)).toEqual(added.map(({ id }) => id));
  const numbers = events.map(({ sequence_number: number }) => Number(number));
  expect(numbers).toEqual(numbers.map((_number, at) => at));
  const { output } = events.at(-1)!.response as { output: readonly JsonObject[] };
  expect(output.map(({ type }) => type as string)).toEqual(types);
});

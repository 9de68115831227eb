/** A text or an input of a call that is longer than a vendor takes would end its session: it is cut on the next try. */

import { describe, expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const MOST = 5000;
const refuse = (place: string, length: number): Scripted => ({
  status: 400,
  json: {
    error: {
      message: `Invalid '${place}': string too long. Expected a string with maximum length ${MOST}, but got a string with length ${length} instead.`,
      type: 'invalid_request_error',
      param: place,
      code: 'string_above_max_length',
    },
  },
});
const fine: Scripted = {
  json: {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'fine', annotations: [] }],
      },
    ],
  },
};

interface Item {
  readonly type?: string;
  readonly arguments?: string;
  readonly input?: string;
  readonly output?: string;
  readonly content?: string;
}

async function sentAfter(refusal: Scripted, input: readonly object[]) {
  const gateway = scriptedGateway('openai-responses', [refusal, fine], [refusalRetry()]);
  const { status } = await gateway.ask('openai-responses', { model: 'm', input });
  const notes = gateway.summaries[0]?.notes.map(({ name }) => name);
  return { status, notes, items: (gateway.sent[1] as { input: Item[] } | undefined)?.input ?? [] };
}

const call = (args: string) => ({
  type: 'function_call',
  call_id: 'call_1',
  name: 'write',
  arguments: args,
});
const output = (text: string) => ({
  type: 'function_call_output',
  call_id: 'call_1',
  output: text,
});
const user = { role: 'user', content: 'go on' };
const BEFORE = { role: 'assistant', content: 'Yes?' };

describe('what is too long for a vendor', () => {
  test('arguments become an object that says how long they were: they stay JSON', async () => {
    const long = JSON.stringify({ text: 'x'.repeat(MOST) });
    const { status, notes, items } = await sentAfter(refuse('input[0].arguments', long.length), [
      call(long),
      output('written'),
      user,
    ]);
    expect(status).toBe(200);
    expect(notes).toContain('stripped_after_refusal');
    expect(JSON.parse(items[0]!.arguments!)).toEqual({
      cut: `${long.length} characters, the vendor takes ${MOST}`,
    });
    expect(items[1]).toEqual(output('written'));
  });

  test('a free input keeps its beginning', async () => {
    const long = '*** Begin Patch\n'.padEnd(2 * MOST, '+');
    const { items } = await sentAfter(refuse('input[0].input', long.length), [
      { type: 'custom_tool_call', call_id: 'call_1', name: 'apply_patch', input: long },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: 'done' },
      user,
    ]);
    expect(items[0]!.input!.length).toBeLessThanOrEqual(MOST);
    expect(items[0]!.input).toStartWith('*** Begin Patch\n+++');
    expect(items[0]!.input).toEndWith(`[cut: ${long.length} characters, the vendor takes ${MOST}]`);
  });

  test.each([
    ['an output', 'input[1].output', [call('{}'), output('y'.repeat(2 * MOST)), user], 1],
    ['a message', 'input[1].content', [BEFORE, { role: 'user', content: 'z'.repeat(2 * MOST) }], 1],
    // No half of an emoji is left at the cut.
    [
      'an emoji',
      'input[1].content',
      [BEFORE, { role: 'user', content: '\u{1f600}'.repeat(MOST) }],
      1,
    ],
  ] as const)('%s keeps its beginning', async (_, place, input, at) => {
    const { status, items } = await sentAfter(refuse(place, 2 * MOST), input);
    expect(status).toBe(200);
    const text = items[at]!.output ?? items[at]!.content!;
    expect(text.length).toBeLessThanOrEqual(MOST);
    expect(text.isWellFormed()).toBe(true);
    expect(text).toContain('[cut: ');
  });

  test('a question that comes alone gets the vendor’s error, and is not cut', async () => {
    const input = [{ role: 'user', content: 'z'.repeat(2 * MOST) }];
    const { status, items } = await sentAfter(refuse('input[0].content', 2 * MOST), input);
    expect(status).toBe(400);
    expect(items).toEqual([]);
  });

  test('what is not longer stays as it is', async () => {
    const long = JSON.stringify({ text: 'x'.repeat(MOST) });
    const short = JSON.stringify({ text: 'x'.repeat(MOST - 100) });
    const { items } = await sentAfter(refuse('input[0].arguments', long.length), [
      call(long),
      output('1'),
      { ...call(short), call_id: 'call_2' },
      { ...output('2'), call_id: 'call_2' },
      user,
    ]);
    expect(items[2]!.arguments).toBe(short);
  });
});

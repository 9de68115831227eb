/** Tool events as an app reads them: calls and results in order, in frames that official clients skip. */

import { describe, expect, test } from 'bun:test';
import { LINT } from '../../../src/app/linters.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../../src/lib/json/json.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { readBySdk } from '../server-tools/sdk.ts';
import { ALL, asking, chat, vendor } from './chat.ts';
import { testMemory } from './memory.ts';

const hopgate = (events: boolean) => ({
  conversation: { mode: 'group', self: { id: 'a', name: 'A' }, others: 'B: hi', mentions: [] },
  memory: { space: 's', recall: 'always' },
  ...(events ? { tool_events: true } : {}),
});

const framesOf = (text: string) => {
  const parser = new SseParser();
  return [...parser.push(Buffer.from(text)), ...parser.end()];
};

/** The `hopgate` objects of a stream's frames, in order. */
const eventsIn = (text: string): readonly JsonObject[] =>
  framesOf(text).flatMap(({ data }) => {
    const value = data === undefined ? undefined : tryParse(data);
    return isObject(value) && isObject(value.hopgate) ? [value.hopgate] : [];
  });

function violations(client: ProtocolName, text: string) {
  const linter = LINT.linters[client].stream();
  return [...framesOf(text).flatMap((frame) => linter.push(frame)), ...linter.end()];
}

const turn = (client: ProtocolName, upstream: ProtocolName, events: boolean, stream = true) =>
  chat({
    client,
    upstream,
    body: asking(client, ['聚会是什么时候'], { stream }),
    hopgate: hopgate(events),
    memory: testMemory({ s: ['聚会在三月', '蛋糕很甜'] }),
    script: [
      vendor(
        upstream,
        [
          { text: '让我想想。' },
          { call: 'recall_memory', args: { query: '蛋糕' } },
          { call: 'is_mentioned', args: {} },
        ],
        { stream },
      ),
      vendor(upstream, [{ call: 'recall_memory', args: {} }], { stream }),
      vendor(upstream, [{ text: '三月，蛋糕很甜。' }], { stream }),
    ],
  });

const EXPECTED = [
  ['tool_call', 'get_other_members_messages', {}],
  ['tool_result', 'get_other_members_messages', 'B: hi'],
  ['tool_call', 'is_mentioned', {}],
  ['tool_result', 'is_mentioned', '未被提及，可自行判断'],
  ['tool_call', 'recall_memory', { query: '聚会是什么时候' }],
  ['tool_result', 'recall_memory', { events: [expect.objectContaining({ text: '聚会在三月' })] }],
  ['tool_call', 'recall_memory', { query: '蛋糕' }],
  ['tool_result', 'recall_memory', { events: [expect.objectContaining({ text: '蛋糕很甜' })] }],
  ['tool_call', 'is_mentioned', {}],
  ['tool_result', 'is_mentioned', '未被提及，可自行判断'],
  ['tool_call', 'recall_memory', {}],
  ['tool_result', 'recall_memory', expect.objectContaining({ ok: false, events: [] })],
];

function expectEvents(events: readonly JsonObject[]): void {
  expect(events.map(({ event, name, arguments: a, result }) => [event, name, a ?? result])).toEqual(
    EXPECTED as never,
  );
  for (let at = 0; at < events.length; at += 2) {
    const [call, result] = [events[at]!, events[at + 1]!];
    expect(typeof call.id === 'string' && call.id === result.id).toBe(true);
    expect(result.duration_ms).toBeGreaterThanOrEqual(0);
    expect(call).not.toHaveProperty('duration_ms');
  }
  expect(events.at(-1)!.failed).toBe(true);
}

for (const client of ALL) {
  for (const upstream of ALL) {
    describe(`${client} → ${upstream}`, () => {
      test('events come on request and in order, and the official client reads the stream as before', async () => {
        const [shown, hidden] = [
          await turn(client, upstream, true),
          await turn(client, upstream, false),
        ];
        expectEvents(eventsIn(shown.text));
        expect(violations(client, shown.text)).toEqual([]);
        const response = await readBySdk(client, shown.text);
        expect(response.text.replace(/\s+/g, '')).toBe('让我想想。三月，蛋糕很甜。');
        expect(response.calls).toEqual([]);
        expect(hidden.text).not.toContain('hopgate');
        expect(hidden.text).not.toContain('recall_memory');
        expect(violations(client, hidden.text)).toEqual([]);
        expect((await readBySdk(client, hidden.text)).text).toBe(response.text);
        // The first events arrive before the first text.
        expect(shown.text.indexOf('get_other_members')).toBeLessThan(shown.text.indexOf('让我'));
        expect(shown.text.indexOf('让我')).toBeLessThan(shown.text.indexOf('"蛋糕"'));
      });

      test('a whole answer contains them in a separate field', async () => {
        const shown = await turn(client, upstream, true, false);
        const body = JSON.parse(shown.text) as { hopgate: { tool_events: JsonObject[] } };
        expectEvents(body.hopgate.tool_events);
        const hidden = await turn(client, upstream, false, false);
        expect(hidden.text).not.toMatch(/hopgate|recall_memory/);
      });
    });
  }
}

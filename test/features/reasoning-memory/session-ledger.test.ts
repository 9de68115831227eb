/** The session ledger: what it stores, for how long, and that it leaves the stream unchanged. */

import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import {
  answerCollector,
  type CollectedAnswer,
} from '../../../src/features/reasoning-memory/answer-collector.ts';
import {
  ANSWERS,
  type LedgerEntry,
} from '../../../src/features/reasoning-memory/session-ledger.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { fileRoom, memoryRoom } from '../../support/entries.ts';
import { until } from '../../support/until.ts';
import { type ChatMessage, call, chatReply, DEEPSEEK, Session } from './scripts.ts';

const dirs: string[] = [];
function place(): string {
  const dir = mkdtempSync(join(tmpdir(), 'session-ledger-'));
  dirs.push(dir);
  return join(dir, 'state', 'session.db');
}
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

const entry = (id: string, text = 'thought'): LedgerEntry => ({
  id,
  provider: 'p',
  protocol: 'openai-chat',
  model: 'm',
  pieces: [{ type: 'reasoning', block: { type: 'reasoning', text } }],
});

const open = (path: string, options: Parameters<typeof fileRoom>[2] = {}) => {
  const { it, close } = fileRoom(ANSWERS, path, options);
  return {
    it,
    close,
    find: (keys: readonly string[]) => it.find(keys),
    put: (keys: readonly string[], of: LedgerEntry) => it.put(keys, of),
  };
};

const A = 'call_00_4f9a1c7be2d84b55a1';

describe('the file', () => {
  test('a session continues after a restart, and only the owner can read the file', async () => {
    const path = place();
    const before = open(path);
    const session = new Session(before.it);
    await session.ask(DEEPSEEK, chatReply({ reasoning_content: 'hm', tool_calls: [call(A)] }));
    before.close();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const after = open(path);
    const again = new Session(after.it);
    again.messages.splice(0, 1, ...session.messages);
    const sent = await again.ask(DEEPSEEK, chatReply({ content: 'done' }));
    expect((sent.messages as unknown as ChatMessage[])[1]?.reasoning_content).toBe('hm');
    after.close();
  });

  test('another process finds an answer without a restart', async () => {
    const path = place();
    const one = open(path, { file: { flushAfterMs: 1 } });
    const two = open(path);
    expect(two.it.empty).toBe(true);
    expect(two.find(['k'])).toBeUndefined();
    one.put(['k'], entry('e'));
    await until(() => !two.it.empty && two.find(['other', 'k']) !== undefined);
    expect(two.find(['other', 'k'])).toEqual(entry('e'));
    one.close();
    two.close();
  });

  test('the first entry of a key stays, across restarts too', () => {
    const path = place();
    const one = open(path);
    one.put(['k'], entry('e', 'first'));
    one.put(['k', 'free'], entry('f', 'second'));
    expect(one.find(['k'])).toEqual(entry('e', 'first'));
    one.close();
    const two = open(path);
    two.put(['k'], entry('g', 'third'));
    expect(two.find(['k'])).toEqual(entry('e', 'first'));
    expect(two.find(['free'])).toEqual(entry('f', 'second'));
    two.close();
  });

  test('the file is bounded: the least recently used answers go first', () => {
    const path = place();
    const one = open(path, { file: { entries: 3 } });
    for (let i = 0; i < 10; i++) one.put([`k${i}`], entry(`e${i}`));
    one.close();
    const two = open(path);
    const left = Array.from({ length: 10 }, (_, i) => two.find([`k${i}`])?.id);
    expect(left.filter((id) => id !== undefined)).toEqual(['e7', 'e8', 'e9']);
    two.close();
  });

  test('an unusable file causes a warning and no failed answer', () => {
    const path = place();
    open(path).close();
    writeFileSync(path, 'no database at all, whatever its name says'.repeat(100));
    for (const suffix of ['-wal', '-shm']) {
      if (existsSync(path + suffix)) rmSync(path + suffix);
    }
    const reported: string[] = [];
    const ledger = open(path, { warn: (message) => reported.push(message) });
    ledger.put(['k'], entry('e'));
    expect(ledger.find(['k'])).toEqual(entry('e'));
    expect(reported).toHaveLength(1);
    ledger.close();
  });
});

describe('the memory', () => {
  test('memory is bounded by answers and characters, and recently used answers stay', () => {
    const few = memoryRoom(ANSWERS, { entries: 2 });
    few.put(['a'], entry('a'));
    few.put(['b'], entry('b'));
    few.find(['a']);
    few.put(['c'], entry('c'));
    expect([few.find(['a']), few.find(['b']), few.find(['c'])].map((e) => e?.id)).toEqual([
      'a',
      undefined,
      'c',
    ]);
    const small = memoryRoom(ANSWERS, { bytes: 100 });
    small.put(['a'], entry('a', 'x'.repeat(60)));
    small.put(['b'], entry('b', 'x'.repeat(60)));
    small.put(['huge'], entry('huge', 'x'.repeat(101)));
    expect(small.find(['a'])).toBeUndefined();
    expect(small.find(['huge'])).toBeUndefined();
    expect(small.find(['b'])?.id).toBe('b');
  });
});

describe('the stream', () => {
  const block = (
    index: number,
    head: Extract<StreamEvent, { type: 'block-start' }>['head'],
    ...texts: string[]
  ): StreamEvent[] => [
    { type: 'block-start', index, head },
    ...texts.map((text): StreamEvent => ({ type: 'delta', index, text })),
    { type: 'block-stop', index },
  ];
  const tool = {
    type: 'tool-call',
    id: 'a',
    name: 'read',
    kind: 'function',
    by: 'client',
  } as const;

  function hear(events: readonly StreamEvent[]): CollectedAnswer | undefined {
    let reply: CollectedAnswer | undefined;
    const interceptor = answerCollector((all) => {
      reply = all;
    });
    for (const event of events) expect(interceptor.event(event)).toBe(event);
    expect(interceptor.end()).toEqual([]);
    return reply;
  }

  test('events pass as the same objects, and their order is stored', () => {
    const sealed = { protocol: 'anthropic-messages', kind: 'signature', value: 's' } as const;
    const events: StreamEvent[] = [
      { type: 'start', id: 'x', model: 'm' },
      { type: 'block-start', index: 0, head: { type: 'reasoning' } },
      { type: 'delta', index: 0, text: 'th' },
      { type: 'delta', index: 0, text: 'ought' },
      { type: 'sealed', index: 0, sealed },
      { type: 'block-stop', index: 0 },
      ...block(1, { type: 'text' }, 'sa', 'id'),
      ...block(2, tool, '{}'),
      { type: 'finish', reason: 'tool-calls' },
      { type: 'end' },
    ];
    expect(hear(events)).toEqual({
      pieces: [
        { type: 'reasoning', block: { type: 'reasoning', text: 'thought', sealed } },
        { type: 'text' },
        { type: 'call', id: 'a' },
      ],
      text: 'said',
    });
  });

  test('an answer without reasoning or seals stores nothing', () => {
    expect(hear([...block(0, { type: 'text' }, 'hi'), ...block(1, tool, '{}')])).toBeUndefined();
    expect(hear([...block(0, { type: 'reasoning' }, ' ')])).toBeUndefined();
  });
});

test('bodies without stored reasoning go out unchanged', async () => {
  const session = new Session();
  session.messages.push(
    { role: 'assistant', content: 'ok', reasoning_content: 'own', tool_calls: [call(A)] },
    { role: 'tool', tool_call_id: A, content: 'x' },
  );
  const requests = structuredClone(session.messages) as unknown as JsonObject[];
  const sent = await session.ask(DEEPSEEK, chatReply({ content: 'done' }));
  expect(sent.messages).toEqual(requests);
});

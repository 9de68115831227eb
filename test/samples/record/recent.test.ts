/** The last exchanges in memory: bounds in count, bytes and rate, masking, routes, spaces, and nothing on disk. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { Recorder, type RecorderOptions } from '../../../src/samples/record/recorder.ts';
import type { Recording } from '../../../src/samples/recording.ts';
import type { SampleRow } from '../../../src/samples/sample.ts';
import {
  type Begun,
  exchange,
  JSON_TYPE,
  play,
  SSE_TYPE,
  scratch,
  TARGET,
  told,
} from './support.ts';

const KEY = 'sk-live-0123456789abcdefghijklmnop';
const MANY = { perSecond: 10_000 };
const SENT = {
  target: TARGET,
  model: 'glm-4.7',
  url: 'https://up.test/v1/chat/completions',
  headers: new Headers(),
};

let disk: ReturnType<typeof scratch>;
let recorder: Recorder | undefined;
beforeEach(() => {
  disk = scratch();
});
afterEach(async () => {
  await recorder?.close();
  recorder = undefined;
  disk.remove();
});

const open = (more: Partial<RecorderOptions> = {}): Recorder => {
  recorder = new Recorder({ root: disk.root, mode: 'off', recent: MANY, ...more });
  return recorder;
};

/** One exchange from beginning to end; its id, or undefined where nothing listened. */
function whole(begun: Begun = {}, answer = '{"choices":[]}', outcome = {}): string | undefined {
  const given = exchange(begun);
  const recording = recorder!.begin(given);
  if (recording === undefined) return undefined;
  finish(recording, answer, outcome);
  return given.id;
}

function finish(recording: Recording, answer: string, outcome = {}): void {
  play(recording, { answer: [answer] });
  recording.clientStart(200, JSON_TYPE);
  recording.clientChunk(answer);
  recording.end(told(outcome));
}

const ids = () => recorder!.recent!.rows().map(({ id }) => id);
const text = (id: string, stage: string) =>
  Buffer.from(recorder!.recent!.find(id)?.body(stage) ?? []).toString();

describe('the last exchanges', () => {
  test('are there with recording off, newest first, and nothing of them is on disk', async () => {
    open();
    const first = whole()!;
    const second = whole({ body: '{"model":"m","messages":[]}' })!;
    expect(ids()).toEqual([second, first]);
    await recorder!.recent!.read(second);
    expect(text(second, 'client-request')).toBe('{"model":"m","messages":[]}');
    expect(text(second, 'client-response')).toBe('{"choices":[]}');
    expect(recorder!.recent!.find(second)!.meta).toMatchObject({
      id: second,
      state: 'done',
      target: 'glm/glm-4.7',
      status: 200,
    });
    expect(recorder!.recent!.rows()[0]).toMatchObject({ id: second, in_memory: true, status: 200 });
    await recorder!.flush();
    expect(disk.files()).toEqual([]);
  });

  test('in mode errors a success stays in memory and a failure goes to disk', async () => {
    open({ mode: 'errors' });
    const fine = whole()!;
    const failed = whole({}, '{}', { status: 500 })!;
    await recorder!.flush();
    expect(ids()).toEqual([fine]);
    expect(disk.files().some((file) => file.includes(failed))).toBe(true);
    expect(disk.files().some((file) => file.includes(fine))).toBe(false);
    expect(recorder!.counters().held).toBe(0);
    await recorder!.recent!.read(fine);
    expect(text(fine, 'provider-response')).toBe('{"choices":[]}');
  });

  test('are bounded in number; the oldest go first', () => {
    open({ recent: { ...MANY, count: 3 } });
    const made = Array.from({ length: 8 }, () => whole()!);
    expect(ids()).toEqual(made.slice(-3).reverse());
  });

  test('are bounded in bytes, running ones and those of mode errors included', () => {
    for (const mode of ['off', 'errors'] as const) {
      open({ mode, recent: { ...MANY, bytes: 100_000 } });
      const made = Array.from({ length: 10 }, () => whole({ body: 'x'.repeat(20_000) })!);
      const kept = recorder!.recent!.rows();
      expect(kept.length).toBeGreaterThan(1);
      expect(kept.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(100_000);
      expect(kept.map(({ id }) => id)).toEqual(made.slice(-kept.length).reverse());
      void recorder!.close();
    }
    open({ recent: { ...MANY, bytes: 100_000 } });
    const running = recorder!.begin(exchange())!;
    const hop = running.hop(1, 1, { ...SENT, body: Buffer.from('{}') });
    hop.start(200, SSE_TYPE);
    for (let i = 0; i < 20; i++) hop.chunk(Buffer.alloc(10_000, 'y'));
    expect(ids()).toEqual([]);
    // The exchange itself goes on.
    hop.end(undefined);
    running.end(told());
    expect(ids()).toEqual([]);
  });

  test('hold at most so much of a body, and say that it is cut', async () => {
    for (const mode of ['off', 'errors'] as const) {
      open({ mode, recent: { ...MANY, body: 1000 } });
      const id = whole({ body: 'z'.repeat(5000) })!;
      await recorder!.recent!.read(id);
      expect(text(id, 'client-request')).toBe('z'.repeat(1000));
      const stages = recorder!.recent!.find(id)!.meta.edges;
      expect(stages.find(({ stage }) => stage === 'client-request')).toMatchObject({
        bytes: 1000,
        cut: true,
      });
      expect(stages.find(({ stage }) => stage === 'client-response')?.cut).toBeUndefined();
      await recorder!.close();
    }
  });

  test('take a few in one second, so that load costs nothing', () => {
    for (const mode of ['off', 'errors'] as const) {
      open({ mode, recent: { perSecond: 5 } });
      for (let i = 0; i < 200; i++) whole();
      // A second may end while this runs.
      expect(ids().length).toBeGreaterThanOrEqual(5);
      expect(ids().length).toBeLessThanOrEqual(20);
      expect(recorder!.counters()).toMatchObject({ held: 0, open: 0, dropped: 0 });
      void recorder!.close();
    }
  });

  test('are masked like samples: headers, URLs, known secrets, keys that a stream spells in parts', async () => {
    open({ secrets: ['the-secret-of-the-vendor'] });
    const given = exchange({
      body: `{"model":"m","messages":[{"role":"user","content":"my key is ${KEY}"}]}`,
      headers: { authorization: 'Bearer hg-own-key-of-the-client' },
      search: '?key=query-key-0123456789',
    });
    const recording = recorder!.begin(given)!;
    const piece = (content: string) =>
      `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
    play(recording, {
      sse: true,
      headers: { authorization: 'Bearer the-secret-of-the-vendor' },
      answer: [piece('hg-own-key'), piece('-of-the-client'), piece(' the-secret-of-the-vendor')],
    });
    recording.end(told({ model: 'hg-own-key-of-the-client' }));
    await recorder!.recent!.read(given.id);
    const sample = recorder!.recent!.find(given.id)!;
    const all = [
      JSON.stringify(sample.meta),
      JSON.stringify(recorder!.recent!.rows()),
      ...sample.meta.edges.map(({ stage }) => text(given.id, stage)),
    ].join('\n');
    const spoken = text(given.id, 'provider-response').replace(
      /[^*\w-]|data|choices|delta|content/g,
      '',
    );
    for (const secret of [
      KEY,
      'hg-own-key-of-the-client',
      'the-secret-of-the-vendor',
      'query-key',
    ]) {
      expect(all).not.toContain(secret);
      expect(spoken).not.toContain(secret);
    }
    expect(sample.meta.masked).toBeGreaterThan(3);
  });

  test('blank the content that samples would blank', async () => {
    open({ redact: ['texts'] });
    const body = '{"model":"m","messages":[{"role":"user","content":"secret words"}]}';
    const id = whole({ body })!;
    await recorder!.recent!.read(id);
    expect(text(id, 'client-request')).not.toContain('secret words');
    expect(text(id, 'client-request')).toHaveLength(body.length);
  });

  test('show a running exchange, and what came since it was read last', async () => {
    open();
    const given = exchange();
    const recording = recorder!.begin(given)!;
    recording.clientStart(200, SSE_TYPE);
    const long = `data: ${'a'.repeat(40_000)}\n\n`;
    recording.clientChunk(long);
    expect(recorder!.recent!.rows()[0]).toMatchObject({ id: given.id, state: 'open' });
    await recorder!.recent!.read(given.id);
    const before = text(given.id, 'client-response').length;
    expect(before).toBeGreaterThan(0);
    recording.clientChunk('data: [DONE]\n\n');
    recording.end(told({ stream: true }));
    await Promise.all([recorder!.recent!.read(given.id), recorder!.recent!.read(given.id)]);
    expect(text(given.id, 'client-response')).toBe(`${long}data: [DONE]\n\n`);
    expect(recorder!.recent!.rows()[0]).toMatchObject({ id: given.id, state: 'done' });
  });

  test('a route that says off by itself is not held, and a memory space is erased here too', async () => {
    open({ routes: { private: 'off' } });
    for (const mode of ['off', 'errors'] as const) {
      recorder!.switchMode(mode);
      const given = exchange();
      const recording = recorder!.begin(given)!;
      recording.hop(1, 1, { ...SENT, route: 'private', body: Buffer.from('{}') }).end(undefined);
      recording.end(told({ route: 'private' }));
      expect(ids()).toEqual([]);
    }
    const recording = recorder!.begin(exchange())!;
    recording.space!('family');
    finish(recording, '{}');
    const other = whole()!;
    const space = recorder!.recent!.rows().find(({ memory_space }) => memory_space === 'family')!;
    await recorder!.recent!.read(space.id);
    expect(await recorder!.eraseSpace('family')).toBe(1);
    expect(ids()).toEqual([other]);
    expect(recorder!.recent!.find(space.id)).toBeUndefined();
  });

  test('watchers get each one, also those that are removed', async () => {
    open({ recent: { ...MANY, count: 1 } });
    const rows: SampleRow[] = [];
    const gone: string[] = [];
    recorder!.watch({ row: (row) => rows.push(row), gone: (more) => gone.push(...more) });
    const first = whole()!;
    await new Promise((resolve) => setImmediate(resolve));
    const second = whole()!;
    await new Promise((resolve) => setImmediate(resolve));
    expect(rows.map(({ id }) => id)).toEqual([first, second]);
    expect(gone).toEqual([first]);
  });

  test('the mode is switched until the configuration is loaded again', async () => {
    open();
    recorder!.switchMode('all');
    const kept = whole()!;
    await recorder!.flush();
    expect(disk.files().some((file) => file.includes(kept))).toBe(true);
    expect(ids()).toEqual([]);
    recorder!.configure({ mode: 'off' });
    expect(recorder!.mode).toBe('off');
    const after = whole()!;
    await recorder!.flush();
    expect(ids()).toEqual([after]);
    expect(disk.files().some((file) => file.includes(after))).toBe(false);
  });

  test('without the option nothing is held', () => {
    recorder = new Recorder({ root: disk.root, mode: 'off' });
    expect(recorder.begin(exchange())).toBeUndefined();
    expect(recorder.recent).toBeUndefined();
  });
});

/** The recorder through the interface that the gateway uses: files, names, modes, limits, secrets. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientGone, GatewayError } from '../../../src/conversation/errors.ts';
import { Recorder, type RecorderOptions } from '../../../src/samples/record/recorder.ts';
import type { SampleMeta } from '../../../src/samples/sample.ts';
import { rowOf } from '../../../src/samples/store/meta.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import { until } from '../../support/until.ts';
import { exchange, JSON_TYPE, play, SSE_TYPE, scratch, told } from './support.ts';

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
  recorder = new Recorder({ root: disk.root, mode: 'all', ...more });
  return recorder;
};

const meta = (id: string, entry = 'openai-chat') =>
  JSON.parse(disk.text(`${entry}/${id}_meta.json`)) as SampleMeta;

const upstreamFailure = () =>
  new GatewayError('upstream', 'Operation failed', { status: 500, fromUpstream: true });

describe('files', () => {
  test('a simple exchange is four bodies and a meta file, with the exact wire bytes', async () => {
    const given = exchange({ body: '{ "model" : "m",\n "x": 1.0 }', search: '?beta=true' });
    const recording = open().begin(given)!;
    play(recording, { sent: '{"model":"glm-4.7","x":1.0}', answer: ['{"choi', 'ces":[]}'] });
    recording.clientStart(200, JSON_TYPE);
    recording.clientChunk('{"choices":[]}');
    recording.end(told({ notes: [{ name: 'parameter_dropped', where: '/seed' }] }));
    await recorder!.flush();
    const stem = `openai-chat/${given.id}`;
    expect(disk.files()).toEqual([
      `${stem}_client-request.json`,
      `${stem}_client-response.json`,
      `${stem}_meta.json`,
      `${stem}_provider-request.json`,
      `${stem}_provider-response.json`,
    ]);
    expect(disk.text(`${stem}_client-request.json`)).toBe('{ "model" : "m",\n "x": 1.0 }');
    expect(disk.text(`${stem}_provider-request.json`)).toBe('{"model":"glm-4.7","x":1.0}');
    expect(disk.text(`${stem}_provider-response.json`)).toBe('{"choices":[]}');
    const written = meta(given.id);
    expect(written).toMatchObject({
      id: given.id,
      entry: 'openai-chat',
      state: 'done',
      model: 'm',
      target: 'glm/glm-4.7',
      status: 200,
      search: '?beta=true',
      usage: { input: 10, output: 3 },
      notes: [{ name: 'parameter_dropped', where: '/seed' }],
      masked: 0,
    });
    expect(written.edges.map(({ stage, hop, try: attempt }) => [stage, hop, attempt])).toEqual([
      ['client-request', undefined, undefined],
      ['provider-request', 1, 1],
      ['provider-response', 1, 1],
      ['client-response', undefined, undefined],
    ]);
  });

  test('the address of the client is in the meta file; blanked where texts are', async () => {
    const write = async (redact: RecorderOptions['redact']) => {
      const given = { ...exchange(), address: '203.0.113.7' };
      open({ redact }).begin(given)!.end(told());
      await recorder!.close();
      return meta(given.id).address;
    };
    expect(await write([])).toBe('203.0.113.7');
    expect(await write(['texts'])).toBe('**');
    const unasked = exchange();
    open().begin(unasked)!.end(told());
    await recorder!.flush();
    expect(meta(unasked.id)).not.toHaveProperty('address');
  });

  test('files are 0600 and folders 0700', async () => {
    const given = exchange();
    open().begin(given)!.end(told());
    await recorder!.flush();
    const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
    for (const file of disk.files())
      expect([file, mode(join(disk.root, file))]).toEqual([file, '600']);
    expect(mode(join(disk.root, 'index.db'))).toBe('600');
    expect(mode(disk.root)).toBe('700');
    expect(mode(join(disk.root, 'openai-chat'))).toBe('700');
  });

  test('bytes that are not UTF-8, split anywhere, are stored unchanged', async () => {
    const body = new Uint8Array(300_000);
    for (let i = 0; i < body.length; i++) body[i] = (i * 7919) & 0xff;
    const given = exchange({ body });
    const recording = open().begin(given)!;
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < body.length; at += 1013) pieces.push(body.subarray(at, at + 1013));
    play(recording, { answer: pieces, sse: true });
    recording.end(told({ stream: true }));
    await recorder!.flush();
    const hash = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');
    const stored = (stage: string) =>
      hash(readFileSync(join(disk.root, 'openai-chat', `${given.id}_${stage}`)));
    expect(meta(given.id).masked).toBe(0);
    expect(stored('client-request.json')).toBe(hash(body));
    expect(stored('provider-response.sse')).toBe(hash(body));
  });

  test('failed tries are stored under try1-, and the successful one has the plain name', async () => {
    const given = exchange();
    const recording = open().begin(given)!;
    play(recording, { attempt: 1, sent: '{"try":1}', status: 429, answer: ['{"slow":1}'] });
    play(recording, { attempt: 2, sent: '{"try":2}', status: 0, error: upstreamFailure() });
    play(recording, { attempt: 3, sent: '{"try":3}', answer: ['{"fine":1}'] });
    play(recording, { hop: 2, attempt: 1, sent: '{"hop":2}', status: 500, answer: ['no'] });
    play(recording, { hop: 2, attempt: 2, sent: '{"hop":22}', sse: true, answer: ['data: x\n\n'] });
    recording.end(told({ tries: 5, hops: 2 }));
    await recorder!.flush();
    const text = (stage: string) => disk.text(`openai-chat/${given.id}_${stage}`);
    expect(text('try1-provider-request.json')).toBe('{"try":1}');
    expect(text('try1-provider-error.json')).toBe('{"slow":1}');
    expect(text('try2-provider-request.json')).toBe('{"try":2}');
    expect(JSON.parse(text('try2-provider-error.json'))).toEqual({
      error: { kind: 'upstream', message: 'Operation failed' },
    });
    expect(text('provider-request.json')).toBe('{"try":3}');
    expect(text('provider-response.json')).toBe('{"fine":1}');
    expect(text('hop2-try1-provider-error.json')).toBe('no');
    expect(text('hop2-provider-request.json')).toBe('{"hop":22}');
    expect(text('hop2-provider-response.sse')).toBe('data: x\n\n');
    expect(openSampleStore(disk.root).list({ status: 'failed' })).toHaveLength(1);
  });

  test('a try written before the next one begins is renamed, and nothing is mixed up', async () => {
    const given = exchange();
    const recording = open({ limits: { flushAfter: 5 } }).begin(given)!;
    play(recording, { attempt: 1, sent: '{"try":1}', status: 500, answer: ['{"a":1}'] });
    const sent = `openai-chat/${given.id}_provider-request.json`;
    await until(() => existsSync(join(disk.root, sent)) && disk.text(sent) === '{"try":1}');
    play(recording, { attempt: 2, sent: '{"try":2}', answer: ['{"b":1}'] });
    await Bun.sleep(60);
    recording.end(told({ tries: 2 }));
    await recorder!.flush();
    expect(disk.files().map((name) => name.split('_').at(-1))).toEqual([
      'client-request.json',
      'meta.json',
      'provider-request.json',
      'provider-response.json',
      'try1-provider-error.json',
      'try1-provider-request.json',
    ]);
    expect(disk.text(`openai-chat/${given.id}_provider-request.json`)).toBe('{"try":2}');
    expect(disk.text(`openai-chat/${given.id}_try1-provider-request.json`)).toBe('{"try":1}');
  });

  test('tool runs are in the meta file', async () => {
    const given = exchange();
    const recording = open().begin(given)!;
    recording.tool?.({
      name: 'web_search',
      hop: 1,
      arguments: '{"query":"x"}',
      result: 'found',
      ms: 12,
    });
    recording.end(told());
    await recorder!.flush();
    expect(meta(given.id).tools).toMatchObject([{ name: 'web_search', result: 'found', ms: 12 }]);
  });
});

describe('modes', () => {
  test('off records nothing and allocates nothing', () => {
    expect(open({ mode: 'off' }).begin(exchange())).toBeUndefined();
  });

  test('errors stores exchanges with any failure, and leaves no trace of the rest', async () => {
    open({ mode: 'errors', limits: { flushAfter: 1 } });
    const fine = recorder!.begin(exchange())!;
    play(fine, { answer: ['{}'] });
    await Bun.sleep(20);
    expect(disk.files()).toEqual([]);
    fine.end(told());
    const bad = exchange();
    const failing = recorder!.begin(bad)!;
    play(failing, { status: 500, answer: ['{"error":1}'] });
    failing.end(told({ status: 500, error: upstreamFailure() }));
    const mended = exchange();
    const twice = recorder!.begin(mended)!;
    play(twice, { attempt: 1, status: 429, answer: ['{}'] });
    play(twice, { attempt: 2, answer: ['{}'] });
    twice.end(told({ tries: 2 }));
    await recorder!.flush();
    const ids = new Set(disk.files().map((name) => /req_\d+_[0-9a-z]{10}/.exec(name)?.[0]));
    expect(ids).toEqual(new Set([bad.id, mended.id]));
    expect(recorder!.counters()).toMatchObject({
      written: 2,
      passed: 1,
      dropped: 0,
      held: 0,
      open: 0,
    });
  });

  test('a client that left is no failure, before the first byte and after it; a vendor that says 499 is', async () => {
    const left = exchange();
    const early = exchange();
    const vendors = exchange();
    const recorder = open({ mode: 'errors' });
    const first = recorder.begin(left)!;
    play(first, { answer: ['{"choi'] });
    first.end(told({ status: 499 }));
    const second = recorder.begin(early)!;
    second.end(told({ status: 499, error: clientGone() }));
    const third = recorder.begin(vendors)!;
    third.end(told({ status: 499, error: new GatewayError('upstream', 'Gone.', { status: 499 }) }));
    await recorder.flush();
    expect(disk.files().filter((name) => name.endsWith('_meta.json'))).toEqual([
      `openai-chat/${vendors.id}_meta.json`,
    ]);
    expect(rowOf({ ...meta(vendors.id), error: undefined })).toMatchObject({
      failed: false,
      error: '',
    });
    expect(rowOf(meta(vendors.id))).toMatchObject({ failed: true, error: 'upstream' });
  });

  test('a route has its own mode, and nothing is written before the mode is known', async () => {
    open({ mode: 'all', routes: { secret: 'off', loud: 'all' }, limits: { flushAfter: 1 } });
    const quiet = recorder!.begin(exchange())!;
    await Bun.sleep(10);
    expect(disk.files()).toEqual([]);
    quiet.end(told({ route: 'secret', status: 500, error: upstreamFailure() }));
    const loud = exchange();
    recorder!.begin(loud)!.end(told({ route: 'loud' }));
    await recorder!.flush();
    expect(disk.files().every((name) => name.includes(loud.id))).toBe(true);
    expect(disk.files()).toHaveLength(2);
  });

  test('a reloaded configuration applies to the next exchange', async () => {
    open({ mode: 'off' });
    recorder!.configure({ mode: 'all' });
    recorder!.begin(exchange())!.end(told());
    await recorder!.flush();
    expect(recorder!.counters().written).toBe(1);
  });
});

describe('limits', () => {
  test('an exchange that does not fit is dropped whole and counted, and its memory is released', async () => {
    const warned: string[] = [];
    open({ limits: { memory: 1_000_000 }, warn: (message) => warned.push(message) });
    const stored = exchange();
    const first = recorder!.begin(stored)!;
    const second = recorder!.begin(exchange())!;
    play(second, {
      answer: [new Uint8Array(900_000).fill(0x61), new Uint8Array(200_000).fill(0x62)],
    });
    second.clientStart(200, JSON_TYPE);
    second.clientChunk('after the end');
    second.end(told());
    play(first, { answer: ['{"small":true}'] });
    first.end(told());
    await recorder!.flush();
    expect(recorder!.counters()).toMatchObject({ written: 1, dropped: 1, held: 0, open: 0 });
    expect(disk.files().every((name) => name.includes(stored.id))).toBe(true);
    expect(warned).toHaveLength(1);
  });

  test('exchanges that are not stored do not pile up behind those that are written', async () => {
    open({ mode: 'errors' });
    for (let i = 0; i < 100; i++) {
      const fine = recorder!.begin(exchange())!;
      play(fine, { answer: ['{}'] });
      fine.end(told());
    }
    expect(recorder!.counters()).toMatchObject({ passed: 100, held: 0, open: 0 });
    await recorder!.close();

    const memory = 200_000;
    open({ limits: { memory } });
    for (let i = 0; i < 100; i++) {
      const recording = recorder!.begin(exchange());
      if (recording === undefined) continue;
      play(recording, { answer: [new Uint8Array(10_000).fill(0x61)] });
      recording.end(told());
    }
    // Nothing has been written yet: those that fit are in memory, and no others.
    const { dropped, open: waiting, held } = recorder!.counters();
    expect(dropped + waiting).toBe(100);
    expect(waiting).toBeGreaterThan(5);
    expect(waiting).toBeLessThan(memory / 10_000);
    expect(held).toBeLessThanOrEqual(memory);
    await recorder!.flush();
    expect(recorder!.counters()).toMatchObject({ written: waiting, dropped, held: 0, open: 0 });
  });

  test('bytes count until they are written, not only until they are masked', async () => {
    open();
    const recording = recorder!.begin(exchange())!;
    play(recording, { answer: [new Uint8Array(2_000_000).fill(0x61)] });
    recording.end(told());
    // Masking takes more than thirty slices, one per turn of the event loop.
    for (let turn = 0; turn < 5; turn++) {
      expect(recorder!.counters().held).toBeGreaterThan(2_000_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder!.flush();
    expect(recorder!.counters()).toMatchObject({ written: 1, held: 0 });
  });

  test('many small exchanges are limited as well as a few large ones', () => {
    const memory = 1_000_000;
    open({ limits: { memory } });
    for (let i = 0; i < 1000; i++) {
      const recording = recorder!.begin(exchange());
      if (recording === undefined) continue;
      play(recording, { answer: ['{}'] });
      recording.end(told());
    }
    expect(recorder!.counters().open).toBeLessThan(memory / 6000);
  });

  test('a body over its limit is cut and marked', async () => {
    const given = exchange({ body: 'x'.repeat(5000) });
    open({ limits: { body: 1000 } })
      .begin(given)!
      .end(told());
    await recorder!.flush();
    expect(disk.text(`openai-chat/${given.id}_client-request.json`)).toHaveLength(1000);
    expect(meta(given.id).edges[0]).toMatchObject({ bytes: 1000, cut: true });
  });

  test('a disk that cannot be written costs samples, never an exchange', async () => {
    const warned: string[] = [];
    const file = join(disk.root, '..', 'plain');
    writeFileSync(file, '');
    open({ root: join(file, 'samples'), warn: (message) => warned.push(message) });
    const recording = recorder!.begin(exchange())!;
    play(recording, { answer: ['{}'] });
    recording.end(told());
    await recorder!.flush();
    expect(recorder!.counters()).toMatchObject({ written: 0, dropped: 1, held: 0, open: 0 });
    expect(warned[0]).toContain('cannot write');
  });

  test('calls in any order, and after the end, are harmless', async () => {
    const recording = open().begin(exchange())!;
    recording.clientChunk('before the start');
    const hop = play(recording, { answer: ['{}'] });
    hop.start(200, JSON_TYPE);
    hop.chunk(new Uint8Array(3));
    hop.end(upstreamFailure());
    recording.end(told());
    recording.end(told({ status: 500 }));
    recording.clientStart(200, SSE_TYPE);
    play(recording, { attempt: 2 });
    await recorder!.flush();
    expect(openSampleStore(disk.root).list()[0]).toMatchObject({ status: 200, state: 'done' });
  });
});

describe('a stream that runs', () => {
  const frame = (bit: string) => `data: {"choices":[{"delta":{"content":"${bit}"}}]}\n\n`;
  const begin = () => {
    const given = exchange();
    const recording = open({ limits: { flushAfter: 1 } }).begin(given)!;
    recording.clientStart(200, SSE_TYPE);
    return { given, recording, name: `openai-chat/${given.id}_client-response.sse` };
  };

  test('is written in large parts, and at once for whoever looks at it', async () => {
    const { given, recording, name } = begin();
    recording.clientChunk(frame('Hello. '));
    await until(() => disk.files().includes(name));
    expect(disk.text(name)).toBe('');
    await recorder!.look(given.id);
    expect(disk.text(name)).toBe(frame('Hello. '));
    recording.clientChunk(frame('More. '));
    await recorder!.look(given.id);
    await recorder!.look('req_0_unknown');
    expect(disk.text(name)).toBe(frame('Hello. ') + frame('More. '));
    recording.clientChunk(frame('much '.repeat(2000)));
    await until(() => disk.text(name).length > 10_000);
    recording.end(told({ stream: true }));
    await recorder!.flush();
    expect(disk.text(name)).toBe(frame('Hello. ') + frame('More. ') + frame('much '.repeat(2000)));
    await recorder!.look(given.id);
    expect(recorder!.counters()).toMatchObject({ written: 1, held: 0 });
  });

  test('is on disk as far as it is decided when the recorder closes', async () => {
    const { recording, name } = begin();
    recording.clientChunk(frame('Hello. '));
    recording.clientChunk(frame('sk-proj-A1b2'));
    await recorder!.close();
    expect(disk.text(name)).toStartWith(frame('Hello. '));
    expect(disk.text(name)).not.toContain('sk-');
  });

  test('what was given out masked and is no key is put right on disk', async () => {
    const { given, recording, name } = begin();
    const said = (index: number, bit: string) =>
      `data: {"choices":[{"index":${index},"delta":{"content":"${bit}"}}]}\n\n`;
    const other = said(1, 'Words. ').repeat(500);
    recording.clientChunk(said(0, 'sk-short') + other);
    await recorder!.look(given.id);
    expect(disk.text(name)).toBe(said(0, '********') + other);
    recording.clientChunk(said(0, ' is none.'));
    await recorder!.look(given.id);
    expect(disk.text(name)).toBe(said(0, 'sk-short') + other + said(0, ' is none.'));
    recording.end(told({ stream: true }));
    await recorder!.flush();
    expect(recorder!.counters()).toMatchObject({ written: 1, held: 0 });
  });
});

describe('a key that a model streams in parts', () => {
  test.each([
    [
      'openai-chat',
      (bit: string) => `data: {"choices":[{"delta":{"content":${JSON.stringify(bit)}}}]}\n\n`,
    ],
    [
      'anthropic-messages',
      (bit: string) =>
        `event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":${JSON.stringify(bit)}}}\n\n`,
    ],
    [
      'openai-responses',
      (bit: string) =>
        `data: {"type":"response.output_text.delta","delta":${JSON.stringify(bit)}}\n\n`,
    ],
  ] as const)('the key is masked in every event: %s', async (_name, frame) => {
    const text = 'The key is sk-proj-A1b2C3d4E5f6G7h8, ok?';
    const sse = (text.match(/.{1,4}/g) ?? []).map(frame);
    const given = exchange({ headers: { authorization: 'Bearer my-own-plain-key' } });
    const recording = open().begin(given)!;
    play(recording, { sse: true, answer: sse });
    recording.clientStart(200, SSE_TYPE);
    for (const chunk of sse) recording.clientChunk(chunk);
    recording.end(told({ stream: true }));
    await recorder!.flush();
    for (const stage of ['provider-response', 'client-response']) {
      const stored = disk.text(`openai-chat/${given.id}_${stage}.sse`);
      const whole = sse.join('');
      expect(stored.length).toBe(whole.length);
      const left = [...stored].filter((char, i) => char === whole[i]).length;
      expect(whole.length - left).toBe('sk-proj-A1b2C3d4E5f6G7h8'.length);
      expect(stored).toContain('****');
    }
    expect(meta(given.id).masked).toBe(3);
  });
});

describe('sessions', () => {
  test.each([
    [{ 'x-claude-code-session-id': 'cc-1' }, '{}', 'cc-1'],
    [{ session_id: '0199-codex' }, '{}', '0199-codex'],
    [
      {},
      '{"metadata":{"user_id":"user_a_account_b_session_01234567-89ab-cdef-0123-456789abcdef"}}',
      '01234567-89ab-cdef-0123-456789abcdef',
    ],
    [
      {},
      '{"metadata":{"user_id":"{\\"device_id\\":\\"d\\",\\"session_id\\":\\"s-12345678\\"}"}}',
      's-12345678',
    ],
    [{}, '{"prompt_cache_key":"thread 7","input":"x"}', 'thread 7'],
  ] as [Record<string, string>, string, string][])('%j %s', async (headers, body, session) => {
    open().begin(exchange({ headers, body }))!.end(told());
    await recorder!.flush();
    expect(
      openSampleStore(disk.root)
        .list({ session })
        .map((row) => row.session),
    ).toEqual([session]);
  });
});

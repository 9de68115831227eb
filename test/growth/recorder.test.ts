/** The recorder under floods, in full folders and with damaged files: limits hold, and the event loop stays free. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../../src/conversation/errors.ts';
import type { Json } from '../../src/lib/json/json.ts';
import { diffJson } from '../../src/lib/json/json-diff.ts';
import { BodyMask } from '../../src/samples/mask/body-mask.ts';
import { Recorder, type RecorderOptions } from '../../src/samples/record/recorder.ts';
import { placedRules, rulesBehind } from '../../src/samples/replay/explain.ts';
import type { SampleMeta } from '../../src/samples/sample.ts';
import { openSampleStore } from '../../src/samples/store/sample-store.ts';
import { exchange, JSON_TYPE, play, scratch, told } from '../samples/record/support.ts';
import { blankBody } from '../support/blank-body.ts';
import { expectCpuBelow } from '../support/cpu-time.ts';
import { expectLinear } from '../support/growth.ts';
import { expectSlices } from '../support/longest-turn.ts';
import { until } from '../support/until.ts';

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

/** Closes the open recorder and starts with an empty folder. */
async function emptied(): Promise<void> {
  await recorder?.close();
  disk.remove();
  disk = scratch();
}

const NONE = { keepDays: 0, keepFailedDays: 0, maxBytes: 0, maxCount: 0 };
const open = (more: Partial<RecorderOptions> = {}): Recorder => {
  recorder = new Recorder({ root: disk.root, mode: 'all', retention: NONE, ...more });
  return recorder;
};
const failure = { status: 500, error: new GatewayError('upstream', 'no') };
/** An exchange whose first try failed. */
function twoTries(at: Recorder, body = '{"model":"m"}'): void {
  const recording = at.begin(exchange({ body }))!;
  play(recording, { attempt: 1, status: 500, answer: ['{"error":1}'] });
  play(recording, { attempt: 2, status: 500, answer: ['{"error":2}'] });
  recording.end(told({ ...failure, tries: 2 }));
}

/** Samples as files of an earlier process, without a recorder. */
function lay(many: number, space: (i: number) => string | undefined = () => undefined): void {
  const folder = join(disk.root, 'openai-chat');
  mkdirSync(folder, { recursive: true });
  for (let i = 0; i < many; i++) {
    const time = 1_790_000_000_000 + i;
    const id = `req_${time}_${String(i).padStart(6, '0')}`;
    const stages = ['client-request', 'try1-provider-request', 'try1-provider-error'];
    const edges = stages.map((stage) => ({ stage, file: `${id}_${stage}.json`, bytes: 2 }));
    for (const { file } of edges) writeFileSync(join(folder, file), '{}');
    const memory_space = space(i);
    const meta = {
      id,
      entry: 'openai-chat',
      state: 'done',
      time,
      tries: 2,
      hops: 1,
      status: 500,
      notes: [],
      masked: 0,
      edges,
      memory_space,
    };
    writeFileSync(join(folder, `${id}_meta.json`), JSON.stringify(meta));
  }
}

describe('limits', () => {
  test('one exchange in a full folder does not block the event loop, and the excess is removed', async () => {
    await expectSlices(
      'one exchange in a full folder',
      async () => {
        twoTries(recorder!);
        await recorder!.flush();
        await until(() => recorder!.counters().purged === 1001);
      },
      async () => {
        await emptied();
        lay(1500);
        open({ retention: { ...NONE, maxCount: 500 } });
      },
    );
    expect(
      readdirSync(join(disk.root, 'openai-chat')).filter((name) => name.endsWith('meta.json')),
    ).toHaveLength(500);
  }, 60_000);

  test('limits hold while exchanges fail faster than they are written', async () => {
    const body = JSON.stringify({ model: 'm', text: 'x'.repeat(10_000) });
    const maxBytes = 2_000_000;
    open({ retention: { ...NONE, maxBytes } });
    let most = 0;
    const size = () => {
      const folder = join(disk.root, 'openai-chat');
      return existsSync(folder)
        ? readdirSync(folder).reduce(
            (sum, name) =>
              sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
            0,
          )
        : 0;
    };
    for (let i = 0; i < 1000; i++) {
      twoTries(recorder!, body);
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (i % 100 === 0) most = Math.max(most, size());
    }
    most = Math.max(most, size());
    await recorder!.flush();
    expect(most).toBeLessThan(2 * maxBytes);
    expect(size()).toBeLessThan(1.3 * maxBytes);
    const { written, dropped, purged } = recorder!.counters();
    expect(written + dropped).toBe(1000);
    expect(purged).toBeGreaterThan(0);
  }, 60_000);

  test('limits by number hold too, and old samples expire below every limit', async () => {
    open({ retention: { ...NONE, maxCount: 50 } });
    for (let i = 0; i < 400; i++) {
      twoTries(recorder!);
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder!.flush();
    const book = openSampleStore(disk.root);
    expect(book.list()).toHaveLength(50);
    book.close();
    recorder!.configure({ mode: 'all', retention: { ...NONE, keepFailedDays: 1 } });
    await recorder!.close();
    const later = {
      retention: { ...NONE, keepFailedDays: 1 },
      now: () => Date.now() + 5 * 86_400_000,
    };
    open(later);
    twoTries(recorder!);
    await recorder!.close();
    // The newest sample is of that day, so the clock is believed.
    open(later);
    await until(() => recorder!.counters().purged === 50);
  }, 60_000);
});

describe('thousands of samples', () => {
  test('samples enter a rebuilt index, and an erased space leaves it, without blocking the event loop', async () => {
    let book!: ReturnType<typeof openSampleStore>;
    const prepare = async () => {
      await emptied();
      lay(1500, (i) => (i % 2 === 0 ? 'alice-space' : 'bob-space'));
      open();
      book = openSampleStore(disk.root, true);
    };
    const taken = () => until(() => book.list().length === 1500);
    await expectSlices('taken in', taken, prepare);
    const erase = async () => {
      expect(await recorder!.eraseSpace('alice-space')).toBe(750);
    };
    await expectSlices('erased', erase, () => prepare().then(taken));
    expect(book.list({ limit: 5000 })).toHaveLength(750);
    expect(disk.all()).not.toContain('alice-space');
    book.close();
  }, 60_000);
});

describe('a damaged index', () => {
  const damage = () => {
    const path = join(disk.root, 'index.db');
    const { size } = statSync(path);
    const file = openSync(path, 'r+');
    for (let at = 4096; at < size; at += 4096)
      writeSync(file, Buffer.alloc(4096, 0x5a), 0, 4096, at);
    closeSync(file);
  };

  test('an index damaged in the middle is rebuilt once, with a log line, while the page reads and a space is erased', async () => {
    lay(300, (i) => (i < 100 ? 'alice-space' : undefined));
    const warned: string[] = [];
    open();
    await recorder!.flush();
    const before = openSampleStore(disk.root);
    expect(before.list()).toHaveLength(300);
    before.close();
    await recorder!.close();
    damage();
    open({ warn: (message) => warned.push(message) });
    const book = openSampleStore(disk.root, true);
    await until(() => book.list().length === 300);
    expect(book.find('000123')?.id).toContain('000123');
    damage();
    expect(await recorder!.eraseSpace('alice-space')).toBe(100);
    await until(() => book.list().length === 200);
    expect(warned.filter((message) => message.includes('index')).length).toBeGreaterThan(0);
    book.close();
  }, 30_000);

  test('an index removed while it is open is rebuilt, too', async () => {
    open();
    twoTries(recorder!);
    await recorder!.flush();
    for (const end of ['', '-wal', '-shm'])
      rmSync(join(disk.root, `index.db${end}`), { force: true });
    twoTries(recorder!);
    await recorder!.flush();
    const book = openSampleStore(disk.root, true);
    await until(() => book.list().length === 2);
    book.close();
  });
});

test('leftovers of a killed process beside a file are removed', async () => {
  lay(1);
  const beside = join(disk.root, 'openai-chat', 'req_1790000000000_000000_meta.json.tmp');
  const fresh = join(disk.root, 'openai-chat', 'req_1790000000009_000009_meta.json.tmp');
  const foreign = join(disk.root, 'openai-chat', 'notes.tmp');
  for (const path of [beside, fresh, foreign]) writeFileSync(path, 'secret words');
  const old = new Date(Date.now() - 120_000);
  for (const path of [beside, foreign]) utimesSync(path, old, old);
  open();
  await until(() => !existsSync(beside));
  expect([existsSync(fresh), existsSync(foreign)]).toEqual([true, true]);
});

describe('no client value prevents the recording of an exchange', () => {
  const PARTS = [
    'A -----BEGIN PRIVATE KEY-----',
    'zz-----END',
    '"',
    '\\',
    '","role":"',
    ':[{"role"',
    'sk-proj-A1b2C3d4E5f6G7h8I9j0',
    'API_KEY=\r8_',
    'openai-chat',
    'req_',
    '通义千问',
  ];
  test.each(PARTS.flatMap((a) => PARTS.map((b) => [a, b] as const)))(
    'model %j, session %j',
    async (model, session) => {
      const body = JSON.stringify({
        model,
        messages: [
          { role: 'user', content: model },
          { role: 'user', content: `kept ${session}` },
        ],
      });
      const headers: Record<string, string> = {};
      if (/^[\x20-\x7e]*$/.test(session))
        Object.assign(headers, {
          'x-session-id': session,
          'x-api-key': session,
          'x-other': session,
        });
      const given = exchange({ body, headers });
      const recording = open().begin(given)!;
      recording.space?.(session);
      recording.tool?.({ name: model, hop: 1, arguments: session, result: model, ms: 1 });
      play(recording, {
        answer: [JSON.stringify({ text: session })],
        headers: { 'x-echo': model.replace(/[^ -~]/g, '') },
      });
      recording.clientStart(200, JSON_TYPE);
      recording.end(
        told({
          model,
          status: 404,
          error: new GatewayError('not_found', `no ${model} ${session}`),
        }),
      );
      await recorder!.flush();
      const text = (stage: string) => disk.text(`openai-chat/${given.id}_${stage}.json`);
      const meta = JSON.parse(text('meta')) as SampleMeta;
      expect(meta).toMatchObject({
        id: given.id,
        entry: 'openai-chat',
        state: 'done',
        status: 404,
        target: 'glm/glm-4.7',
        error: { kind: 'not_found' },
      });
      expect(meta.edges.map(({ stage }) => stage)).toEqual([
        'client-request',
        'provider-request',
        'provider-response',
        'client-response',
      ]);
      const stored = JSON.parse(text('client-request')) as {
        messages: { role: string; content: string }[];
      };
      expect(stored.messages.map(({ role }) => role)).toEqual(['user', 'user']);
      expect(stored.messages[1]!.content).toContain('kept ');
      expect(disk.all()).not.toContain('A1b2C3d4E5f6G7h8');
      const book = openSampleStore(disk.root);
      expect(book.list().map(({ id }) => id)).toEqual([given.id]);
      expect(await recorder!.eraseSpace(session)).toBe(1);
      book.close();
      expect(readFileSync(join(disk.root, 'index.db')).length).toBeGreaterThan(0);
    },
  );
});

/** A body with many tiny frames, deep nesting or escapes, in shapes that a client or vendor can send. */
const SHAPES: Readonly<Record<string, (size: number) => string>> = {
  'one long text': (size) => `{"content":"${'a'.repeat(size)}"}`,
  escapes: (size) => `{"content":"${'\\"'.repeat(size / 2)}"}`,
  backslashes: (size) => `{"content":"${'\\\\'.repeat(size / 2)}"}`,
  'broken escapes in JSON in JSON': (size) => `{"content":"{${'\\uxx\\\\\\"'.repeat(size / 8)}"}`,
  'JSON in JSON': (size) => `{"content":"{${'\\"a\\":\\"b\\",'.repeat(size / 14)}\\"z\\":1}"}`,
  'no end': (size) => `{"content":"{\\"${'x'.repeat(size)}`,
  nests: (size) => '[{"a":'.repeat(size / 6),
  'an image': (size) => `{"image_url":"data:image/png;base64,iVBOR${'A'.repeat(size)}"}`,
  'a long name': (size) => `{"${'k'.repeat(size)}":"x"}`,
};

describe('bodies are blanked and masked in time that grows linearly with their length', () => {
  for (const [name, make] of Object.entries(SHAPES)) {
    test(name, () =>
      expectLinear({
        name,
        input: (size) => Buffer.from(make(size)),
        run: (bytes) => blankBody(bytes, false),
      }),
    );
  }

  const secret = 'ab'.repeat(120);
  const streams: Record<string, (n: number) => string> = {
    'tiny events': () => 'data: {"delta":"x"}\n\n',
    'a key without an end': (n) => `data: {"delta":"${n === 0 ? 'sk-' : 'aaaaaaaa'}"}\n\n`,
    'beginnings of keys': () => 'data: {"delta":"sk-sk-eyJ"}\n\n',
    'a known secret, nearly': (n) => `data: {"delta":"${n % 29 === 0 ? 'b' : 'abababab'}"}\n\n`,
    'a new text with each event': (n) => `data: {"index":${n},"text":"sk-"}\n\n`,
    'one event without an end': (n) => (n === 0 ? 'data: {"text":"' : 'words \\"and\\" words '),
    'one open key in an event without an end': (n) => (n === 0 ? 'data: {"text":"sk-' : 'aaaaaaaa'),
    'open lists': (n) => (n === 0 ? 'data: ' : '[{"a":[{"b":'),
    'many members': (n) => (n === 0 ? 'data: {' : '"index":1,"text":"e","a":1,'),
  };
  for (const [name, part] of Object.entries(streams)) {
    test(
      `a stream is masked in linear time: ${name}`,
      () =>
        expectLinear({
          name,
          input: (size) => {
            const parts: Buffer[] = [];
            for (let bytes = 0; bytes < size; bytes += parts.at(-1)!.length) {
              parts.push(Buffer.from(part(parts.length)));
            }
            return parts;
          },
          run: (parts) => {
            const mask = new BodyMask(() => [secret], true);
            for (const one of parts) {
              mask.push(one);
              mask.takePatches();
            }
            mask.end();
          },
          most: 2 ** 20,
        }),
      60_000,
    );
  }

  test.each([false, true])(
    'large bodies do not block the event loop, blanked: %j',
    async (blank) => {
      const size = 8 * 2 ** 20;
      // The exchange itself is reported in one turn: a hundred thousand chunks.
      await expectSlices(
        'large bodies',
        () => recorder!.flush(),
        async () => {
          await emptied();
          open(blank ? { redact: ['texts', 'images'] } : {});
          const recording = recorder!.begin(exchange({ body: SHAPES.escapes!(size) }))!;
          const frame = Buffer.from('data: {"choices":[{"delta":{"content":"tiny"}}]}\n\n');
          play(recording, { sse: true, answer: Array.from({ length: 100_000 }, () => frame) });
          recording.end(told({ stream: true }));
        },
      );
      expect(recorder!.counters()).toMatchObject({ written: 1, held: 0 });
    },
    60_000,
  );
});

describe('diffs are bounded', () => {
  const lists = (size: number) => {
    const text = 'the same beginning '.repeat(20);
    return (n: number) =>
      Array.from({ length: size / 400 }, (_, i) => ({
        role: 'user',
        content: `${text}${(i * 7919 + n) % 5000}`,
      }));
  };
  test('a diff of lists with similar elements, or of nested lists, takes bounded time', async () => {
    const of = lists(2 ** 20);
    const nested = (n: number) =>
      Array.from({ length: 200 }, (_, i) =>
        Array.from({ length: 1000 }, (_, j) => i * 1000 + ((j * 31 + n * 17) % 1000)),
      );
    for (const [a, b] of [
      [of(1), of(2)],
      [nested(1), nested(2)],
    ] as const) {
      await expectCpuBelow(3000, () => expect(diffJson(a, b).length).toBeGreaterThan(0));
    }
  });

  test('a diff of deeply nested values is a change, or a readable error', () => {
    const deep = (n: number, inner: string) =>
      JSON.parse('['.repeat(n) + inner + ']'.repeat(n)) as Json;
    expect(diffJson(deep(500, '1'), deep(500, '2'))).toHaveLength(1);
  });

  test('a diff of thousands of changes with thousands of notes takes bounded time', async () => {
    const notes = Array.from({ length: 20_000 }, (_, i) => ({
      name: 'moved',
      where: `/messages/${i % 5000}`,
      what: `w${i}`,
    }));
    const changes = Array.from({ length: 2000 }, (_, i) => ({
      kind: 'added' as const,
      at: `/messages/${i}`,
      after: 'x'.repeat(1000),
    }));
    await expectCpuBelow(2000, () => {
      const known = placedRules(notes);
      expect(changes.map((change) => rulesBehind(change, known))).toHaveLength(2000);
    });
  });
});

test('an exchange is found by its id without a look through the folders of all others', async () => {
  const id = 'req_1800000000000_found';
  const one = open().begin(exchange({ id, protocol: 'anthropic-messages' }))!;
  play(one, { answer: ['{}'] });
  one.end(told());
  await recorder!.flush();
  const others = join(disk.root, 'openai-chat');
  mkdirSync(others);
  let there = 0;
  const store = openSampleStore(disk.root, true);
  await expectLinear({
    name: 'as many ids as there are files',
    input: (size) => {
      for (; there < size; there++) {
        writeFileSync(join(others, `req_1800000000000_o${there}_client-request.json`), '{}');
      }
      for (; there > size; there--) {
        rmSync(join(others, `req_1800000000000_o${there - 1}_client-request.json`));
      }
      return size / 32;
    },
    run: (times) => {
      for (let i = 0; i < times; i++) expect(store.find(id)?.id).toBe(id);
    },
    most: 16_384,
  });
  store.close();
});

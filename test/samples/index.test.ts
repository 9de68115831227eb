/** The index gives the same answers as the files and is rebuilt when lost; retention keeps failures longest. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { GatewayError } from '../../src/conversation/errors.ts';
import { runAtOnce } from '../../src/lib/loop/steps.ts';
import { Recorder } from '../../src/samples/record/recorder.ts';
import type { ExchangeOutcome } from '../../src/samples/recording.ts';
import type { SampleFilter } from '../../src/samples/sample.ts';
import { openIndex } from '../../src/samples/store/index-store.ts';
import { reconcile } from '../../src/samples/store/reconcile.ts';
import { DEFAULT_RETENTION, retain } from '../../src/samples/store/retention.ts';
import { openSampleStore } from '../../src/samples/store/sample-store.ts';
import { exchange, play, scratch, told } from './record/support.ts';

let disk: ReturnType<typeof scratch>;
beforeEach(() => {
  disk = scratch();
});
afterEach(() => disk.remove());

const DAY = 86_400_000;
const NOW = 1_800_000_000_000;
const NONE = { keepDays: 0, keepFailedDays: 0, maxBytes: 0, maxCount: 0 };
const limited = new GatewayError('rate_limit', 'Too many requests');

/** Records exchanges `age` days old; returns their ids. */
async function record(
  all: readonly { age?: number; body?: string; told?: Partial<ExchangeOutcome> }[],
  root = disk.root,
): Promise<string[]> {
  let now = NOW;
  const recorder = new Recorder({ root, mode: 'all', now: () => now, retention: NONE });
  const ids: string[] = [];
  for (const [i, { age = 0, body, told: more }] of all.entries()) {
    now = NOW - age * DAY;
    const given = exchange({ id: `req_${now}_${String(i).padStart(6, '0')}`, body });
    const recording = recorder.begin(given)!;
    play(recording, { answer: ['{}'] });
    recording.end(told(more));
    ids.push(given.id);
    await recorder.flush();
  }
  await recorder.close();
  return ids;
}

describe('queries', () => {
  test('each filter finds the right samples, newest first', async () => {
    const [fine, slow, bad, bridged] = await record([
      { age: 3, told: { model: 'glm-4.7' } },
      { age: 2, told: { status: 429, error: limited, model: 'glm-4.7' } },
      {
        age: 1,
        told: { status: 502, error: new GatewayError('upstream', 'x'), model: 'claude-x' },
      },
      {
        told: {
          notes: [
            { name: 'content_bridged' },
            { name: 'content_bridged' },
            { name: 'parameter_dropped' },
          ],
        },
      },
    ]);
    const book = openSampleStore(disk.root);
    const ids = (filter: SampleFilter) => book.list(filter).map(({ id }) => id);
    expect(ids({})).toEqual([bridged!, bad!, slow!, fine!]);
    expect(ids({ limit: 2 })).toEqual([bridged!, bad!]);
    expect(ids({ status: '429' })).toEqual([slow!]);
    expect(ids({ status: '5xx' })).toEqual([bad!]);
    expect(ids({ status: '429,5xx' })).toEqual([bad!, slow!]);
    expect(ids({ status: 'ok' })).toEqual([bridged!, fine!]);
    expect(ids({ status: 'failed' })).toEqual([bad!, slow!]);
    expect(ids({ model: 'CLAUDE' })).toEqual([bad!]);
    expect(ids({ model: 'glm-4.?' })).toEqual([slow!, fine!]);
    expect(ids({ model: 'glm/*' })).toEqual([bridged!, bad!, slow!, fine!]);
    expect(ids({ note: 'content_bridged' })).toEqual([bridged!]);
    expect(ids({ note: 'parameter_dropped' })).toEqual([bridged!]);
    expect(ids({ note: 'parameter' })).toEqual([]);
    expect(ids({ error: 'rate_limit' })).toEqual([slow!]);
    expect(ids({ since: NOW - 2.5 * DAY, until: NOW - DAY / 2 })).toEqual([bad!, slow!]);
    expect(ids({ entry: 'openai-responses' })).toEqual([]);
    expect(book.list({ note: 'content_bridged' })[0]).toMatchObject({
      notes: 'content_bridged=2,parameter_dropped',
      input_tokens: 10,
      output_tokens: 3,
      target: 'glm/glm-4.7',
      failed: false,
    });
    book.close();
  });

  test('a part of an id is enough while only one id has it', async () => {
    const [first] = await record([{}, {}]);
    const book = openSampleStore(disk.root);
    expect(book.find(first!)?.id).toBe(first!);
    expect(book.find('_000000')?.id).toBe(first!);
    expect(book.find('00000')).toBeUndefined();
    expect(book.find('')).toBeUndefined();
    expect(book.find('../../etc/passwd')).toBeUndefined();
    book.close();
  });
});

describe('the files are the truth', () => {
  test('an index that is lost, broken or of another version is rebuilt from the files', async () => {
    await record([{}, { told: { status: 500, error: limited } }]);
    const before = openSampleStore(disk.root);
    const rows = before.list();
    before.close();
    const again = () => {
      const book = openSampleStore(disk.root);
      const list = book.list();
      book.close();
      return list;
    };
    const path = join(disk.root, 'index.db');
    const gone = () => {
      for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
    };
    gone();
    expect(again()).toEqual(rows);
    gone();
    writeFileSync(path, 'no database at all'.repeat(500));
    expect(again()).toEqual(rows);
  });

  test('samples that were removed or added by hand are noticed', async () => {
    const [gone] = await record([{}, {}]);
    for (const name of disk.files().filter((file) => file.includes(gone!)))
      unlinkSync(join(disk.root, name));
    writeFileSync(
      join(disk.root, 'openai-chat', 'req_1761896456280_s7i9w6_provider-request.json'),
      '{"model":"old"}',
    );
    const book = openSampleStore(disk.root);
    expect(book.list().map(({ id, model }) => [id, model])).toContainEqual([
      'req_1761896456280_s7i9w6',
      'old',
    ]);
    expect(book.list()).toHaveLength(2);
    expect(book.find(gone!)).toBeUndefined();
    book.close();
  });

  test('samples made by hand, with names for notes and no stages in the meta, are read', () => {
    const id = 'req_1790000000003_claude';
    const name = (stage: string) => join(disk.root, 'openai-chat', `${id}_${stage}`);
    mkdirSync(join(disk.root, 'openai-chat'), { recursive: true });
    for (const stage of ['client-response.sse', 'provider-response.sse']) {
      writeFileSync(name(stage), 'data: [DONE]\n\n');
    }
    for (const stage of ['provider-request.json', 'client-request.json']) {
      writeFileSync(name(stage), '{"model":"claude-sonnet-4-5"}');
    }
    const notes = ['parameter_defaulted', 'parameter_mapped'];
    writeFileSync(name('meta.json'), JSON.stringify({ about: 'A chat app', notes, cut: false }));
    const book = openSampleStore(disk.root);
    const meta = book.find(id);
    expect(meta?.edges.map(({ stage }) => stage)).toEqual([
      'client-request',
      'provider-request',
      'provider-response',
      'client-response',
    ]);
    expect(meta?.notes).toEqual([{ name: 'parameter_defaulted' }, { name: 'parameter_mapped' }]);
    expect(meta?.about).toBe('A chat app');
    book.close();
  });

  test('a meta file is written atomically: a partial one would be taken for a cut exchange', async () => {
    const recorder = new Recorder({ root: disk.root, mode: 'all', limits: { flushAfter: 1 } });
    const begun = Array.from({ length: 200 }, () => exchange());
    for (const one of begun) recorder.begin(one);
    const paths = begun.map(({ id }) => join(disk.root, 'openai-chat', `${id}_meta.json`));
    const seen = new Set<string>();
    for (const until = performance.now() + 20_000; seen.size < paths.length; ) {
      if (performance.now() > until) throw new Error(`only ${seen.size} meta files`);
      for (const path of paths) {
        if (seen.has(path) || !existsSync(path)) continue;
        seen.add(path);
        expect(JSON.parse(readFileSync(path, 'utf8') || '"empty"')).toMatchObject({
          state: 'open',
        });
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder.close();
  }, 30_000);

  test('bodies whose meta file is still to be written are not marked as a cut exchange', () => {
    const id = 'req_1790000000003_fresh0';
    const file = (stage: string) => join(disk.root, 'openai-chat', `${id}_${stage}.json`);
    mkdirSync(join(disk.root, 'openai-chat'), { recursive: true });
    writeFileSync(file('provider-request'), '{"model":"m"}');
    const index = openIndex(disk.root);
    const stateOf = (of: string) =>
      index.idsAfter('openai-chat', '', 9).find((row) => row.id === of)?.state;
    runAtOnce(reconcile(index, disk.root, { own: 'this one', mark: true }));
    expect(existsSync(file('meta'))).toBe(false);
    expect(stateOf(id)).toBe('open');
    // The process that wrote it no longer runs.
    const old = new Date(Date.now() - 60_000);
    utimesSync(file('provider-request'), old, old);
    runAtOnce(reconcile(index, disk.root, { own: 'this one', mark: true }));
    expect(stateOf(id)).toBe('cut');
    expect(JSON.parse(readFileSync(file('meta'), 'utf8'))).toMatchObject({ state: 'cut' });
    index.close();
  });

  test('an exchange that was open when its process died is cut; one in a running process is not', async () => {
    const recorder = new Recorder({ root: disk.root, mode: 'all', limits: { flushAfter: 1 } });
    const dead = exchange();
    recorder.begin(dead);
    const living = exchange();
    recorder.begin(living);
    await Bun.sleep(100);
    const path = join(disk.root, 'openai-chat', `${dead.id}_meta.json`);
    const meta = JSON.parse(readFileSync(path, 'utf8')) as { run: string; state: string };
    expect(meta.state).toBe('open');
    writeFileSync(path, JSON.stringify({ ...meta, run: '4194305-gone' }, null, 1));
    const book = openSampleStore(disk.root);
    const states = Object.fromEntries(book.list().map(({ id, state }) => [id, state]));
    expect(states).toEqual({ [dead.id]: 'cut', [living.id]: 'open' });
    expect(book.find(dead.id)?.edges).toMatchObject([{ stage: 'client-request', cut: true }]);
    book.close();
    await recorder.close();
    const after = openSampleStore(disk.root);
    expect(after.find(living.id)?.state).toBe('cut');
    after.close();
  });
});

describe('retention', () => {
  const left = (retention: Partial<typeof DEFAULT_RETENTION>) => {
    const index = openIndex(disk.root);
    while (retain(index, disk.root, { ...DEFAULT_RETENTION, ...retention }, NOW).length > 0);
    const ids = index.list({}).map(({ id }) => id);
    index.close();
    const named = new Set(disk.files().map((name) => /req_\d+_\w{6}/.exec(name)![0]));
    expect(named).toEqual(new Set(ids));
    return ids;
  };
  const failed = { status: 500, error: limited };

  test('by age: successful samples after their days, failed ones after theirs', async () => {
    const ids = await record([
      { age: 100, told: failed },
      { age: 50, told: failed },
      { age: 50 },
      { age: 5 },
    ]);
    expect(left({})).toEqual([ids[3]!, ids[1]!]);
  });

  test('by size: failed samples are removed only when no successful one is left', async () => {
    const body = 'x'.repeat(10_000);
    const ids = await record([
      { age: 9, body, told: failed },
      { age: 8, body },
      { age: 7, body, told: failed },
      { age: 6, body },
    ]);
    expect(left({ maxBytes: 32_000 })).toEqual([ids[3]!, ids[2]!, ids[0]!]);
    expect(left({ maxBytes: 22_000 })).toEqual([ids[2]!, ids[0]!]);
    expect(left({ maxBytes: 12_000 })).toEqual([ids[2]!]);
  });

  test('by number: successful and failed samples are counted separately', async () => {
    const ids = await record([{ age: 4, told: failed }, { age: 3 }, { age: 2 }, { age: 1 }]);
    expect(left({ maxCount: 2 })).toEqual([ids[3]!, ids[2]!, ids[0]!]);
  });

  test.each([
    ['while the recorder runs', [0, 31]],
    ['before its start', [31]],
  ])('a clock that jumps 31 days forward %s removes nothing', async (_, jumps) => {
    const ids = await record([{ age: 12 }, { age: 0 }]);
    let now = NOW + jumps[0]! * DAY;
    const recorder = new Recorder({ root: disk.root, mode: 'all', now: () => now });
    for (const days of jumps) {
      now = NOW + days * DAY;
      const given = exchange({ id: `req_${now}_${String(days).padStart(6, 'a')}` });
      const recording = recorder.begin(given)!;
      play(recording, { answer: ['{}'] });
      recording.end(told());
      ids.push(given.id);
      await recorder.flush();
    }
    await recorder.close();
    const index = openIndex(disk.root);
    expect(
      index
        .list({})
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(ids.toSorted());
    index.close();
  });

  test('no limits keep everything', async () => {
    await record([{ age: 9000 }, {}]);
    expect(left(NONE)).toHaveLength(2);
  });
});

describe('export and import', () => {
  test('a sample that is exported and imported elsewhere is the same, byte for byte', async () => {
    const body = '{ "model":"m", "text":"grüße \\ud83d" }';
    const [id] = await record([{ body }]);
    const book = openSampleStore(disk.root);
    const other = scratch();
    try {
      const target = openSampleStore(other.root);
      const meta = book.find(id!)!;
      target.import(JSON.parse(JSON.stringify(runAtOnce(book.export(meta, false)))));
      const there = target.find(id!)!;
      expect(there.edges.map(({ stage }) => stage)).toEqual(meta.edges.map(({ stage }) => stage));
      for (const { stage } of meta.edges) {
        expect(Buffer.from(target.read(there, stage)!).equals(book.read(meta, stage)!)).toBe(true);
      }
      expect(target.list()).toEqual(book.list());
      target.close();
    } finally {
      other.remove();
      book.close();
    }
  });

  test('an import masks credentials and cannot leave its folder', async () => {
    const [id] = await record([{}]);
    const book = openSampleStore(disk.root);
    const exported = runAtOnce(book.export(book.find(id!)!, false));
    const files = [
      { stage: 'client-request', name: 'x.json', text: '{"key":"sk-proj-A1b2C3d4E5f6G7h8"}' },
    ];
    const imported = book.import({ ...exported, files });
    expect(disk.all()).not.toContain('A1b2C3d4');
    expect(imported.masked).toBe(1);
    for (const broken of [
      { ...exported, meta: { ...exported.meta, id: '../../evil' } },
      { ...exported, meta: { ...exported.meta, entry: '../x' as never } },
      { ...exported, files: [{ stage: '../../evil', name: 'x.json', text: '' }] },
      { hopgate_sample: 2 } as never,
    ]) {
      expect(() => book.import(broken)).toThrow();
    }
    book.close();
  });
});

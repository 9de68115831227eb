/** Erasing a memory space removes its samples: files and index, finished, open and written by other processes. */

import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { openSampleStore } from '../../../src/samples/store/sample-store.ts';
import { exchange, JSON_TYPE, play, told } from '../record/support.ts';

const folders: string[] = [];
const open: Recorder[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'hopgate-erase-'));
  folders.push(made);
  return made;
}
function recorderIn(root: string): Recorder {
  const made = new Recorder({ root, mode: 'all' });
  open.push(made);
  return made;
}
/** An exchange of a space, complete or only started; returns its id. */
function record(
  recorder: Recorder,
  space: string | undefined,
  done = true,
): { id: string; end(): void } {
  const request = exchange({ body: `{"model":"m","said":"words of ${space}"}` });
  const recording = recorder.begin(request)!;
  if (space !== undefined) recording.space?.(space);
  play(recording, { answer: [`{"answer":"to ${space}"}`] });
  recording.clientStart(200, JSON_TYPE);
  recording.clientChunk('{}');
  const end = () => recording.end(told());
  if (done) end();
  return { id: request.id, end };
}
const files = (root: string) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('req_'));
const traces = (root: string, message: string) =>
  readdirSync(root, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(message));

describe('erasing a space', () => {
  test('erasing removes the samples of the space and no others; no byte of them stays in the index', async () => {
    const root = folder();
    const recorder = recorderIn(root);
    record(recorder, 'alice-space');
    record(recorder, 'alice-space');
    const bob = record(recorder, 'bob-space');
    const none = record(recorder, undefined);
    await recorder.flush();
    expect(traces(root, 'alice-space').length).toBeGreaterThan(0);
    expect(await recorder.eraseSpace('alice-space')).toBe(2);
    expect(traces(root, 'alice-space')).toEqual([]);
    const book = openSampleStore(root);
    expect(
      book
        .list()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual([bob.id, none.id].toSorted());
    expect(book.find(bob.id)?.memory_space).toBe('bob-space');
    expect(book.find(none.id)?.memory_space).toBeUndefined();
    book.close();
    expect(await recorder.eraseSpace('alice-space')).toBe(0);
    expect(await recorder.eraseSpace('')).toBe(0);
  });

  test('erasing stops running exchanges: later parts are not written', async () => {
    const root = folder();
    const recorder = recorderIn(root);
    const running = record(recorder, 'alice-space', false);
    await Bun.sleep(200);
    expect(files(root).length).toBeGreaterThan(0);
    expect(await recorder.eraseSpace('alice-space')).toBe(1);
    running.end();
    await recorder.flush();
    expect(files(root)).toEqual([]);
  });

  test('erasing reaches another process, which removes its exchanges when it writes them', async () => {
    const root = folder();
    const [here, there] = [recorderIn(root), recorderIn(root)];
    const running = record(there, 'alice-space', false);
    const other = record(there, 'bob-space', false);
    expect(await here.eraseSpace('alice-space')).toBe(0);
    running.end();
    other.end();
    await there.flush();
    expect(traces(root, 'alice-space')).toEqual([]);
    expect(
      openSampleStore(root)
        .list()
        .map(({ id }) => id),
    ).toEqual([other.id]);
    // A turn after the erasure stays.
    await Bun.sleep(5);
    const later = record(there, 'alice-space');
    await there.flush();
    expect(openSampleStore(root).find(later.id)).toMatchObject({ memory_space: 'alice-space' });
  });

  test('erasing works on a folder that an earlier version indexed, and through the store', async () => {
    const root = folder();
    const first = recorderIn(root);
    const { id } = record(first, 'alice-space');
    await first.flush();
    await first.close();
    for (const end of ['', '-wal', '-shm']) rmSync(join(root, `index.db${end}`), { force: true });
    const book = openSampleStore(root);
    expect(book.list()).toMatchObject([{ id, memory_space: 'alice-space' }]);
    expect(book.eraseSpace('alice-space')).toBe(1);
    expect([book.list(), files(root)]).toEqual([[], []]);
    book.close();
    expect(openSampleStore(join(root, 'nothing')).eraseSpace('x')).toBe(0);
  });

  test('watched lists lose the samples of the space', async () => {
    const root = folder();
    const recorder = recorderIn(root);
    const gone: string[] = [];
    recorder.watch({ row: () => {}, gone: (ids) => gone.push(...ids) });
    const { id } = record(recorder, 'alice-space');
    await recorder.flush();
    await recorder.eraseSpace('alice-space');
    expect(gone).toEqual([id]);
  });
});

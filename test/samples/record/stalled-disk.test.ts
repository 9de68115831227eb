/** A disk that hangs: no call of an exchange waits for a write, others are written meanwhile, and the memory is bounded. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, constants, mkdirSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { Recorder, type RecorderOptions } from '../../../src/samples/record/recorder.ts';
import { until } from '../../support/until.ts';
import { exchange, JSON_TYPE, play, scratch, told } from './support.ts';

const BODY = '{"model":"m","messages":[]}';

let disk: ReturnType<typeof scratch>;
let recorder: Recorder;
/** Ends the hanging of every write. */
let waking: (() => void)[] = [];
beforeEach(() => {
  disk = scratch();
  mkdirSync(join(disk.root, 'openai-chat'), { recursive: true });
});
afterEach(async () => {
  for (const wake of waking) wake();
  waking = [];
  await recorder.close();
  disk.remove();
});

const open = (more: Partial<RecorderOptions> = {}) => {
  recorder = new Recorder({ root: disk.root, mode: 'all', ...more });
};

/** An exchange the file of whose request is a pipe: the write of it hangs until somebody reads. */
function hanging() {
  const given = exchange({ body: BODY });
  const path = join(disk.root, 'openai-chat', `${given.id}_client-request.json`);
  expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0);
  return { given, path };
}

/** Lets the write of a pipe go on; returns what it wrote. */
async function read(path: string): Promise<string> {
  const pipe = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(1000);
  let text = '';
  try {
    await until(() => {
      try {
        text += buffer.toString('utf8', 0, readSync(pipe, buffer));
      } catch (thrown) {
        if ((thrown as { code?: string }).code !== 'EAGAIN') throw thrown;
      }
      return text.length >= BODY.length;
    });
  } finally {
    closeSync(pipe);
  }
  return text;
}

/** A whole exchange; returns at its end, which is when the client has its answer. */
function finish(given: ReturnType<typeof exchange>): boolean {
  const recording = recorder.begin(given);
  if (recording === undefined) return false;
  play(recording, { answer: ['{"choices":[]}'] });
  recording.clientStart(200, JSON_TYPE);
  recording.clientChunk('{"choices":[]}');
  recording.end(told());
  return true;
}

test('while a write hangs, exchanges begin and end, and are written: the hanging one comes when the disk does', async () => {
  open();
  const { given, path } = hanging();
  waking.push(() => void read(path).catch(() => {}));
  expect(finish(given)).toBe(true);
  const others = [exchange(), exchange(), exchange()];
  for (const other of others) expect(finish(other)).toBe(true);
  await until(() => recorder.counters().written === others.length);
  for (const { id } of others) {
    expect(readFileSync(join(disk.root, 'openai-chat', `${id}_client-request.json`), 'utf8')).toBe(
      '{"model":"m"}',
    );
  }
  expect(recorder.counters()).toMatchObject({ written: 3, dropped: 0, open: 1 });
  waking = [];
  expect(await read(path)).toBe(BODY);
  await recorder.flush();
  expect(recorder.counters()).toMatchObject({ written: 4, dropped: 0, held: 0, open: 0 });
});

test('with every write hanging, exchanges still end at once, and what they hold stays within the limit', async () => {
  const memory = 200_000;
  open({ limits: { memory, writers: 1 } });
  // Finished exchanges have twice as many places as there are writers.
  const stuck = [hanging(), hanging()];
  for (const { given, path } of stuck) {
    waking.push(() => void read(path).catch(() => {}));
    expect(finish(given)).toBe(true);
  }
  await Bun.sleep(50);
  let ended = 0;
  for (let i = 0; i < 200; i++) {
    finish(exchange({ body: JSON.stringify({ model: 'm', pad: 'x'.repeat(5000) }) }));
    ended++;
    expect(recorder.counters().held).toBeLessThanOrEqual(memory);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(ended).toBe(200);
  const during = recorder.counters();
  expect(during.written).toBe(0);
  expect(during.dropped).toBeGreaterThan(0);
  waking = [];
  for (const { path } of stuck) expect(await read(path)).toBe(BODY);
  await recorder.flush();
  const { written, dropped, held } = recorder.counters();
  expect(held).toBe(0);
  expect(written).toBeGreaterThan(2);
  expect(written + dropped).toBeLessThanOrEqual(202);
});

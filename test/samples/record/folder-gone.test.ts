/** A folder of samples that somebody removes while the gateway runs is made again by the next exchange. */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { exchange, JSON_TYPE, play, scratch, told } from './support.ts';

let disk: ReturnType<typeof scratch>;
let recorder: Recorder;
beforeEach(() => {
  disk = scratch();
  recorder = new Recorder({ root: disk.root, mode: 'all' });
});
afterEach(async () => {
  await recorder.close();
  disk.remove();
});

async function record(): Promise<string> {
  const given = exchange({ body: '{"model":"m"}' });
  const recording = recorder.begin(given)!;
  play(recording, { sent: '{"model":"m"}', answer: ['{"choices":[]}'] });
  recording.clientStart(200, JSON_TYPE);
  recording.clientChunk('{"choices":[]}');
  recording.end(told());
  await recorder.flush();
  return given.id;
}

test('all five files of the next exchange are there, and the folder is private', async () => {
  await record();
  const folder = join(disk.root, 'openai-chat');
  rmSync(folder, { recursive: true });
  const id = await record();
  expect(disk.files().filter((file) => file.includes(id))).toHaveLength(5);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(recorder.counters().dropped).toBe(0);
});

/** A secret that a model streams in parts is never on disk, not even while its stream runs. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { Recorder } from '../../../src/samples/record/recorder.ts';
import { FORMS, HIDDEN, joinedTexts, SECRETS } from '../mask/streams.ts';
import { bytes, exchange, SSE_TYPE, scratch, TARGET, told } from './support.ts';

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

const pause = () => new Promise((resolve) => setTimeout(resolve, 4));

describe('a secret that a model streams in parts', () => {
  for (const [form, frame] of Object.entries(FORMS)) {
    test(`${form}: no file shows it at any time`, async () => {
      recorder = new Recorder({
        root: disk.root,
        mode: 'all',
        secrets: [SECRETS.known],
        limits: { flushAfter: 1 },
      });
      const given = exchange();
      const recording = recorder.begin(given)!;
      const hop = recording.hop(1, 1, {
        target: TARGET,
        model: 'glm-4.7',
        url: 'https://up.test/v1',
        headers: new Headers(),
        body: bytes('{}'),
      });
      hop.start(200, SSE_TYPE);
      recording.clientStart(200, SSE_TYPE);
      const filler = 'Words of a long answer, one after the other. '.repeat(20);
      const text = Object.values(SECRETS)
        .map((secret) => `${filler}Here: ${secret}. `)
        .join('');
      const names = ['provider-response', 'client-response'].map(
        (stage) => `openai-chat/${given.id}_${stage}.sse`,
      );
      const seen: string[] = [];
      const look = () => {
        for (const name of names) if (disk.files().includes(name)) seen.push(disk.text(name));
      };
      const parts = text.match(/.{1,4}/gs) ?? [];
      for (const [n, part] of parts.entries()) {
        const chunk = bytes(frame(part));
        hop.chunk(chunk);
        recording.clientChunk(chunk);
        if (n % 16 !== 0) continue;
        await pause();
        look();
      }
      hop.end(undefined);
      recording.end(told({ stream: true }));
      await recorder.flush();
      for (const name of names) {
        const whole = disk.text(name);
        for (const hidden of HIDDEN) {
          for (const said of joinedTexts(whole)) expect(said).not.toContain(hidden);
        }
      }
      const [whole] = names.map((name) => disk.text(name));
      // Much of the stream is on disk before its end.
      expect(Math.max(...seen.map(({ length }) => length))).toBeGreaterThan(whole!.length / 2);
      for (const early of seen) {
        for (let at = 0; at < early.length; at++) {
          if (early[at] !== whole![at] && early[at] !== '*') {
            throw new Error(`"${early.slice(Math.max(0, at - 100), at + 100)}" was on disk`);
          }
        }
      }
    });
  }
});

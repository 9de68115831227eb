/** What can be named to be replayed: the samples of this repository by file, by shell pattern, by folder, with no configuration at all. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createWorld, type World } from './world.ts';

const SAMPLES = join(import.meta.dir, '../../samples');

let world: World;
beforeEach(() => {
  world = createWorld();
  // Those that the demo model answers at once.
  const few = (path: string) => !/req_/.test(path) || /_(custom|claude|glm500)_/.test(path);
  cpSync(SAMPLES, join(world.home, 'samples'), { recursive: true, filter: few });
});
afterEach(() => world.remove());

interface Replayed {
  readonly runs: readonly {
    readonly sample: string;
    readonly status: number;
    readonly target: string;
    readonly recorded?: { readonly status: number };
  }[];
}

/** What a shell makes of `samples/<entry>/*<part>*`. */
const glob = (entry: string, part: string) =>
  readdirSync(join(world.home, 'samples', entry))
    .filter((name) => name.includes(part))
    .sort()
    .map((name) => `samples/${entry}/${name}`);

async function replay(...args: string[]): Promise<Replayed> {
  const { code, out, err } = await world.run(['replay', ...args, '--json']);
  // What it sends is told before it does.
  expect([code, err]).toEqual([0, expect.stringMatching(/^Sends \d+ requests?: .+\n$/)]);
  return JSON.parse(out) as Replayed;
}

describe('hopgate replay', () => {
  test('a request of a sample by its file, as the client sent it and as a vendor got it', async () => {
    for (const [entry, word, status] of [
      ['openai-chat', 'glm500', 500],
      ['openai-responses', 'custom', 200],
    ] as const) {
      for (const stage of ['client-request', 'provider-request']) {
        const [file] = glob(entry, `${word}_${stage}.json`);
        const { runs } = await replay(file!);
        expect(runs).toMatchObject([{ status: 200, recorded: { status } }]);
        expect(runs[0]!.target).toStartWith('demo/');
      }
    }
  });

  test('all the files of a sample, as a shell’s * names them: each request once', async () => {
    const files = glob('openai-responses', '');
    expect(files.length).toBeGreaterThan(3);
    const { runs } = await replay(...files);
    expect(runs).toHaveLength(2);
    const alone = files.filter((name) => /_(client-response|provider-response|meta)\./.test(name));
    expect((await replay(...alone)).runs).toHaveLength(1);
  });

  test('a folder of one protocol, or the whole of them, oldest first', async () => {
    const one = await replay('samples/openai-responses');
    expect(one.runs).toHaveLength(1);
    const { runs } = await replay('samples', '--stage', 'provider-request');
    const ids = runs.map(({ sample }) => sample);
    expect(ids).toHaveLength(3);
    expect(ids).toEqual(ids.toSorted());
    expect(runs.every(({ status }) => status === 200)).toBe(true);
  }, 60_000);

  test('a name that is nothing, an empty folder, a folder to bisect: said in words', async () => {
    world.write('empty/readme.txt', 'nothing');
    for (const [args, words] of [
      [['replay', 'nothing-here'], 'There is no sample "nothing-here"'],
      [['replay', 'empty'], 'There are no samples in'],
      [['replay', 'empty/readme.txt'], 'is no JSON object'],
      [['replay', 'samples/openai-responses', '--edge', 'hop7-provider-request'], 'It has: '],
      [['bisect', 'samples'], 'is a folder of'],
    ] as const) {
      const { code, err } = await world.run(args);
      expect([args, code, err]).toEqual([args, 2, expect.stringContaining(words)]);
    }
  });
});

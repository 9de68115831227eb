/** Makes the samples of this repository anew, or those whose ids hold a word: `bun scripts/samples.ts [WORD]`. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SampleMeta, SampleStage } from '../src/samples/sample.ts';
import { CASES, type Case } from '../test/samples/cases.ts';
import {
  allSamples,
  type Played,
  play,
  ROOT,
  recordedSteps,
  type Stage,
  startStage,
} from '../test/samples/sample-gateway.ts';

/** The meta as the recorder wrote it, without what is only so on this machine. */
function portable(meta: SampleMeta, made: Case): SampleMeta {
  const named = (text: string) => text.replaceAll(meta.id, made.id);
  const edges = meta.edges.map(
    ({ url: _url, headers: _headers, file, ...edge }): SampleStage => ({
      ...edge,
      file: named(file),
    }),
  );
  const { run: _run, session: _session, owner: _owner, ...rest } = meta;
  const time = Number(made.id.split('_')[1]);
  return { about: made.about, ...rest, id: made.id, time, edges };
}

async function make(stage: Stage, made: Case): Promise<Played> {
  const played = await play(stage, made.entry, made.body, made.steps);
  const from = join(stage.gateway.home, 'state/samples', made.entry);
  const folder = join(ROOT, made.entry);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (name.startsWith(made.id)) rmSync(join(folder, name));
  for (const { file } of played.meta.edges) {
    const text = readFileSync(join(from, file), 'utf8')
      .replaceAll(played.id.slice('req_'.length), made.id.slice('req_'.length))
      .replace(CLOCK, '$11790000000');
    writeFileSync(join(folder, file.replace(played.id, made.id)), text);
  }
  const meta = JSON.stringify(portable(played.meta, made), null, 2);
  writeFileSync(join(folder, `${made.id}_meta.json`), `${meta}\n`);
  return played;
}

/** Those that are there already and were not written here: their own request and answer once more. */
const again = (): readonly Case[] =>
  allSamples()
    .filter(({ id }) => CASES.every((one) => one.id !== id))
    .map((sample) => ({
      id: sample.id,
      entry: sample.entry,
      about: sample.meta.about,
      body: sample.read('client-request') ?? '',
      steps: recordedSteps(sample),
    }));

// When it was made says nothing.
const CLOCK = /("(?:created|created_at|completed_at)":)\d+/g;

const [word = ''] = process.argv.slice(2);
const stage = await startStage();
try {
  for (const one of [...again(), ...CASES].filter(({ id }) => id.includes(word))) {
    const { status, reset, meta } = await make(stage, one);
    const notes = meta.notes.map(({ name }) => name).join(' ');
    console.log(`${one.id}: ${status}${reset ? ', reset' : ''}, ${meta.hops} hops; ${notes}`);
  }
} finally {
  await stage.stop();
}

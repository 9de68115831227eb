/** Time and size of a memory of 100,000 events: `bun bench/memory-size.ts [--events N]`. */

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { NewMemoryEvent } from '../src/conversation/memory.ts';
import { DEFAULT_LIMITS } from '../src/features/memory/event.ts';
import { type Embedder, embeddedMemory } from '../src/features/memory/index.ts';
import { MemoryStore } from '../src/features/memory/store/memory-store.ts';
import { inFile } from '../src/features/memory/store/own-memory.ts';
import { Vectors } from '../src/features/memory/store/vectors.ts';
import { EVENTS, QUESTIONS } from '../test/features/memory/recall-set.ts';
import { threadTime } from '../test/support/thread-time.ts';

const inList = (place: number) => `events[${place}]`;
const { values } = parseArgs({ options: { events: { type: 'string', default: '100000' } } });
const COUNT = Number(values.events);
const DIMENSIONS = 1024;
const DAY = 86_400_000;

let state = 20_261_122;
/** The same numbers in every run. */
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

/** Pieces of the labelled set, put together anew: words as frequent as people use them. */
const CHINESE = EVENTS.filter(([, text]) => /\p{Script=Han}/u.test(text));
const ENGLISH = EVENTS.filter(([, text]) => !/\p{Script=Han}/u.test(text));
const pieces = (from: typeof EVENTS) =>
  from.flatMap(([, text]) => text.split(/(?<=[，。！,.!?])/u));
const PIECES = [pieces(CHINESE), pieces(ENGLISH)] as const;
/** Rare names and numbers, as every message has some. */
const rare = (chinese: boolean) =>
  chinese
    ? String.fromCodePoint(...Array.from({ length: 2 }, () => 0x4e00 + Math.floor(random() * 6000)))
    : Math.floor(random() * 60_000)
        .toString(26)
        .replace(/\d/g, (digit) => 'qrstuvwxyz'[+digit]!);

function event(at: number, now: number): NewMemoryEvent {
  const chinese = random() < 0.6;
  const from = PIECES[chinese ? 0 : 1];
  const words = [pick(from), rare(chinese), pick(from), chinese ? rare(true) : pick(from)];
  return {
    text: words.join(chinese ? '' : ' '),
    source: pick(EVENTS)[0],
    time: now - Math.floor(((COUNT - at) / COUNT) * 365 * DAY),
    importance: Math.round(random() * 10) / 10,
  };
}

/** Vectors without meaning: what is measured is the search among them. */
const embedder: Embedder = {
  name: 'bench',
  embed: async (texts) => texts.map(() => vector()),
  embedQuery: async () => vector(),
};
function vector(): Float32Array {
  const out = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
  const length = Math.sqrt(out.reduce((sum, value) => sum + value * value, 0));
  return out.map((value) => value / length);
}

const percentile = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))]!;
interface Recalls {
  readonly times: readonly number[];
  /** Milliseconds of CPU that this thread takes for each: a busy machine blurs them less. */
  readonly cpu: readonly number[];
  /** Milliseconds of CPU of the whole process for each, on average. */
  readonly all: number;
}
const row = (what: string, { times, cpu, all }: Recalls) => {
  const shares = [0.5, 0.95].flatMap((share) => [percentile(times, share), percentile(cpu, share)]);
  console.log(`| ${what} | ${[...shares, all].map((ms) => ms.toFixed(1)).join(' | ')} |`);
};

const folder = mkdtempSync(join(tmpdir(), 'hopgate-bench-memory-'));
const path = join(folder, 'memory.db');
const now = Date.now();
const silent = { captured() {}, recalled() {}, problem: console.error, embeddingsFailed() {} };
const open = (with_?: Embedder) =>
  embeddedMemory({
    path,
    limits: { ...DEFAULT_LIMITS, events: COUNT },
    dedupeMs: 0,
    observer: silent,
    embedder: with_,
  });
const size = () => `${(statSync(path).size / 2 ** 20).toFixed(0)} MB`;

async function recalls(
  memory: ReturnType<typeof open>,
  queries: readonly string[],
): Promise<Recalls> {
  const times: number[] = [];
  const cpu: number[] = [];
  const before = process.cpuUsage();
  for (const query of queries) {
    const began = performance.now();
    const used = threadTime();
    await memory.recall('bench', { query, limit: 10 });
    cpu.push(threadTime() - used);
    times.push(performance.now() - began);
  }
  const { user, system } = process.cpuUsage(before);
  return { times, cpu, all: (user + system) / 1000 / queries.length };
}

try {
  const memory = open();
  const events = Array.from({ length: COUNT }, (_, at) => event(at, now));
  const began = performance.now();
  for (let at = 0; at < COUNT; at += 1000) {
    await memory.eventStore!.add('bench', events.slice(at, at + 1000), inList);
  }
  const seconds = (performance.now() - began) / 1000;
  const questions = QUESTIONS.map(([question]) => question);
  const short = questions.flatMap((question) => question.match(/\p{Script=Han}{2}/gu) ?? []);
  const messages = Array.from({ length: 200 }, (_, at) => event(at, now).text);
  console.log(`${cpus()[0]!.model}, Bun ${Bun.version}; ${COUNT} events in one space\n`);
  console.log(
    `Added in ${seconds.toFixed(1)} s (${Math.round(COUNT / seconds)} a second), ${size()}.\n`,
  );
  console.log(
    '| recall of 10, ms | p50 | its CPU | p95 | its CPU | CPU of the process |\n| --- | --: | --: | --: | --: | --: |',
  );
  const thrice = [...questions, ...questions, ...questions];
  // Bun compiles what runs often.
  for (const queries of [thrice, short, messages, thrice]) await recalls(memory, queries);
  row('the 60 questions of the labelled set, three times', await recalls(memory, thrice));
  row('two Chinese characters', await recalls(memory, short));
  row('whole messages', await recalls(memory, messages));
  await memory.close();

  // The vectors are put in as the back-fill would, without its pauses.
  const store = new MemoryStore({ ...inFile(path).open(), limits: DEFAULT_LIMITS, dedupeMs: 0 });
  const work = new Vectors(store);
  for (let behind = 0; ; ) {
    const unseen = await work.next(embedder.name, behind, 1000);
    if (unseen.events.length === 0) break;
    await work.put(embedder.name, new Map(unseen.events.map((one) => [one.row, vector()])));
    behind = unseen.behind;
  }
  store.db.close();
  const hybrid = open(embedder);
  const first = await recalls(hybrid, questions.slice(0, 1));
  row(`with ${DIMENSIONS} dimensions, in memory`, await recalls(hybrid, questions));
  console.log(
    `\nThe first recall with vectors reads them: ${first.times[0]!.toFixed(0)} ms. ${size()}.`,
  );
  const erasing = performance.now();
  await hybrid.erase('bench');
  console.log(`Erased in ${((performance.now() - erasing) / 1000).toFixed(1)} s, then ${size()}.`);
  await hybrid.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

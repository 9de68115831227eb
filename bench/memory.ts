/** How well and how fast the memory recalls labelled sets: `bun bench/memory.ts [DATA] [--help]`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { MemoryEvent } from '../src/conversation/memory.ts';
import { estimatedTokens } from '../src/conversation/usage.ts';
import { DEFAULT_LIMITS } from '../src/features/memory/event.ts';
import { embeddedMemory, embedder } from '../src/features/memory/index.ts';
import type { Json } from '../src/lib/json/json.ts';
import { type LabelledSpace, labelledSets } from './memory-sets.ts';

const HELP = `bun bench/memory.ts [DATA] [options]

DATA: a file or folder with LoCoMo's own files, or {name, spaces: [{name, split, events, questions}]}.
Without it: the 60 questions of the project's own set, and 102 in six further languages.

  --validation   also what nothing was tuned on (LoCoMo 44, 47 to 50; split "val")
  --set NAME     only this set
  --misses N     the first N questions without evidence among the first eight

  --embeddings URL   also vectors, of an OpenAI-style endpoint (http://127.0.0.1:8000/v1/embeddings)
  --model NAME, --query-prefix TEXT, --passage-prefix TEXT   of its model
`;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    validation: { type: 'boolean', default: false },
    set: { type: 'string' },
    misses: { type: 'string', default: '0' },
    embeddings: { type: 'string' },
    model: { type: 'string', default: 'default' },
    'query-prefix': { type: 'string', default: '' },
    'passage-prefix': { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

/** Events that a turn of a conversation gets. */
const BUDGET = 8;
const DEPTHS = [5, BUDGET, 10, 20] as const;
const MAX_DEPTH = 20;

interface Measured {
  readonly category: string;
  /** Place of the first evidence from 0; -1: none among the first 20. */
  readonly first: number;
  /** Share of the evidence among the first so many. */
  readonly shares: readonly number[];
  readonly tokens: number;
  readonly ms: number;
}

const silent = { captured() {}, recalled() {}, problem: console.error, embeddingsFailed() {} };
const folder = mkdtempSync(join(tmpdir(), 'hopgate-bench-memory-'));
let files = 0;
let missesLeft = Number(values.misses);

/** Vectors of the endpoint. @param told the number of texts of events that have theirs */
const vectorsOf = (url: string, told: (texts: number) => void) => {
  const made = embedder({
    name: values.model,
    model: values.model,
    queryPrefix: values['query-prefix'],
    passagePrefix: values['passage-prefix'],
    timeoutMs: 60_000,
    async post(body) {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
      return (await answer.json()) as Json;
    },
    onFailure: (thrown) => {
      throw thrown;
    },
  });
  return {
    ...made,
    async embed(...[texts, signal]: Parameters<typeof made.embed>) {
      const vectors = await made.embed(texts, signal);
      told(texts.length);
      return vectors;
    },
  };
};

/** What the model gets of an event. */
const told = ({ id, time, text, source, tags }: MemoryEvent) => ({
  id,
  time: new Date(time).toISOString(),
  text,
  ...(source === undefined ? {} : { source }),
  ...(tags.length === 0 ? {} : { tags }),
});

async function measured(spaces: readonly LabelledSpace[]) {
  let withVectors = 0;
  const url = values.embeddings;
  const memory = embeddedMemory({
    path: join(folder, `${++files}.db`),
    limits: { ...DEFAULT_LIMITS, text: 100_000 },
    dedupeMs: 0,
    observer: silent,
    ...(url !== undefined && {
      embedder: vectorsOf(url, (texts) => {
        withVectors += texts;
      }),
    }),
  });
  const found: Measured[] = [];
  let cpu = 0;
  for (const { name, events } of spaces) {
    await memory.eventStore!.addInSteps(name, events, (at) => `events[${at}]`);
  }
  const all = spaces.reduce((sum, { events }) => sum + events.length, 0);
  while (url !== undefined && withVectors < all) await Bun.sleep(100);
  for (const { name, events, questions } of spaces) {
    // The first recall of a space reads its pages.
    await memory.recall(name, { query: events[0]!.text, limit: BUDGET });
    for (const { text, evidence, category } of questions) {
      const cpuBefore = process.cpuUsage();
      const began = performance.now();
      const given = await memory.recall(name, { query: text, limit: BUDGET });
      const ms = performance.now() - began;
      const { user, system } = process.cpuUsage(cpuBefore);
      cpu += (user + system) / 1000;
      const deep = await memory.recall(name, { query: text, limit: MAX_DEPTH });
      const ids = deep.map(({ id }) => id);
      const first = ids.findIndex((id) => evidence.includes(id));
      const shareOf = (list: readonly string[]) =>
        evidence.filter((id) => list.includes(id)).length / evidence.length;
      const shares = DEPTHS.map((depth) =>
        shareOf(depth === BUDGET ? given.map(({ id }) => id) : ids.slice(0, depth)),
      );
      found.push({
        category,
        first,
        shares,
        tokens: estimatedTokens(Buffer.byteLength(JSON.stringify({ events: given.map(told) }))),
        ms,
      });
      if (shares[1] === 0 && missesLeft-- > 0) {
        console.log(`\n? ${name} [${category}] ${text}`);
        for (const id of evidence) {
          const { source, text: said } = events.find((event) => event.id === id)!;
          console.log(`  = ${source}: ${said}`);
        }
        for (const { source, text: said, score } of given) {
          console.log(`  - ${score} ${source}: ${said.slice(0, 150)}`);
        }
      }
    }
  }
  await memory.close();
  return { found, cpu };
}

const mean = (numbers: readonly number[]) =>
  numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
const percent = (share: number) => (share * 100).toFixed(1);

function row(what: string, found: readonly Measured[], cpu?: number): void {
  const places = found.map(({ first }) => (first < 0 ? 0 : 1 / (first + 1)));
  const cells = [
    percent(mean(found.map(({ first }) => Number(first === 0)))),
    ...DEPTHS.map((_, at) => percent(mean(found.map(({ shares }) => shares[at]!)))),
    mean(places).toFixed(3),
    mean(found.map(({ tokens }) => tokens)).toFixed(0),
    Math.max(...found.map(({ tokens }) => tokens)).toFixed(0),
    mean(found.map(({ ms }) => ms)).toFixed(2),
    cpu === undefined ? '' : (cpu / found.length).toFixed(2),
  ];
  console.log(`| ${what} (${found.length}) | ${cells.join(' | ')} |`);
}

console.log(
  `${cpus()[0]!.model}, Bun ${Bun.version}; ${values.embeddings === undefined ? 'words alone' : `words and ${values.model}`}\n`,
);
console.log(
  `| questions | hit@1 | ${DEPTHS.map((depth) => `R@${depth}`).join(' | ')} | MRR | tokens | most | ms | CPU, ms |`,
);
console.log(`| --- |${' --: |'.repeat(DEPTHS.length + 6)}`);
try {
  for (const { name, spaces } of labelledSets(positionals[0])) {
    if (values.set !== undefined && values.set !== name) continue;
    for (const split of ['dev', 'validation'] as const) {
      if (split === 'validation' && !values.validation) continue;
      const own = spaces.filter((one) => one.split === split);
      if (own.length === 0) continue;
      const { found, cpu } = await measured(own);
      row(`**${name}, ${split}**`, found, cpu);
      const categories = Map.groupBy(found, ({ category }) => category);
      for (const [category, some] of [...categories].sort()) row(category, some);
      if (name === 'locomo') {
        row(
          'categories 1 to 4',
          found.filter(({ category }) => category !== 'adversarial'),
        );
      }
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

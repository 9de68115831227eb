/** Real coding agents, headless, through the compiled binary against strict fake vendors: tool loops, web searches and compactions. Words on the command line choose agents by their names. */

import type { Protocol } from '../test/support/fake-upstream/index.ts';
import { type Agent, BY_HAND } from './agents/agent.ts';
import { compactionRound } from './agents/compaction.ts';
import { installed } from './agents/install.ts';
import { round } from './agents/round.ts';
import { searchRound } from './agents/search.ts';
import { SET_UP } from './agents/set-up.ts';

const OWN: Readonly<Record<string, Protocol>> = {
  'Claude Code': 'anthropic-messages',
  Codex: 'openai-responses',
};

// --direct: each agent against a vendor of its own protocol, without the gateway.
const direct = process.argv.includes('--direct');
const words = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const isChosen = ({ name }: Agent): boolean =>
  words.length === 0 || words.some((word) => name.toLowerCase().includes(word.toLowerCase()));
let passed = 0;
let failed = 0;
let skipped = 0;

interface Run {
  readonly title: string;
  /** Resolves with what went wrong, or undefined. */
  readonly start: () => Promise<string | undefined>;
}

function runsOf(agent: Agent): readonly Run[] {
  const name = `${agent.name} ${agent.package.version}`;
  const via = direct ? 'directly' : 'hopgate';
  const own = agent.vendors.filter((protocol) => !direct || protocol === OWN[agent.name]);
  const loops = own.map((protocol) => ({
    title: `${name} → ${via} → ${protocol}`,
    start: () => round(agent, protocol, direct),
  }));
  if (direct) return loops;
  const { search } = agent;
  const more: Run[] = [];
  if (search !== undefined) {
    const title = `${name} searching the web → ${via} → openai-chat`;
    more.push({ title, start: () => searchRound(agent, search) });
  }
  if (agent.compacts === true) {
    for (const protocol of agent.vendors) {
      const title = `${name} compacting, built-in provider → ${via} → ${protocol}`;
      more.push({ title, start: () => compactionRound(protocol) });
    }
  }
  return [...loops, ...more];
}

/** What keeps the agent from being run: the installer's words. */
async function missingPart({ package: own, runtime }: Agent): Promise<string | undefined> {
  try {
    await installed(own);
    if (runtime !== undefined) await installed(runtime);
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

async function runAll(agent: Agent): Promise<void> {
  const { name, version } = agent.package;
  const missing = await missingPart(agent);
  for (const { title, start } of runsOf(agent)) {
    if (missing !== undefined) {
      skipped++;
      console.log(`SKIP ${title}: ${name}@${version} could not be installed\n${missing}`);
      continue;
    }
    const started = performance.now();
    const wrong = await start().catch((error: unknown) => String(error));
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if (wrong === undefined) passed++;
    else failed++;
    console.log(`${wrong === undefined ? 'ok  ' : 'FAIL'} ${title} (${seconds} s)`);
    if (wrong !== undefined) console.log(wrong.replace(/^/gm, '     '));
  }
}

// Two at a time: each waits for its own start and its own clocks half of the time.
const waiting = [...BY_HAND, ...SET_UP].filter(isChosen);
const next = async (): Promise<void> => {
  for (let agent = waiting.shift(); agent !== undefined; agent = waiting.shift())
    await runAll(agent);
};
await Promise.all([next(), next()]);

console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);

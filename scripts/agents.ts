/** Real coding agents, headless, through the compiled binary against strict fake vendors: nine tool loops, three web searches. */

import type { Protocol } from '../test/support/fake-upstream/index.ts';
import { AGENTS, type Agent } from './agents/agent.ts';
import { installed } from './agents/install.ts';
import { round } from './agents/round.ts';
import { searchRound } from './agents/search.ts';

const PROTOCOLS: readonly Protocol[] = ['openai-chat', 'openai-responses', 'anthropic-messages'];
const OWN: Readonly<Record<string, Protocol>> = {
  'Claude Code': 'anthropic-messages',
  Codex: 'openai-responses',
};

// --direct: each agent against a vendor of its own protocol, without the gateway.
const direct = process.argv.includes('--direct');
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
  const own = PROTOCOLS.filter((protocol) => !direct || protocol === OWN[agent.name]);
  const loops = own.map((protocol) => ({
    title: `${name} → ${via} → ${protocol}`,
    start: () => round(agent, protocol, direct),
  }));
  if (direct) return loops;
  const title = `${name} searching the web → ${via} → openai-chat`;
  return [...loops, { title, start: () => searchRound(agent) }];
}

for (const agent of AGENTS) {
  const { name, version } = agent.package;
  const missing = await installed(agent.package).then(
    () => undefined,
    (error: Error) => error.message,
  );
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

console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);

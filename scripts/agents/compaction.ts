/** Codex, whose conversation becomes too long: it asks for a compaction, and goes on from the summary. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../test/support/binary.ts';
import {
  call,
  type Protocol,
  say,
  startFakeUpstream,
  toolNames,
  toolResults,
} from '../../test/support/fake-upstream/index.ts';
import { type Agent, codexBuiltIn } from './agent.ts';
import { runAgent } from './round.ts';

/** Tokens from which Codex compacts. */
const LIMIT = 20_000;
const SUMMARY = 'The user wants a file, and it was written.';

/** @returns what went wrong, or undefined */
export async function compactionRound(protocol: Protocol): Promise<string | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'hopgate-agent-'));
  const work = join(scratch, 'work');
  const home = join(scratch, 'home');
  await mkdir(work);
  await mkdir(home);
  const agent: Agent = codexBuiltIn([`model_auto_compact_token_limit = ${LIMIT}`]);
  const upstream = await startFakeUpstream({
    protocols: [protocol],
    keys: ['sk-upstream'],
    models: ['m1'],
  });
  const gateway = await startGateway({
    providers: {
      vendor: {
        protocol,
        base_url: upstream.baseUrl(protocol),
        keys: ['sk-upstream'],
        models: ['m1'],
      },
    },
    routes: [{ to: ['vendor/m1'] }],
  });
  try {
    const last = 'Done, after the compaction.';
    upstream.answerWith(({ body }) => {
      const text = JSON.stringify(body);
      if (text.includes('Write a summary')) return say(SUMMARY);
      if (!toolNames(protocol, body).includes('exec_command')) return say('A short title');
      if (text.includes(SUMMARY)) return say(last);
      if (toolResults(protocol, body).size > 0) return say('Done, and nothing was compacted.');
      const asked = call({ name: 'exec_command', arguments: { cmd: 'echo proof > proof.txt' } });
      return { ...asked, usage: { input: 3 * LIMIT, output: 50 } };
    });
    const run = await runAgent(agent, { base: gateway.url, work, home }, 'Create proof.txt.');
    const told = () =>
      `\n--- agent\n${run.stdout.slice(-2000)}\n${run.stderr.slice(-1000)}\n--- gateway\n${gateway.stderr().slice(-2000)}`;
    if (upstream.refusals.length > 0) {
      return `the vendor refused: ${upstream.refusals.join(' | ')}${told()}`;
    }
    const notes = gateway.logs().map((line) => String(line.notes ?? ''));
    for (const note of ['compacted_by_summary', 'summary_read']) {
      if (!notes.some((one) => one.includes(note))) return `no exchange has ${note}${told()}`;
    }
    const words = agent.finalText(run.stdout).trim();
    if (words !== last) return `the agent's last words were ${JSON.stringify(words)}${told()}`;
    return run.code === 0 ? undefined : `the agent ended with code ${run.code}${told()}`;
  } finally {
    await gateway.stop();
    await upstream.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

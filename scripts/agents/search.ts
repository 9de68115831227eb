/** One agent searching the web through the gateway, whose vendor speaks Chat and has no search of its own. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../test/support/binary.ts';
import {
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  toolNames,
  toolResults,
} from '../../test/support/fake-upstream/index.ts';
import { pagesFor, startToolServers, toolsOf } from '../../test/support/tool-servers.ts';
import type { Agent, Search } from './agent.ts';
import { runAgent } from './round.ts';

/** A vendor that asks for one search and, once it has the result, says the last words. */
function scriptVendor(upstream: FakeUpstream, search: Search, query: string, last: string) {
  upstream.answerWith(({ body }) => {
    const names = toolNames('openai-chat', body);
    if (names.includes(search.tool)) {
      if (toolResults('openai-chat', body).size > 0) return say(last);
      const asked = call({ name: search.tool, arguments: { query } });
      return { ...asked, parts: [{ kind: 'text', text: 'I will search.' }, ...asked.parts] };
    }
    // The request of its own in which Claude Code searches: the results are in it already.
    if (names.includes('web_search')) return say('It is said there [1], and there [2].');
    return say('A short title');
  });
}

/**
 * Runs the agent against a strict vendor of Chat and a search engine on this machine.
 * @returns what went wrong, or undefined
 */
export async function searchRound(agent: Agent, search: Search): Promise<string | undefined> {
  const scratch = await mkdtemp(join(tmpdir(), 'hopgate-agent-'));
  const work = join(scratch, 'work');
  const home = join(scratch, 'home');
  await mkdir(work);
  await mkdir(home);
  const world = await startToolServers();
  const upstream = await startFakeUpstream({
    protocols: ['openai-chat'],
    keys: ['sk-upstream'],
    models: ['m1'],
  });
  const { web_search } = toolsOf(world, 'declared');
  const gateway = await startGateway({
    providers: {
      vendor: {
        protocol: 'openai-chat',
        base_url: upstream.baseUrl('openai-chat'),
        keys: ['sk-upstream'],
        models: ['m1'],
      },
    },
    routes: [{ to: ['vendor/m1'] }],
    server_tools: { web_search },
  });
  try {
    const query = `tides ${crypto.randomUUID().slice(0, 8)}`;
    const last = `Done: I searched for ${query}.`;
    scriptVendor(upstream, search, query, last);
    const places = { base: gateway.url, work, home };
    const run = await runAgent(agent, places, `Search the web for ${query}.`, search.env);
    const told = () =>
      `\n--- agent\n${run.stdout.slice(-3000)}\n${run.stderr.slice(-1000)}\n--- gateway\n${gateway.stderr().slice(-2000)}`;
    if (upstream.refusals.length > 0) {
      return `the vendor refused: ${upstream.refusals.join(' | ')}${told()}`;
    }
    const queries = world.reached.map(({ query: asked }) => asked.get('q'));
    if (queries.join() !== query) return `the engine was asked ${JSON.stringify(queries)}${told()}`;
    const links = pagesFor(query).map(({ url }) => url);
    const results = upstream.modelRequests.flatMap(({ body }) => [
      ...toolResults('openai-chat', body).values(),
    ]);
    const unseen = links.find((link) => !results.some((text) => text.includes(link)));
    if (unseen !== undefined) return `the vendor never saw ${unseen}${told()}`;
    const complaint = search.complaint(run.stdout, query, links);
    if (complaint !== undefined) return complaint + told();
    const words = agent.finalText(run.stdout).trim();
    if (words !== last) return `the agent's last words were ${JSON.stringify(words)}${told()}`;
    return run.code === 0 ? undefined : `the agent ended with code ${run.code}${told()}`;
  } finally {
    await gateway.stop();
    await upstream.stop();
    await world.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** What a key may not do itself, a replay in its name may not do either, whatever it changes on the way. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { ReplayResult } from '../../../../src/ui/api/api.ts';
import { threeProviders } from '../../../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../../support/in-process.ts';
import { client, eventsOfJob } from '../../api-setup.ts';

setDefaultTimeout(60_000);

const headers = { authorization: 'Bearer ann-secret-key' };
let upstream: FakeUpstream;
let gateway: InProcess;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  upstream.answerWith(() => say('Fine.'));
  const config = threeProviders(upstream, {
    auth: { keys: [{ name: 'ann', key: 'ann-secret-key', tools: ['web_fetch'] }] },
  });
  gateway = await startInProcess(config);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

/** Made once for all tests: in one second only so many exchanges are kept in memory. */
const made = new Map<string, Promise<string>>();
function recorded(path: string, body: object): Promise<string> {
  if (!made.has(path)) made.set(path, client(gateway).post(path, body, headers));
  return made.get(path)!;
}

const ask = (body: object) => client(gateway).send('POST', 'replay', body, headers);

async function runsOf(response: Response): Promise<ReplayResult> {
  const { job } = (await response.json()) as { job: string };
  const events = await Array.fromAsync(eventsOfJob(client(gateway), job, headers));
  const end = events.at(-1)!;
  if (end.type !== 'end') throw new Error(JSON.stringify(end));
  return end.result as ReplayResult;
}

const SEARCH = {
  responses: { type: 'web_search' },
  messages: { type: 'web_search_20250305', name: 'web_search' },
};
const REQUESTS = {
  responses: { path: '/v1/responses', body: { model: 'via-responses', input: 'Hi.' } },
  messages: {
    path: '/v1/messages',
    body: {
      model: 'via-messages',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi.' }],
    },
  },
};

test.each(
  (['responses', 'messages'] as const).flatMap((protocol) => [
    { protocol, more: { repair: false } },
    { protocol, more: { stage: 'provider-request' } },
  ]),
)(
  'a replay cannot use a tool that its key may not use: $protocol $more',
  async ({ protocol, more }) => {
    const { path, body } = REQUESTS[protocol];
    const id = await recorded(path, body);
    const sent = upstream.modelRequests.length;
    const edits = [`tools=${JSON.stringify([SEARCH[protocol]])}`];
    const response = await ask({ id, edits, ...more });
    const { runs } = await runsOf(response);
    expect(runs.length).toBeGreaterThan(0);
    for (const run of runs) expect(run.status).toBe(403);
    expect(upstream.modelRequests.length).toBe(sent);
  },
);

/** Faults between the hops of server tools, and what must survive from one hop to the next. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  type Answer,
  call,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { startToolServers, stopAll, type ToolServers, toolsOf } from '../support/tool-servers.ts';
import { CLIENT_CHATS, PROTOCOLS, plainRequest, post, VIA } from './clients.ts';
import { framing } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

let upstream: FakeUpstream;
let toolServers: ToolServers;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  const retry = { attempts: 3, base_delay: 0.02, max_delay: 2 };
  const config = threeProviders(upstream, { retry, server_tools: toolsOf(toolServers) }) as {
    routes: object[];
  };
  // Each pair of vendors: the second takes over when the first gives up.
  const ways = PROTOCOLS.map((protocol) => VIA[protocol]);
  for (const first of ways) {
    for (const second of ways) {
      const to = [first, second].map((via) => `${via.slice('via-'.length)}/m1`);
      config.routes.push({ when: { model: `${first}-${second}` }, to });
    }
  }
  gateway = await startGateway(config);
}, 120_000);
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(gateway, upstream, toolServers));

const search = { name: 'web_search', arguments: { query: 'tides' } };
const thinking = (answer: Answer, text: string): Answer => ({
  ...answer,
  parts: [{ kind: 'reasoning', text, sealed: true }, ...answer.parts],
});

/** Everything a client sees of one exchange. */
async function ask(client: (typeof PROTOCOLS)[number], model: string, stream: boolean) {
  const { path, body } = plainRequest(client, model, stream);
  const response = await post(gateway.url, path, body);
  let text = '';
  let broken = false;
  try {
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    broken = true;
  }
  return { status: response.status, text, broken };
}

for (const client of PROTOCOLS) {
  for (const vendor of PROTOCOLS) {
    describe(`${client} → ${vendor}`, () => {
      const calls = () => upstream.enqueue(call(search));

      test('a vendor that fails after the tool is retried; the tool does not run again', async () => {
        calls();
        upstream.enqueue(
          refuse(503),
          say('', { delivery: { before: 'reset' } }),
          say('High at noon.'),
        );
        const reply = await ask(client, VIA[vendor], true);
        expect(reply).toMatchObject({ status: 200, broken: false });
        expect(reply.text).toContain('High at');
        expect(framing(client, reply.text)).toEqual({ starts: 1, terminals: 1, gapless: true });
        expect(toolServers.reached).toHaveLength(1);
        expect(upstream.modelRequests).toHaveLength(4);
        const [, first, ...again] = upstream.modelRequests;
        for (const one of again) expect(one.body).toEqual(first!.body);
        expect(upstream.refusals).toEqual([]);
      });

      test('a vendor that refuses after the tool is an error, never a clean end', async () => {
        calls();
        upstream.enqueue(refuse(400));
        const streamed = await ask(client, VIA[vendor], true);
        expect(streamed.status).toBe(200);
        expect(streamed.text).toMatch(/"error"|response\.failed/);
        expect(streamed.text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
        calls();
        upstream.enqueue(refuse(400));
        const whole = await ask(client, VIA[vendor], false);
        expect(whole.status).toBe(400);
        expect(whole.text).not.toContain('web_search');
      });

      test('an answer cut in its last words is reported as cut', async () => {
        calls();
        upstream.enqueue(
          say('High at noon and low at six.', { delivery: { cut: { at: 0.6, by: 'reset' } } }),
        );
        const reply = await ask(client, VIA[vendor], true);
        expect(reply.broken).toBe(true);
        expect(reply.text).toMatch(/"error"|response\.failed/);
        expect(reply.text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
      });

      for (const stream of [true, false]) {
        test(`reasoning before a call goes back up with the call, ${stream ? 'streamed' : 'whole'}`, async () => {
          upstream.enqueue(
            thinking(call(search), 'I should look it up.'),
            thinking(say('High at noon.'), 'Now I know.'),
            say('You are welcome.'),
          );
          const chat = CLIENT_CHATS[client](gateway.url, {
            model: VIA[vendor],
            stream,
            think: true,
          });
          const response = await chat.say('When is high tide?');
          expect(upstream.refusals).toEqual([]);
          expect(response).toMatchObject({ text: 'High at noon.', calls: [], finish: 'stop' });
          expect(response.reasoning).toContain('I should look it up.');
          expect(response.reasoning).toContain('Now I know.');
          const again = JSON.stringify(upstream.modelRequests[1]!.body);
          if (vendor !== 'openai-chat') expect(again).toMatch(/"signature"|"encrypted_content"/);
          const thanked = await chat.say('Thanks.');
          expect(upstream.refusals).toEqual([]);
          expect(thanked.text).toBe('You are welcome.');
          const sent = sentHistory(vendor, upstream.modelRequests[2]!.body);
          expect(sent.map(({ role }) => role)).toEqual([
            'user',
            'assistant',
            'tool',
            'assistant',
            'user',
          ]);
        });
      }

      for (const second of PROTOCOLS.filter((one) => one !== vendor)) {
        test(`another vendor takes over after the tool: ${second}`, async () => {
          upstream.answerWith(({ protocol, body }) => {
            const knows = sentHistory(protocol!, body).some(({ role }) => role === 'tool');
            if (!knows) return call(search);
            return protocol === vendor ? refuse(503) : say('High at noon.');
          });
          const reply = await ask(client, `${VIA[vendor]}-${VIA[second]}`, true);
          expect(upstream.refusals).toEqual([]);
          expect(reply).toMatchObject({ status: 200, broken: false });
          expect(reply.text).toContain('High at');
          expect(framing(client, reply.text)).toEqual({ starts: 1, terminals: 1, gapless: true });
          expect(toolServers.reached).toHaveLength(1);
          const last = upstream.modelRequests.at(-1)!;
          expect(last.protocol).toBe(second);
          expect(sentHistory(second, last.body).map(({ role }) => role)).toEqual([
            'user',
            'assistant',
            'tool',
          ]);
        });
      }
    });
  }
}

describe('a stored response as the history', () => {
  for (const vendor of PROTOCOLS) {
    test(`${vendor}: previous_response_id restores the hidden call and its result`, async () => {
      const respond = async (body: JsonObject) => {
        const response = await post(gateway.url, '/v1/responses', { model: VIA[vendor], ...body });
        expect(response.status).toBe(200);
        return (await response.json()) as { id: string; output: { type: string }[] };
      };
      upstream.enqueue(call(search), say('High at noon.'), say('At six.'));
      const first = await respond({ input: 'When is high tide?' });
      const next = await respond({ input: 'And low?', previous_response_id: first.id });
      expect(upstream.refusals).toEqual([]);
      expect(next.output.map(({ type }) => type)).toEqual(['message']);
      expect(sentHistory(vendor, upstream.modelRequests[2]!.body)).toMatchObject([
        { role: 'user', text: 'When is high tide?' },
        { role: 'assistant', calls: [{ name: 'web_search' }] },
        { role: 'tool' },
        { role: 'assistant', text: 'High at noon.' },
        { role: 'user', text: 'And low?' },
      ]);
    });
  }
});

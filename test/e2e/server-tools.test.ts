/** Tools that the gateway runs, through the binary: every client, every vendor, every course of a turn. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  type Answer,
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  toolNames,
} from '../support/fake-upstream/index.ts';
import {
  PRICE,
  pagesFor,
  startToolServers,
  stopAll,
  type ToolServers,
  toolsOf,
} from '../support/tool-servers.ts';
import { until } from '../support/until.ts';
import { PROTOCOLS, VIA } from './clients.ts';
import { framing, OWN, SEARCH_CHATS, type SearchReply } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

let upstream: FakeUpstream;
let toolServers: ToolServers;
let gateway: Gateway;
/** The same with two follow-up hops. */
let capped: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  const tools = { server_tools: toolsOf(toolServers) };
  gateway = await startGateway(threeProviders(upstream, tools));
  capped = await startGateway(threeProviders(upstream, { ...tools, limits: { tool_rounds: 2 } }));
}, 120_000);
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(gateway, capped, upstream, toolServers));

const counted = (answer: Answer): Answer => ({ ...answer, usage: { input: 500, output: 20 } });
const search = (query: string) => ({ name: 'web_search', arguments: { query } });
const price = (symbol: string) => ({ name: 'stock_price', arguments: { symbol } });
const weather = { name: OWN, arguments: { city: 'Oslo' } };
const before = (text: string, answer: Answer): Answer => ({
  ...answer,
  parts: [{ kind: 'text', text }, ...answer.parts],
});

/** The text that the model gets for a search whose first result has this number. */
const found = (query: string, first = 1) => ({
  query,
  results: pagesFor(query).map((page, at) => ({
    n: first + at,
    ...page,
    snippet: `Text of ${page.title}`,
  })),
});

const linesOf = (from: Gateway, name: string) => from.logs().filter(({ event }) => event === name);

/** The number of log lines of this event after the previous exchange has ended. */
async function count(from: Gateway, name: string): Promise<number> {
  for (let length = -1; length !== from.stderr().length; await Bun.sleep(20)) {
    length = from.stderr().length;
  }
  return linesOf(from, name).length;
}

/** The fields of the event's log lines after the first `seen`, once there are any. */
async function logged(from: Gateway, name: string, previous: number) {
  await until(() => linesOf(from, name).length > previous);
  return linesOf(from, name)
    .slice(previous)
    .map(({ level: _level, time: _time, event: _event, ...fields }) => fields);
}

const ENDPOINT = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
} as const;

for (const client of PROTOCOLS) {
  for (const vendor of PROTOCOLS) {
    for (const stream of [true, false]) {
      describe(`${client} → ${vendor}, ${stream ? 'streamed' : 'whole'}`, () => {
        const openChat = (on = gateway, signal?: AbortSignal) =>
          SEARCH_CHATS[client](on.url, { model: VIA[vendor], stream, signal });
        const history = (at: number) => sentHistory(vendor, upstream.modelRequests[at]!.body);
        const offered = (at: number) => toolNames(vendor, upstream.modelRequests[at]!.body);
        const idsOf = (at: number) =>
          history(at)
            .flatMap((one) => (one.role === 'assistant' ? one.calls : []))
            .map((c) => c.id);

        /** One start, one end, no trace of the hidden calls. */
        const clean = (reply: SearchReply) => {
          expect(upstream.refusals).toEqual([]);
          if (stream) {
            expect(framing(client, reply.wire)).toEqual({ starts: 1, terminals: 1, gapless: true });
          }
          expect(reply).toMatchObject({ searches: [], results: [], cited: [] });
          expect(reply.wire).not.toMatch(/web_search|stock_price|srvtoolu|a\.example|"price"/);
        };

        test('one call: its result goes up under its id, and the client reads one plain answer', async () => {
          const cloned = await count(gateway, 'chat.process.raw.cloned');
          const assembled = await count(gateway, 'chat.process.hop3.assembled');
          upstream.enqueue(
            counted(before('Let me look.', call(search('tides')))),
            counted(say('High at noon.')),
          );
          const reply = await openChat().say('When is high tide?');
          clean(reply);
          expect(reply.text.replace(/\s+/g, ' ')).toMatch(/^Let me look\. ?High at noon\.$/);
          expect(reply).toMatchObject({ calls: [], finish: 'stop' });
          expect(reply.usage).toEqual({ input: 1000, output: 40 });
          expect(offered(0)).toEqual([OWN, 'web_search', 'stock_price']);
          expect(offered(1)).toEqual(offered(0));
          const [id] = idsOf(1);
          expect(history(0)).toEqual([{ role: 'user', text: 'When is high tide?' }]);
          const [user, assistant, tool, ...rest] = history(1);
          expect(rest).toEqual([]);
          expect(user).toEqual({ role: 'user', text: 'When is high tide?' });
          expect(assistant).toEqual({
            role: 'assistant',
            text: 'Let me look.',
            calls: [{ id: id!, name: 'web_search', input: { query: 'tides' } }],
          });
          expect(tool).toMatchObject({ role: 'tool', id });
          expect(JSON.parse(tool!.text)).toEqual(found('tides'));
          expect(toolServers.reached.map(({ path }) => path)).toEqual(['/search']);
          expect(await logged(gateway, 'chat.process.raw.cloned', cloned)).toEqual([
            { endpoint: ENDPOINT[client], hasMessages: true },
          ]);
          expect(await logged(gateway, 'chat.process.hop3.assembled', assembled)).toEqual([
            {
              originalMessageCount: 1,
              assistantMessageCount: 1,
              toolMessageCount: 1,
              finalMessageCount: 3,
            },
          ]);
        });

        test('two tools in one turn run concurrently; both results go up in order', async () => {
          toolServers.slow(60);
          upstream.enqueue(
            counted(call(search('ACME'), price('ACME'))),
            counted(say('ACME stands at 41.5.')),
          );
          const reply = await openChat().say('ACME?');
          clean(reply);
          expect(reply).toMatchObject({ text: 'ACME stands at 41.5.', calls: [], finish: 'stop' });
          expect(reply.usage).toEqual({ input: 1000, output: 40 });
          expect(toolServers.together).toBe(2);
          const [, assistant, first, second, ...rest] = history(1);
          expect(rest).toEqual([]);
          const ids = idsOf(1);
          expect(new Set(ids).size).toBe(2);
          expect(assistant).toMatchObject({
            calls: [
              { id: ids[0], name: 'web_search', input: { query: 'ACME' } },
              { id: ids[1], name: 'stock_price', input: { symbol: 'ACME' } },
            ],
          });
          expect(first).toMatchObject({ role: 'tool', id: ids[0] });
          expect(second).toMatchObject({ role: 'tool', id: ids[1] });
          expect(JSON.parse(first!.text)).toEqual(found('ACME'));
          expect(JSON.parse(second!.text)).toEqual({ symbol: 'ACME', price: PRICE });
        });

        test('two rounds: the third request holds both, numbered consecutively, and usage adds up all three', async () => {
          const previous = await count(gateway, 'chat.process.hop3.assembled');
          upstream.enqueue(
            counted(call(search('one'))),
            counted(call(search('two'))),
            counted(say('Both are known.')),
          );
          const reply = await openChat().say('One and two?');
          clean(reply);
          expect(reply).toMatchObject({ text: 'Both are known.', calls: [], finish: 'stop' });
          expect(reply.usage).toEqual({ input: 1500, output: 60 });
          expect(upstream.modelRequests).toHaveLength(3);
          const ids = idsOf(2);
          const messages = history(2);
          expect(messages.map(({ role }) => role)).toEqual([
            'user',
            'assistant',
            'tool',
            'assistant',
            'tool',
          ]);
          expect(messages.slice(0, 3)).toEqual([...history(1)]);
          const [, , one, , two] = messages;
          expect([one, two]).toMatchObject([{ id: ids[0] }, { id: ids[1] }]);
          expect(JSON.parse(one!.text)).toEqual(found('one'));
          expect(JSON.parse(two!.text)).toEqual(found('two', 3));
          const assembled = await logged(gateway, 'chat.process.hop3.assembled', previous + 1);
          expect(assembled).toEqual([
            {
              originalMessageCount: 1,
              assistantMessageCount: 2,
              toolMessageCount: 2,
              finalMessageCount: 5,
            },
          ]);
        });

        test('a mixed turn: the client gets only its own call, and its next request is completed', async () => {
          upstream.enqueue(
            counted(before('Both.', call(search('fjords'), weather))),
            counted(say('Rain on the fjords.')),
          );
          const conversation = openChat();
          const reply = await conversation.say('Fjords?');
          clean(reply);
          expect(reply).toMatchObject({ text: 'Both.', finish: 'calls' });
          expect(reply.calls).toMatchObject([{ name: OWN, input: { city: 'Oslo' } }]);
          expect(reply.usage).toEqual({ input: 500, output: 20 });
          expect(upstream.modelRequests).toHaveLength(1);
          const end = await conversation.answer('rain');
          clean(end);
          expect(end).toMatchObject({ text: 'Rain on the fjords.', calls: [], finish: 'stop' });
          expect(upstream.modelRequests).toHaveLength(2);
          const [user, assistant, ...results] = history(1);
          const ids = idsOf(1);
          expect(user).toEqual({ role: 'user', text: 'Fjords?' });
          expect(assistant).toMatchObject({
            text: 'Both.',
            calls: [
              { name: 'web_search', input: { query: 'fjords' } },
              { name: OWN, input: { city: 'Oslo' } },
            ],
          });
          expect(results.map((one) => one.role === 'tool' && one.id)).toEqual(ids);
          expect(JSON.parse(results[0]!.text)).toEqual(found('fjords'));
          expect(results[1]!.text).toBe('rain');
        });

        test('the next question still carries the results of the last one', async () => {
          upstream.enqueue(call(search('tides')), say('High at noon.'), say('You are welcome.'));
          const conversation = openChat();
          await conversation.say('Tide?');
          const reply = await conversation.say('Thanks.');
          clean(reply);
          expect(reply.text).toBe('You are welcome.');
          expect(history(2).map(({ role }) => role)).toEqual([
            'user',
            'assistant',
            'tool',
            'assistant',
            'user',
          ]);
          expect(history(2).slice(0, 3)).toEqual([...history(1)]);
          expect(history(2)[3]).toEqual({ role: 'assistant', text: 'High at noon.', calls: [] });
        });

        test('a failed tool is reported to the model, not to the client', async () => {
          toolServers.fail();
          upstream.enqueue(
            counted(call(search('x'), price('X'))),
            counted(say('I could not look it up.')),
          );
          const reply = await openChat().say('X?');
          clean(reply);
          expect(reply).toMatchObject({ text: 'I could not look it up.', finish: 'stop' });
          expect(reply.wire).not.toContain('the world is closed');
          const [, , first, second] = history(1);
          // Only Messages has a field for this.
          const contentOf = (text: string) => {
            if (vendor === 'anthropic-messages') return JSON.parse(text);
            expect(text).toStartWith('Error: ');
            return JSON.parse(text.slice('Error: '.length));
          };
          expect(contentOf(first!.text)).toMatchObject({ ok: false, tool: 'web_search' });
          const failed = contentOf(second!.text);
          expect(failed).toMatchObject({ ok: false, tool: 'stock_price', retryable: true });
          expect(failed.message).toContain('503');
          if (vendor === 'anthropic-messages') {
            expect(JSON.stringify(upstream.modelRequests[1]!.body)).toContain('"is_error":true');
          }
        });

        test('at the hop limit the last request offers no server tools, and a call to one does not run', async () => {
          const again = () => counted(call(search('again')));
          upstream.enqueue(again(), again(), counted(before('Enough.', call(search('more')))));
          const reply = await openChat(capped).say('Go on.');
          clean(reply);
          expect(reply).toMatchObject({ text: 'Enough.', calls: [], finish: 'stop' });
          expect(reply.usage).toEqual({ input: 1500, output: 60 });
          expect(upstream.modelRequests).toHaveLength(3);
          expect(offered(1)).toContain('web_search');
          expect(offered(2)).toEqual([OWN]);
          expect(toolServers.reached).toHaveLength(2);
        });

        test('a client that leaves while a tool runs stops the tool, and no further hop is sent', async () => {
          toolServers.slow(60_000);
          upstream.enqueue(call(price('SLOW')), say('never'));
          const leaving = new AbortController();
          const ends = await count(gateway, 'exchange');
          const asking = openChat(gateway, leaving.signal).say('Slow?');
          const settled = asking.then(
            () => 'answered',
            () => 'gone',
          );
          const reached = await toolServers.request(0);
          leaving.abort();
          expect(await settled).toBe('gone');
          await until(() => reached.goneAfterMs);
          await Bun.sleep(30);
          expect(upstream.modelRequests).toHaveLength(1);
          // The line of the test before may come late.
          const lines = () => linesOf(gateway, 'exchange').slice(ends);
          await until(() => lines().some(({ status }) => status === 499));
          expect(lines().filter(({ status }) => status !== 200)).toHaveLength(1);
        });
      });
    }
  }
}

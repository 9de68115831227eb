/** Special turns with server tools: mixed calls in later rounds, repeated ids, concurrency, limits and names. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import {
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  toolNames,
} from '../support/fake-upstream/index.ts';
import {
  pagesFor,
  startToolServers,
  stopAll,
  type ToolServers,
  toolsOf,
} from '../support/tool-servers.ts';
import { PROTOCOLS, plainRequest, post, VIA } from './clients.ts';
import { OWN, SEARCH_CHATS } from './search-clients.ts';
import { sentHistory } from './sent-history.ts';

let upstream: FakeUpstream;
let toolServers: ToolServers;
let gateway: Gateway;
/** The same with a short timeout for searches. */
let hasty: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  toolServers = await startToolServers();
  const server_tools = toolsOf(toolServers);
  gateway = await startGateway(threeProviders(upstream, { server_tools }));
  const web_search = { ...server_tools.web_search, timeout: 0.1 };
  hasty = await startGateway(threeProviders(upstream, { server_tools: { web_search } }));
}, 120_000);
afterEach(() => {
  upstream.clear();
  toolServers.clear();
});
afterAll(() => stopAll(gateway, hasty, upstream, toolServers));

const search = (query: string, id?: string) => ({
  name: 'web_search',
  arguments: { query },
  ...(id === undefined ? {} : { id }),
});
const weather = (city: string) => ({ name: OWN, arguments: { city } });

for (const client of PROTOCOLS) {
  for (const vendor of PROTOCOLS) {
    for (const stream of [true, false]) {
      describe(`${client} → ${vendor}, ${stream ? 'streamed' : 'whole'}`, () => {
        const openChat = (on = gateway) =>
          SEARCH_CHATS[client](on.url, { model: VIA[vendor], stream });
        const history = (at: number) => sentHistory(vendor, upstream.modelRequests[at]!.body);
        const rolesOf = (at: number) => history(at).map(({ role }) => role);

        test('mixed calls in the second round, the client’s first: both rounds are restored', async () => {
          upstream.enqueue(
            call(search('one')),
            call(weather('Oslo'), search('two'), weather('Rome')),
            call(search('three')),
            say('All is known.'),
          );
          const conversation = openChat();
          const reply = await conversation.say('Everything?');
          expect(reply.calls).toMatchObject([
            { name: OWN, input: { city: 'Oslo' } },
            { name: OWN, input: { city: 'Rome' } },
          ]);
          expect(reply.finish).toBe('calls');
          const end = await conversation.answer('rain');
          expect(upstream.refusals).toEqual([]);
          expect(end).toMatchObject({ text: 'All is known.', calls: [], finish: 'stop' });
          const sent = history(3);
          expect(sent.map(({ role }) => role)).toEqual([
            'user',
            'assistant',
            'tool',
            'assistant',
            'tool',
            'tool',
            'tool',
            'assistant',
            'tool',
          ]);
          const second = sent[3];
          const ids = second?.role === 'assistant' ? second.calls.map(({ id }) => id) : [];
          const results = sent.slice(4, 7).flatMap((one) => (one.role === 'tool' ? [one] : []));
          expect(results.map(({ id }) => id).sort()).toEqual([...ids].sort());
          expect(results.find(({ id }) => id === ids[0])?.text).toBe('rain');
          expect(results.find(({ id }) => id === ids[1])?.text).toContain('/two');
          // Each request starts with the previous one.
          expect(history(2).slice(0, 3)).toEqual([...history(1)]);
          expect(sent.slice(0, 7)).toEqual([...history(2)]);
        });

        test('a vendor that restarts its call ids in each round gets unique ids', async () => {
          upstream.enqueue(
            call(search('one', 'call_0')),
            call(search('two', 'call_0')),
            say('Both.'),
            call(search('three', 'call_0')),
            call({ ...weather('Oslo'), id: 'call_0' }),
            say('Bye.'),
          );
          const conversation = openChat();
          const reply = await conversation.say('One, two?');
          expect(upstream.refusals).toEqual([]);
          expect(reply).toMatchObject({ text: 'Both.', finish: 'stop' });
          expect(rolesOf(2)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
          const [, one, first, two, second] = history(2);
          expect(first?.text).toContain('/one');
          expect(second?.text).toContain('/two');
          for (const [message, result] of [
            [one, first],
            [two, second],
          ]) {
            const id = message?.role === 'assistant' ? message.calls[0]!.id : '';
            expect(result).toMatchObject({ role: 'tool', id });
          }
          const request = await conversation.say('Three, and the weather?');
          expect(request.calls).toMatchObject([{ name: OWN, input: { city: 'Oslo' } }]);
          expect(history(3).slice(0, 5)).toEqual([...history(2)]);
          const end = await conversation.answer('rain');
          expect(upstream.refusals).toEqual([]);
          expect(end).toMatchObject({ text: 'Bye.', finish: 'stop' });
          const last = history(5);
          expect(last.slice(0, history(4).length)).toEqual([...history(4)]);
          const ids = last.flatMap((one) => (one.role === 'assistant' ? one.calls : []));
          expect(new Set(ids.map(({ id }) => id)).size).toBe(4);
          expect(last.at(-1)).toMatchObject({ role: 'tool', id: ids[3]!.id, text: 'rain' });
        });

        test("twelve concurrent exchanges never see each other's searches", async () => {
          upstream.answerWith(({ protocol, body }) => {
            const sent = sentHistory(protocol!, body);
            const query = sent[0]!.text;
            const result = sent.find(({ role }) => role === 'tool')?.text;
            return result === undefined ? call(search(query)) : say(`${query}: ${result.length}`);
          });
          const queries = Array.from({ length: 12 }, (_, at) => `query-${'x'.repeat(at)}`);
          const replies = await Promise.all(queries.map((query) => openChat().say(query)));
          expect(upstream.refusals).toEqual([]);
          for (const [at, query] of queries.entries()) {
            const length = JSON.stringify({
              query,
              results: pagesFor(query).map((page, n) => ({
                n: n + 1,
                title: page.title,
                url: page.url,
                snippet: `Text of ${page.title}`,
              })),
            }).length;
            expect(replies[at]!.text).toBe(`${query}: ${length}`);
          }
        });

        test('a tool that takes too long is stopped; the model is informed and continues', async () => {
          toolServers.slow(60_000);
          upstream.enqueue(call(search('slow')), say('It took too long.'));
          const reply = await openChat(hasty).say('Slow?');
          expect(reply).toMatchObject({ text: 'It took too long.', finish: 'stop' });
          expect(history(1)[2]!.text).toContain('"ok":false');
          expect(history(1)[2]!.text).toContain('"retryable":true');
        });

        // A whole Messages answer holds arguments as JSON, which cannot be malformed.
        if (vendor !== 'anthropic-messages' || stream) {
          test('malformed arguments are reported to the model, which calls again', async () => {
            upstream.enqueue(
              call({ name: 'web_search', arguments: '{"query": oops' }),
              call(search('tides')),
              say('High at noon.'),
            );
            const reply = await openChat().say('Tide?');
            expect(upstream.refusals).toEqual([]);
            expect(reply).toMatchObject({ text: 'High at noon.', calls: [], finish: 'stop' });
            expect(rolesOf(1)).toEqual(['user', 'assistant', 'tool']);
            expect(JSON.stringify(history(1))).toContain('not a JSON object');
            expect(rolesOf(2)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
            expect(toolServers.reached).toHaveLength(1);
          });
        }

        test('a call cut by the token limit does not run', async () => {
          upstream.enqueue({ ...call(search('cut')), finish: 'length' });
          const { path, body } = plainRequest(client, VIA[vendor], stream);
          const response = await post(gateway.url, path, body);
          await response.text();
          expect(toolServers.reached).toEqual([]);
          expect(upstream.modelRequests.length).toBeLessThanOrEqual(2);
        });
      });
    }
  }
}

test('empty deltas of a hidden call send nothing to the client', async () => {
  const chunk = (delta: JsonObject, finish: string | null = null) =>
    `data: ${JSON.stringify({
      id: 'c1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm1',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const piece = (json: string) => ({ tool_calls: [{ index: 0, function: { arguments: json } }] });
  const head = { id: 'call_a1b2c3', type: 'function' };
  const named = { name: 'web_search', arguments: '' };
  const raw = [
    chunk({ role: 'assistant', content: null }),
    chunk({ tool_calls: [{ index: 0, ...head, function: named }] }),
    chunk(piece('')),
    chunk(piece('{"query":"tides"}')),
    chunk(piece('')),
    chunk({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ].join('');
  upstream.enqueue({ raw }, say('High at noon.'));
  const chat = SEARCH_CHATS['openai-chat'](gateway.url, { model: 'via-chat', stream: true });
  const reply = await chat.say('Tide?');
  expect(reply).toMatchObject({ text: 'High at noon.', calls: [], finish: 'stop' });
  expect(reply.wire).not.toContain('tool_calls');
});

describe('names and choices', () => {
  const ask = async (body: JsonObject) => {
    const { path, body: least } = plainRequest('anthropic-messages', 'via-chat', false);
    const response = await post(gateway.url, path, { ...least, ...body });
    return (await response.json()) as { content: JsonObject[]; stop_reason: string };
  };
  const own = { name: 'web_search', input_schema: { type: 'object' } };

  test('a client’s own function named web_search stays the client’s', async () => {
    upstream.enqueue(call(search('mine')));
    const reply = await ask({ tools: [own] });
    expect(reply.content).toMatchObject([{ type: 'tool_use', name: 'web_search' }]);
    expect(reply.stop_reason).toBe('tool_use');
    expect(toolServers.reached).toEqual([]);
    const names = toolNames('openai-chat', upstream.modelRequests[0]!.body);
    expect(names).toEqual(['web_search', 'stock_price']);
  });

  test('a unique alias selects the tool', async () => {
    upstream.enqueue(call({ ...search('x'), name: 'google_search' }), say('Found.'));
    const reply = await ask({});
    expect(reply.content).toMatchObject([{ type: 'text', text: 'Found.' }]);
    expect(toolServers.reached).toHaveLength(1);
  });

  test('tool_choice none offers no tools', async () => {
    upstream.enqueue(say('Plain.'));
    await ask({ tools: [{ ...own, name: OWN }], tool_choice: { type: 'none' } });
    expect(toolNames('openai-chat', upstream.modelRequests[0]!.body)).toEqual([OWN]);
  });

  test('a forced hosted search is forced once, and then the model chooses freely', async () => {
    upstream.enqueue(call(search('tides')), say('High at noon.'));
    await ask({
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
      tool_choice: { type: 'tool', name: 'web_search' },
    });
    const [first, second] = upstream.modelRequests.map(({ body }) => body.tool_choice);
    expect(first).toEqual({ type: 'function', function: { name: 'web_search' } });
    expect(second ?? 'auto').toBe('auto');
  });

  test("the declaration's max_uses is enforced, with the vendor’s error", async () => {
    upstream.enqueue(call(search('a')), call(search('b')), say('Enough.'));
    const reply = await ask({
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }],
    });
    expect(reply.content.map(({ type }) => type)).toEqual([
      'server_tool_use',
      'web_search_tool_result',
      'server_tool_use',
      'web_search_tool_result',
      'text',
    ]);
    expect(reply.content[3]!.content).toEqual({
      type: 'web_search_tool_result_error',
      error_code: 'max_uses_exceeded',
    });
    expect(toolServers.reached).toHaveLength(1);
  });

  test('Codex’s search endpoint returns the results', async () => {
    const response = await post(gateway.url, '/v1/alpha/search', {
      id: 's1',
      model: 'via-chat',
      input: [],
      commands: { search_query: [{ q: 'tides' }, { q: 'moon' }] },
      settings: {},
      max_output_tokens: 1000,
    });
    expect(response.status).toBe(200);
    const { output } = (await response.json()) as { output: string };
    for (const query of ['tides', 'moon']) {
      for (const { url } of pagesFor(query)) expect(output).toContain(url);
    }
  });
});

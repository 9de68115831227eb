/** What the next request restores: hidden hops, shown blocks, mixed turns; lost ledgers and restarts. */

import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callKey } from '../../../src/conversation/session/answer-keys.ts';
import { HOPS, type HopLedger } from '../../../src/features/server-tools/hop-ledger.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import { exchange, expectLegal, fakeSearch, fakeTool, target } from './script.ts';

const dir = mkdtempSync(join(tmpdir(), 'hop-ledger-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const search = (id: string, query = 'news') => ({
  call: 'web_search',
  id,
  input: JSON.stringify({ query }),
});
const bash = (id: string) => ({ call: 'Bash', id, input: '{"command":"ls"}' });
const user = (content: string) => ({ role: 'user', content });
const BASH = { type: 'function', function: { name: 'Bash', parameters: { type: 'object' } } };
const tools = [fakeTool('web_search')];
const messages = (body: JsonObject | undefined) => body?.messages as JsonObject[];

describe('hidden hops of a client that declared nothing', () => {
  const first = (ledger: HopLedger) =>
    exchange({
      client: 'openai-chat',
      body: { messages: [user('What is new?')] },
      tools,
      ledger,
      hops: [{ say: [{ text: 'Let me look.' }, search('c1')] }, { say: [{ text: 'It rains.' }] }],
    });
  const answer = { role: 'assistant', content: 'Let me look.\n\nIt rains. ' };
  const second = (ledger: HopLedger, before: readonly JsonObject[] = [user('What is new?')]) =>
    exchange({
      client: 'openai-chat',
      body: { messages: [...before, answer, user('And now?')] },
      tools,
      ledger,
      hops: [{ say: [{ text: 'Still.' }] }],
    });

  test('hidden hops come back, and the prompt prefix for the upstream stays the same', async () => {
    const ledger = memoryRoom(HOPS);
    const response = await first(ledger);
    const again = await second(ledger);
    expect(messages(again.bodies[0])).toEqual([
      ...messages(response.bodies[1]),
      { role: 'assistant', content: 'It rains.' },
      user('And now?'),
    ]);
    expect(again.notes.summary()).toContain('server_tool_history_restored');
  });

  test('a short answer after another text is not recognised', async () => {
    const ledger = memoryRoom(HOPS);
    await first(ledger);
    const again = await second(ledger, [user('Something else?')]);
    expect(messages(again.bodies[0])).toHaveLength(3);
  });

  test("another owner's answer with the same text is not recognised", async () => {
    const ledger = memoryRoom(HOPS);
    await first(ledger);
    const again = await exchange({
      client: 'openai-chat',
      body: { messages: [user('What is new?'), answer, user('And now?')] },
      tools,
      ledger,
      hops: [{ say: [{ text: 'Still.' }] }],
      options: { owner: 'somebody else' },
    });
    expect(messages(again.bodies[0])).toHaveLength(3);
  });

  test('without the ledger entry the conversation is still valid', async () => {
    const again = await second(memoryRoom(HOPS));
    expect(messages(again.bodies[0])).toEqual([user('What is new?'), answer, user('And now?')]);
  });
});

describe('a turn with server calls and client calls', () => {
  const ask = { messages: [user('Look and list.')], tools: [BASH] };
  const turn = { say: [{ text: 'Both.' }, search('s1'), bash('b1'), search('s2'), bash('b2')] };

  test('the client gets only its own calls; its next request restores the whole turn every time', async () => {
    const ledger = memoryRoom(HOPS);
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools,
      ledger,
      hops: [turn],
    });
    expectLegal(response.events);
    expect(response.sse).not.toContain('web_search');
    expect(response.sse.match(/"name":"Bash"/g)).toHaveLength(2);
    const call = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'Bash', arguments: '{"command":"ls"}' },
    });
    const history = [
      user('Look and list.'),
      { role: 'assistant', content: 'Both.', tool_calls: [call('b1'), call('b2')] },
      { role: 'tool', tool_call_id: 'b1', content: 'one' },
      { role: 'tool', tool_call_id: 'b2', content: 'two' },
    ];
    for (const more of [[], [{ role: 'assistant', content: 'Done.' }, user('More.')]]) {
      const again = await exchange({
        client: 'openai-chat',
        body: { ...ask, messages: [...history, ...more] },
        tools,
        ledger,
        hops: [{ say: [{ text: 'Done.' }] }],
      });
      const sent = messages(again.bodies[0]);
      const calls = sent[1]!.tool_calls as { id: string }[];
      expect(calls.map(({ id }) => id)).toEqual(['s1', 'b1', 's2', 'b2']);
      const results = sent.slice(2, 6).map((message) => message.tool_call_id);
      expect(new Set(results as string[])).toEqual(new Set(['s1', 'b1', 's2', 'b2']));
      expect(sent.slice(6)).toEqual(more);
    }
  });

  test('parallel sub-agents do not get each other’s hops', async () => {
    const ledger = memoryRoom(HOPS);
    for (const agent of ['x', 'y']) {
      await exchange({
        client: 'openai-chat',
        body: { ...ask, messages: [user(`You are ${agent}.`)] },
        tools,
        ledger,
        hops: [{ say: [search('s0', agent), bash('b0')] }],
      });
    }
    for (const agent of ['y', 'x']) {
      // A vendor with counted ids gives every agent the same ids.
      const id = 'b0';
      const again = await exchange({
        client: 'openai-chat',
        body: {
          ...ask,
          messages: [
            user(`You are ${agent}.`),
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id, type: 'function', function: { name: 'Bash', arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: id, content: 'one' },
          ],
        },
        tools,
        ledger,
        hops: [{ say: [{ text: 'Done.' }] }],
      });
      expect(JSON.stringify(again.bodies[0])).toContain(`{\\"query\\":\\"${agent}\\"}`);
    }
  });

  test('calls without an id get one, by which the turn is found again', async () => {
    const ledger = memoryRoom(HOPS);
    const response = await exchange({
      client: 'openai-chat',
      body: ask,
      tools,
      ledger,
      hops: [{ say: [search('s1'), bash('')] }],
    });
    const id = /"id":"(call_[0-9a-f]{24})"/.exec(response.sse)?.[1];
    expect(ledger.find([callKey('', id ?? '', () => '')])?.clientCalls).toEqual([id!]);
  });
});

describe('a client that declared the tool and sends it back', () => {
  const tool = { type: 'web_search_20250305', name: 'web_search' };
  const first = (ledger: HopLedger) =>
    exchange({
      client: 'anthropic-messages',
      body: { max_tokens: 9, messages: [user('What is new?')], tools: [tool] },
      tools: [fakeSearch()],
      ledger,
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Rain [1]. Snow.' }] }],
    });
  /** The content blocks that a client assembled from the stream. */
  const content = (sse: string): JsonObject[] => {
    const blocks: Record<string, unknown>[] = [];
    for (const line of sse.split('\n')) {
      if (!line.startsWith('data: ')) continue;
      const event = JSON.parse(line.slice(6));
      if (event.type === 'content_block_start') blocks.push({ ...event.content_block });
      const block = blocks.at(-1)!;
      const { delta } = event;
      if (event.type !== 'content_block_delta') continue;
      if (delta.type === 'text_delta') block.text = `${block.text}${delta.text}`;
      else if (delta.type === 'input_json_delta') block.input = JSON.parse(delta.partial_json);
      else if (delta.type === 'citations_delta') {
        block.citations = [...((block.citations as unknown[]) ?? []), delta.citation];
      }
    }
    return blocks as JsonObject[];
  };
  const second = async (ledger: HopLedger, upstream = target('openai-chat')) => {
    const response = await first(ledger);
    return exchange({
      client: 'anthropic-messages',
      body: {
        max_tokens: 9,
        messages: [
          user('What is new?'),
          { role: 'assistant', content: content(response.sse) },
          user('And now?'),
        ],
        tools: [tool],
      },
      tools: [fakeSearch()],
      ledger,
      upstream,
      hops: [{ say: [search('c2')] }, { say: [{ text: 'Still [3], as before [1].' }] }],
    });
  };

  test('the ledger restores the turns exactly', async () => {
    const again = await second(memoryRoom(HOPS));
    const sent = messages(again.bodies[0]);
    expect(sent.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
    expect(sent[3]!.content).toBe('Rain [1]. Snow.');
    // Numbers continue, and earlier sources can still be cited.
    expect(JSON.stringify(again.bodies[1])).toContain('\\"n\\":3');
    expect(
      again.sse.match(/"url":"https:\/\/a.example\/1","title":"Page A","encrypted_index"/g),
    ).toHaveLength(2);
  });

  test('without the ledger the turns are rebuilt from the client’s blocks', async () => {
    const forgetful: HopLedger = {
      empty: true,
      prefetch: undefined,
      find: () => undefined,
      put: () => {},
      settled: () => undefined,
    };
    const again = await second(forgetful);
    const sent = messages(again.bodies[0]);
    expect(sent.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
    expect(String(sent[2]!.content)).toContain('"snippet":"Text of A"');
  });

  test('a vendor with its own search never gets content minted here', async () => {
    const native = target('anthropic-messages', { hostedTools: ['web_search'] });
    const again = await second(memoryRoom(HOPS), native).catch((thrown: Error) => thrown);
    if (again instanceof Error) throw again;
    const body = JSON.stringify(again.bodies[0]);
    expect(body).not.toContain('hopgate-hit1');
    expect(body).not.toContain('server_tool_use');
    expect(body).toContain('Text of A');
  });

  test('Responses: results are restored by the id of the item', async () => {
    const ledger = memoryRoom(HOPS);
    const ask = { input: [user('What is new?')], tools: [{ type: 'web_search' }] };
    const response = await exchange({
      client: 'openai-responses',
      body: ask,
      tools: [fakeSearch()],
      ledger,
      hops: [{ say: [search('c1')] }, { say: [{ text: 'Rain.' }] }],
    });
    const id = /ws_hg[0-9a-f]{24}/.exec(response.sse)?.[0];
    const again = (known: HopLedger) =>
      exchange({
        client: 'openai-responses',
        body: {
          ...ask,
          input: [
            user('What is new?'),
            // Clients store nothing else.
            {
              type: 'web_search_call',
              id,
              status: 'completed',
              action: { type: 'search', query: 'news' },
            },
            {
              type: 'message',
              role: 'assistant',
              content: [{ type: 'output_text', text: 'Rain, edited.' }],
            },
            user('And now?'),
          ],
        },
        tools: [fakeSearch()],
        ledger: known,
        hops: [{ say: [{ text: 'Still.' }] }],
      });
    const sent = messages((await again(ledger)).bodies[0]);
    expect(sent.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ]);
    expect(String(sent[2]!.content)).toContain('Text of A');
    const lost = messages((await again(memoryRoom(HOPS))).bodies[0]);
    expect(lost.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  });
});

/** Any mix of calls over any number of hops: one valid stream, hops that extend each other, full recall in the next request. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { Notes } from '../../../src/conversation/notes.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import { HOPS } from '../../../src/features/server-tools/hop-ledger.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { memoryRoom } from '../../support/entries.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import {
  exchange,
  expectLegal,
  fakeSearch,
  PROTOCOLS,
  type Script,
  type ScriptedBlock,
  target,
} from './script.ts';
import { readBySdk } from './sdk.ts';

const CLIENTS = Object.keys(PROTOCOLS) as ProtocolName[];

/** A block without its call id, which must be unique in the exchange. */
type Part = { readonly kind: 'text' | 'reasoning' | 'server' | 'client'; readonly word: string };

const word = fc.stringMatching(/^[a-z]{3,12}( \[[1-9]\])?[.!]?$/);
const part: fc.Arbitrary<Part> = fc.record({
  kind: fc.constantFrom('text', 'reasoning', 'server', 'client' as const),
  word,
});
const hops = fc.array(fc.array(part, { minLength: 1, maxLength: 5 }), { maxLength: 3 });

function scriptsOf(parts: readonly (readonly Part[])[]): Script[] {
  let ids = 0;
  const contentOf = ({ kind, word: text }: Part): ScriptedBlock => {
    if (kind === 'text') return { text };
    if (kind === 'reasoning') return { reasoning: text };
    const id = `call_${++ids}`;
    return kind === 'server'
      ? { call: 'web_search', id, input: JSON.stringify({ query: text }) }
      : { call: 'Bash', id, input: '{"command":"ls"}' };
  };
  const usage = { input: 7, output: 3 };
  return [
    ...parts.map((one) => ({ say: one.map(contentOf), usage })),
    { say: [{ text: `In the end it rains [1], says ${ids}.` }], usage },
  ];
}

const isServer = (message: ScriptedBlock) => 'call' in message && message.call === 'web_search';
const isClient = (message: ScriptedBlock) => 'call' in message && message.call === 'Bash';

/** The hops that are really sent: a hop without server calls, or with client calls, is the last. */
function made(scripts: readonly Script[]): readonly Script[] {
  const last = scripts.findIndex(({ say }) => !say.some(isServer) || say.some(isClient));
  return scripts.slice(0, last + 1);
}

const bodies: Readonly<Record<ProtocolName, (declared: boolean) => JsonObject>> = {
  'openai-chat': (declared) => ({
    messages: [{ role: 'user', content: 'What is new?' }],
    tools: [{ type: 'function', function: { name: 'Bash', parameters: { type: 'object' } } }],
    stream_options: { include_usage: true },
    ...(declared ? { web_search_options: {} } : {}),
  }),
  'openai-responses': (declared) => ({
    input: [{ role: 'user', content: 'What is new?' }],
    tools: [
      { type: 'function', name: 'Bash', parameters: { type: 'object' } },
      ...(declared ? [{ type: 'web_search' }] : []),
    ],
  }),
  'anthropic-messages': (declared) => ({
    max_tokens: 99,
    messages: [{ role: 'user', content: 'What is new?' }],
    tools: [
      { name: 'Bash', input_schema: { type: 'object' } },
      ...(declared ? [{ type: 'web_search_20250305', name: 'web_search' }] : []),
    ],
  }),
};

const listKey = (client: ProtocolName) => (client === 'openai-responses' ? 'input' : 'messages');
const messagesOf = (body: JsonObject | undefined) => body?.messages as readonly JsonObject[];

describe.each(CLIENTS)('a client of %s', (client) => {
  test.each([true, false])('the client gets one valid stream; declared: %p', async (declared) => {
    await fc.assert(
      fc.asyncProperty(hops, async (parts) => {
        const scripts = scriptsOf(parts);
        const real = made(scripts);
        const ledger = memoryRoom(HOPS);
        const search = fakeSearch({ inject: 'force' });
        const body = bodies[client](declared);
        const response = await exchange({ client, body, tools: [search], ledger, hops: scripts });
        const messages = real.flatMap(({ say }) => say);

        expectLegal(response.events);
        const read = await readBySdk(client, response.sse);
        expect(read.calls).toEqual(
          messages.flatMap((one) => (isClient(one) ? [(one as { id: string }).id] : [])),
        );
        const content = messages.map((one) => ('text' in one ? one.text : '')).join('');
        const bare = (text: string) => text.replace(/\s*\[\d\]|\s+/g, '');
        expect(bare(read.text)).toBe(bare(content));
        const searches = messages.filter(isServer).length;
        expect(read.searches).toBe(declared && client !== 'openai-chat' ? searches : 0);
        if (!declared) expect(read.cited).toEqual([]);
        const usage = response.events.findLast((event) => event.type === 'usage');
        expect(usage).toMatchObject({
          usage: {
            input: 7 * real.length,
            ...(declared && searches > 0 ? { hosted: { web_search_requests: searches } } : {}),
          },
        });

        // Every hop begins with the whole previous hop and changes nothing else.
        expect(response.bodies).toHaveLength(real.length);
        for (let at = 1; at < response.bodies.length; at++) {
          const { messages: before, ...first } = response.bodies[at - 1]!;
          const { messages: after, ...second } = response.bodies[at]!;
          expect((after as unknown[]).slice(0, (before as unknown[]).length)).toEqual(
            before as unknown[],
          );
          expect((after as unknown[]).length).toBeGreaterThan((before as unknown[]).length);
          expect(second).toEqual(first);
        }
        const request = PROTOCOLS[client].decodeRequest({ model: 'm', ...body });
        expect(
          response.sent[0]!.turns.slice(0, request.turns.length).map((turn) => turn.blocks),
        ).toEqual(request.turns.map((turn) => turn.blocks));

        // A client without streaming gets the same content.
        const fold = new ReplyBuilder();
        for (const event of response.events) fold.push(event);
        const whole = JSON.stringify(
          PROTOCOLS[client].encodeReply(fold.reply, {
            request: request,
            requestId: 'req_1_abcdef',
            provider: 'up',
            notes: new Notes(),
          }),
        );
        for (const id of [...read.calls, ...read.cited]) expect(whole).toContain(id);
        if (!declared) expect(whole).not.toContain('"web_search');

        // The next request restores everything; an answer without visible content never gets this far.
        if (read.text === '' && read.calls.length === 0 && read.searches === 0) return;
        const key = listKey(client);
        const following = [
          ...(body[key] as JsonObject[]),
          ...read.history,
          { role: 'user', content: 'And now?' },
        ];
        const again = await exchange({
          client,
          body: { ...body, [key]: following },
          tools: [search],
          ledger,
          hops: [{ say: [{ text: 'Still.' }] }],
        });
        const before = messagesOf(response.bodies.at(-1));
        expect(messagesOf(again.bodies[0]).slice(0, before.length)).toEqual([...before]);
        const sent = messagesOf(again.bodies[0]);
        const calls = sent.flatMap((message) =>
          ((message.tool_calls ?? []) as { id: string }[]).map(({ id }) => id),
        );
        expect(calls).toEqual(messages.flatMap((one) => ('call' in one ? [one.id] : [])));
        const results = sent
          .filter(({ role }) => role === 'tool')
          .map((m) => String(m.tool_call_id));
        expect(results.sort()).toEqual([...calls].sort());
      }),
      { numRuns: 60 },
    );
  });
});

const prefixKey = {
  'openai-responses': 'input',
  'openai-chat': 'messages',
  'anthropic-messages': 'messages',
};

/** The messages as a model reads them: Messages joins neighbours of one role, so a message can grow. */
const partsOf = (messages: readonly JsonObject[]): JsonObject[] =>
  messages.flatMap((message): JsonObject[] => {
    const { content, ...around } = message;
    return Array.isArray(content) ? content.map((part) => ({ ...around, part })) : [message];
  });

describe.each(CLIENTS)('an upstream of %s', (upstream) => {
  test.each(CLIENTS)('each request extends the previous one; client: %s', async (client) => {
    await fc.assert(
      fc.asyncProperty(hops, async (parts) => {
        const scripts = scriptsOf(parts);
        const ledger = memoryRoom(HOPS);
        const key = prefixKey[upstream];
        const given = {
          client,
          tools: [fakeSearch({ inject: 'force' })],
          ledger,
          upstream: target(upstream),
        };
        const body = bodies[client](true);
        const response = await exchange({ ...given, body, hops: scripts });
        const read = await readBySdk(client, response.sse);
        const visible = read.text !== '' || read.calls.length > 0 || read.searches > 0;
        const own = listKey(client);
        const following = [
          ...(body[own] as JsonObject[]),
          ...read.history,
          { role: 'user', content: 'And now?' },
        ];
        const again = visible
          ? await exchange({
              ...given,
              body: { ...body, [own]: following },
              hops: [{ say: [{ text: 'Still.' }] }],
            })
          : undefined;
        const sent = [...response.bodies, ...(again?.bodies ?? [])].map((one) =>
          partsOf(one[key] as JsonObject[]),
        );
        for (let at = 1; at < sent.length; at++) {
          expect(sent[at]!.slice(0, sent[at - 1]!.length)).toEqual(sent[at - 1]!);
        }
      }),
      { numRuns: 25 },
    );
  });
});

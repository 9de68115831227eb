/** Every client against every vendor, through the binary: content arrives complete, and histories go back valid. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import {
  type Answer,
  call,
  type FakeUpstream,
  say,
  startFakeUpstream,
  think,
  toolResults,
} from '../support/fake-upstream/index.ts';
import { ALL_PROTOCOLS, CLIENT_CHATS, VIA } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1', 'gemini-3-m1'] });
  gateway = await startGateway(allProviders(upstream));
}, 120_000);
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const GREETING = 'Grüße aus Zürich 👋🏽 — “quoted”, <b>tagged</b>, \\escaped\\ and\nbroken.';
const COUNTS = { input: 1000, cached: 600, output: 90, reasoning: 40 };

for (const client of ALL_PROTOCOLS) {
  for (const vendor of ALL_PROTOCOLS) {
    for (const stream of [true, false]) {
      describe(`${client} → ${vendor}, ${stream ? 'streamed' : 'whole'}`, () => {
        const openChat = (more: { tools?: boolean; think?: boolean } = {}) =>
          CLIENT_CHATS[client](gateway.url, { model: VIA[vendor], stream, ...more });
        const valid = () => expect(upstream.refusals).toEqual([]);

        test('text arrives unchanged, with its finish reason and counts', async () => {
          upstream.enqueue(say(GREETING, { usage: COUNTS, delivery: { piece: 3 } }));
          const response = await openChat().say('Hello?');
          expect(response).toMatchObject({ text: GREETING, calls: [], finish: 'stop' });
          expect(response.usage).toEqual({ input: 1000, cached: 600, output: 90 });
          valid();
          expect(upstream.modelRequests[0]?.body.model).toBe(
            vendor === 'google-gemini' ? 'gemini-3-m1' : 'm1',
          );
          expect(upstream.modelRequests[0]?.body.stream ?? false).toBe(stream);
        });

        test('a second turn extends the first', async () => {
          upstream.enqueue(say('One.'), say('Two.'));
          const conversation = openChat();
          await conversation.say('First?');
          const response = await conversation.say('Second?');
          expect(response.text).toBe('Two.');
          valid();
          const sent = JSON.stringify(upstream.modelRequests[1]?.body);
          for (const message of ['First?', 'One.', 'Second?', 'Be brief.']) {
            expect(sent).toContain(message);
          }
        });

        test('reasoning and a call arrive, and the result goes back in a valid history', async () => {
          const first: Answer = {
            parts: [
              { kind: 'reasoning', text: 'I should look.' },
              { kind: 'text', text: 'Let me look.' },
              { kind: 'call', name: 'get_weather', arguments: '{"city":"Zürich"}' },
            ],
          };
          upstream.enqueue(first, think('Now I know.', 'It is 12°.'));
          const conversation = openChat({ tools: true, think: true });
          const response = await conversation.say('Weather?');
          expect(response.reasoning).toBe('I should look.');
          expect(response.text).toBe('Let me look.');
          expect(response.finish).toBe('calls');
          expect(response.calls).toMatchObject([
            { name: 'get_weather', arguments: { city: 'Zürich' } },
          ]);
          const end = await conversation.answer(() => '12° and “windy”');
          valid();
          expect(end).toMatchObject({ text: 'It is 12°.', finish: 'stop' });
          const results = toolResults(vendor, upstream.modelRequests[1]!.body);
          expect([...results.values()]).toEqual(['12° and “windy”']);
        });

        test('parallel calls stay apart, and each gets its result', async () => {
          upstream.enqueue(
            call(
              { name: 'get_weather', arguments: { city: 'Oslo' } },
              { name: 'get_weather', arguments: { city: 'Rome' } },
              { name: 'get_weather', arguments: { city: 'Oslo' } },
            ),
            say('Done.'),
          );
          const conversation = openChat({ tools: true });
          const response = await conversation.say('Weather?');
          expect(response.calls.map((one) => one.arguments)).toEqual([
            { city: 'Oslo' },
            { city: 'Rome' },
            { city: 'Oslo' },
          ]);
          expect(new Set(response.calls.map((one) => one.id)).size).toBe(3);
          const end = await conversation.answer((one) => `result of ${one.id}`);
          valid();
          expect(end.text).toBe('Done.');
          const results = [...toolResults(vendor, upstream.modelRequests[1]!.body).values()];
          expect(results).toEqual(response.calls.map((one) => `result of ${one.id}`));
        });

        test('an answer cut by its limit is reported as cut', async () => {
          upstream.enqueue(say('Cut in the mid', { finish: 'length' }));
          const response = await openChat().say('Long?');
          expect(response).toMatchObject({ text: 'Cut in the mid', finish: 'length' });
        });

        test('a vendor’s refusal arrives as an error with its message and status', async () => {
          upstream.enqueue({
            status: 400,
            body:
              vendor === 'anthropic-messages'
                ? {
                    type: 'error',
                    error: { type: 'invalid_request_error', message: 'the model dislikes this' },
                  }
                : {
                    error: {
                      message: 'the model dislikes this',
                      type: 'invalid_request_error',
                      param: null,
                      code: null,
                    },
                  },
          });
          const failing = openChat().say('x');
          await expect(failing).rejects.toMatchObject({ status: 400 });
          await expect(failing).rejects.toThrow(/the model dislikes this/);
          expect(upstream.modelRequests).toHaveLength(1);
        });
      });
    }
  }
}

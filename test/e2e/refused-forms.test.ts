/** What a vendor refuses of a request's form ends no session: every official client against every vendor, through the binary. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import {
  call,
  type FakeProtocol,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
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

/** An error in the form of each vendor. */
const refusal = (protocol: FakeProtocol, message: string) =>
  refuse(
    400,
    {},
    protocol === 'anthropic-messages'
      ? { type: 'error', error: { type: 'invalid_request_error', message } }
      : protocol === 'google-gemini'
        ? { error: { code: 400, message, status: 'INVALID_ARGUMENT' } }
        : { error: { message, type: 'invalid_request_error', param: null, code: null } },
  );

// Sources: test/features/refusal-retry/settings.test.ts.
const ONLY_STREAMS =
  'This model only support stream mode, please enable the stream parameter to access the model. ';
const NO_STREAMS =
  'Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.';
const NO_INSTRUCTIONS = 'Developer instruction is not enabled for models/gemma-3-27b-it';

for (const client of ALL_PROTOCOLS) {
  for (const vendor of ALL_PROTOCOLS) {
    describe(`${client} → ${vendor}`, () => {
      /** A call and its result, asked in the form that the vendor refuses with these words. */
      const talkAbout = async (stream: boolean, words: string) => {
        upstream.answerWith(({ body }) => {
          if ((body.stream === true) === stream) return refusal(vendor, words);
          return JSON.stringify(body).includes('sunny')
            ? say('It is sunny.', { usage: { input: 50, output: 7 } })
            : call({ name: 'get_weather', arguments: { city: 'Oslo' } });
        });
        const talk = CLIENT_CHATS[client](gateway.url, { model: VIA[vendor], stream, tools: true });
        const asked = await talk.say('Weather?');
        expect(asked.calls).toMatchObject([{ name: 'get_weather', arguments: { city: 'Oslo' } }]);
        const answered = await talk.answer(() => 'sunny');
        expect(answered.text).toBe('It is sunny.');
        expect(answered.usage).toMatchObject({ input: 50, output: 7 });
      };

      test('a vendor that only streams answers a client that wants the whole', async () => {
        await talkAbout(false, ONLY_STREAMS);
        // Known from the first refusal on.
        expect(upstream.modelRequests.length).toBeLessThanOrEqual(3);
        expect(upstream.modelRequests.at(-1)?.body.stream).toBe(true);
      });

      test('a vendor that does not stream answers a client that wants a stream', () =>
        talkAbout(true, NO_STREAMS));

      test.each([false, true])(
        'a vendor without instructions reads them as what the user says, streamed: %p',
        async (stream) => {
          upstream.answerWith(({ body }) => {
            const apart = body.system ?? body.instructions ?? body.systemInstruction;
            const said = JSON.stringify(body.messages ?? body.input ?? body.contents);
            return apart !== undefined || /"(?:system|developer)"/.test(said)
              ? refusal(vendor, NO_INSTRUCTIONS)
              : say(said.includes('Be brief.') ? 'Yes.' : 'They are lost.');
          });
          const talk = CLIENT_CHATS[client](gateway.url, { model: VIA[vendor], stream });
          expect((await talk.say('Hi')).text).toBe('Yes.');
          expect((await talk.say('Again')).text).toBe('Yes.');
          expect(upstream.refusals).toEqual([]);
        },
      );
    });
  }
}

/** An image that a vendor cannot read ends no session: every client against every vendor, through the binary, streamed and whole. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { allProviders, type Gateway, startGateway } from '../support/binary.ts';
import {
  type FakeProtocol,
  type FakeUpstream,
  refuse,
  say,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { ALL_PROTOCOLS, VIA } from './clients.ts';

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

const GOOD =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
let downloads = 0;
/** A download that broke off, unlike all before. */
const brokenImage = () => GOOD.slice(0, 44) + String(++downloads).padStart(4, 'A');

/** A session in which a person has shown both, the broken one first, and goes on in words. */
const SESSIONS: Readonly<
  Record<
    FakeProtocol,
    (model: string, stream: boolean, broken: string) => { path: string; body: JsonObject }
  >
> = {
  'openai-chat': (model, stream, broken) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      stream,
      messages: [
        {
          role: 'user',
          content: [broken, GOOD].map((data) => ({
            type: 'image_url',
            image_url: { url: `data:image/png;base64,${data}` },
          })),
        },
        { role: 'assistant', content: 'Two images.' },
        { role: 'user', content: 'go on' },
      ],
    },
  }),
  'openai-responses': (model, stream, broken) => ({
    path: '/v1/responses',
    body: {
      model,
      stream,
      input: [
        {
          role: 'user',
          content: [broken, GOOD].map((data) => ({
            type: 'input_image',
            image_url: `data:image/png;base64,${data}`,
          })),
        },
        { role: 'assistant', content: 'Two images.' },
        { role: 'user', content: 'go on' },
      ],
    },
  }),
  'anthropic-messages': (model, stream, broken) => ({
    path: '/v1/messages',
    body: {
      model,
      stream,
      max_tokens: 100,
      messages: [
        {
          role: 'user',
          content: [broken, GOOD].map((data) => ({
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data },
          })),
        },
        { role: 'assistant', content: 'Two images.' },
        { role: 'user', content: 'go on' },
      ],
    },
  }),
  'google-gemini': (model, stream, broken) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      contents: [
        {
          role: 'user',
          parts: [broken, GOOD].map((data) => ({ inlineData: { mimeType: 'image/png', data } })),
        },
        { role: 'model', parts: [{ text: 'Two images.' }] },
        { role: 'user', parts: [{ text: 'go on' }] },
      ],
    },
  }),
};

/** What each vendor says of it. Sources: test/features/refusal-retry/media.test.ts. */
const WORDS: Readonly<Record<FakeProtocol, JsonObject>> = {
  'openai-chat': {
    error: {
      message:
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_image_format',
    },
  },
  'openai-responses': {
    error: {
      message:
        "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
      type: 'invalid_request_error',
      param: 'input',
      code: 'invalid_value',
    },
  },
  'anthropic-messages': {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'Could not process image' },
  },
  'google-gemini': {
    error: { code: 400, message: 'Provided image is not valid.', status: 'INVALID_ARGUMENT' },
  },
};

for (const client of ALL_PROTOCOLS) {
  for (const vendor of ALL_PROTOCOLS) {
    describe(`${client} → ${vendor}`, () => {
      test.each([true, false])('the session goes on without it, streamed: %p', async (stream) => {
        const broken = brokenImage();
        upstream.answerWith(({ body: asked }) =>
          JSON.stringify(asked).includes(`${broken}"`)
            ? refuse(400, {}, WORDS[vendor])
            : say('On we go.'),
        );
        const { path, body } = SESSIONS[client](VIA[vendor], stream, broken);
        // The second time, the vendor is not asked with it again.
        for (const asked of [2, 3]) {
          const answer = await fetch(gateway.url + path, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          });
          expect(await answer.text()).toContain('On we go.');
          expect(answer.status).toBe(200);
          expect(answer.headers.get('x-hopgate-notes')).toContain('stripped_after_refusal');
          expect(upstream.modelRequests).toHaveLength(asked);
          const sent = JSON.stringify(upstream.modelRequests.at(-1)?.body);
          expect(sent).toContain(GOOD);
          expect(sent).toContain('[image not shown, the vendor refused it]');
        }
      });
    });
  }
}

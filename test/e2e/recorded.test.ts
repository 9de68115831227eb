/** Recorded answers of real vendors through the binary: unchanged bytes for their own protocol, the same meaning for others. */

import { afterAll, afterEach, beforeAll, describe, expect } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { random } from '../support/chunkings.ts';
import {
  type FakeUpstream,
  type Protocol,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { type Fixture, fixtureBytes, fixtures, fixtureTest } from '../support/fixtures.ts';
import { CLIENT_CHATS, PROTOCOLS, plainRequest, post, VIA } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startGateway(threeProviders(upstream));
}, 120_000);
afterEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const KIND: Readonly<Record<Protocol, string>> = {
  'openai-chat': 'chat',
  'openai-responses': 'responses',
  'anthropic-messages': 'messages',
};

const streams = (protocol: Protocol) =>
  fixtures(
    (one) =>
      one.protocol === KIND[protocol] &&
      one.kind === 'sse' &&
      one.status === 200 &&
      one.sdk_accumulator === 'ok',
  );

/** Recordings that other protocols express differently, each with the reason. */
const OTHERWISE = [
  // A search among the client's own tools is a separate kind of item there, an ordinary call elsewhere.
  /openai_client_tool_search/,
  // Cut arguments: the Messages SDK parses what is there, the others keep the text.
  /incomplete_partial_json/,
  // Content in parts, which the Chat SDK joins as objects.
  /mistral-reasoning/,
  // The final object holds less than the events did, and the SDK trusts it.
  /raw_cot_stream_openrouter/,
  // Thoughts in tags at the start, which are thinking elsewhere (test/features/leaked-calls/thinking-alone.test.ts).
  /test_groq_model_thinking_part_iter/,
  // Two messages in one answer, which are two paragraphs elsewhere (test/codecs/paragraphs.test.ts).
  /mirascope__openai_gpt_4o_responses__stream\.(?:1~3|5~2)\.sse/,
];

/** GitHub Copilot's ids change with each event, which the official client refuses. */
const MENDED = /github-copilot-id-rotation/;

function serve(fixture: Fixture): Uint8Array {
  const raw = fixtureBytes(fixture.file);
  upstream.clear();
  upstream.answerWith(() => ({ raw, delivery: { split: random(fixture.bytes, 4096).cut } }));
  return raw;
}

const hear = (base: string, who: Protocol, model: string) =>
  CLIENT_CHATS[who](base, { model, stream: true })
    .say('x')
    .then(
      ({ text, calls }) => ({
        text,
        calls: calls.map(({ name, arguments: args }) => [name, args]),
      }),
      (error: Error) => `error: ${error.message.slice(0, 200)}`,
    );

describe('to a client of the same protocol', () => {
  for (const protocol of PROTOCOLS) {
    fixtureTest(
      `${protocol}: every recorded stream goes down byte for byte`,
      async () => {
        const { path, body } = plainRequest(protocol, VIA[protocol], true);
        const changed: string[] = [];
        const all = streams(protocol).filter(({ file }) => !MENDED.test(file));
        expect(all.length).toBeGreaterThan(100);
        for (const fixture of all) {
          const raw = serve(fixture);
          const response = await post(gateway.url, path, body);
          const got = await response.bytes().catch(() => new Uint8Array());
          if (!Buffer.from(got).equals(raw)) changed.push(`${fixture.file} (${response.status})`);
        }
        expect(changed).toEqual([]);
      },
      120_000,
    );
  }

  fixtureTest(
    'a stream whose ids change is refused by its client, and read through the gateway',
    async () => {
      const fixture = streams('openai-responses').find(({ file }) => MENDED.test(file))!;
      serve(fixture);
      expect(await hear(upstream.origin, 'openai-responses', 'm1')).toBe(
        'error: Lifecycle response identity changed.',
      );
      expect(await hear(gateway.url, 'openai-responses', VIA['openai-responses'])).toMatchObject({
        text: expect.stringContaining('**3** letter'),
      });
    },
  );
});

describe('to a client of another protocol', () => {
  for (const vendor of PROTOCOLS) {
    /** The events that the vendor's own client reads from the vendor, by recording. */
    const read = new Map<string, Awaited<ReturnType<typeof hear>>>();
    for (const client of PROTOCOLS) {
      if (client === vendor) continue;
      fixtureTest(
        `${vendor} → ${client}: the official clients read the same text and calls`,
        async () => {
          const wrong: unknown[] = [];
          for (const fixture of streams(vendor)) {
            if ([...OTHERWISE, MENDED].some((one) => one.test(fixture.file))) continue;
            serve(fixture);
            const message = read.get(fixture.file) ?? (await hear(upstream.origin, vendor, 'm1'));
            read.set(fixture.file, message);
            const reply = await hear(gateway.url, client, VIA[vendor]);
            if (!Bun.deepEquals(message, reply))
              wrong.push({ file: fixture.file, said: message, heard: reply });
          }
          expect(wrong).toEqual([]);
        },
        120_000,
      );
    }
  }
});

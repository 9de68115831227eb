/** Same protocol on both sides: request and response bytes pass through unchanged. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { bytewise, type Chunking, random, whole } from '../support/chunkings.ts';
import {
  type Answer,
  type Delivery,
  type FakeUpstream,
  type Protocol,
  startFakeUpstream,
} from '../support/fake-upstream/index.ts';
import { PROTOCOLS, plainRequest, post, VIA } from './clients.ts';

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

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const sent = () => Buffer.concat(upstream.modelRequests[0]?.sent ?? []);

// What parsing and printing would change: spacing, key order, escapes, long and odd numbers.
const ODD: Readonly<Record<Protocol, string>> = {
  'openai-chat': `{ "messages" : [ {"content":"G\\u00fc\\u006e \\/ x","role":"user"} ],\n\t"seed":1234567890123456789,
    "temperature":1.0, "metadata":{"10":"b","2":"a"}, "model" : "via-chat" , "stream":STREAM  }`,
  'openai-responses': `{ "store":false,"input" : [ {"content":"G\\u00fc\\u006e \\/ x","role":"user"} ],\n\t
    "temperature":1.0, "metadata":{"10":"b","2":"a"}, "model" : "via-responses" , "stream":STREAM  }`,
  'anthropic-messages': `{ "max_tokens":1000,"messages" : [ {"content":"G\\u00fc\\u006e \\/ x","role":"user"} ],\n\t
    "temperature":1.0,"tools":[{"name":"t","input_schema":{"type":"object","properties":{"10":{},"2":{}},"maximum":1e400}}],
    "model" : "via-messages" , "stream":STREAM  }`,
};

const RICH: Answer = {
  parts: [
    { kind: 'reasoning', text: 'Überlegung 👋🏽' },
    { kind: 'text', text: 'Grüße — 👩‍👩‍👧' },
    { kind: 'call', name: 't', arguments: '{"n":1234567890123456789,"f":1.0}' },
  ],
};

const chunked = (chunking: Chunking): Delivery => ({ split: chunking.cut });
const DELIVERIES: [string, Delivery][] = [
  ['event by event', {}],
  ['in one piece', chunked(whole)],
  ['byte by byte', chunked(bytewise)],
  ['in random pieces', chunked(random(7))],
  ['with CRLF lines', { crlf: true }],
  ['with comments and pings between', { comments: true }],
];

for (const protocol of PROTOCOLS) {
  const { path } = plainRequest(protocol, '', false);
  const body = (stream: boolean) => ODD[protocol].replace('STREAM', String(stream));
  describe(protocol, () => {
    test.each([true, false])(
      'the request goes up byte for byte except the model (stream: %p)',
      async (stream) => {
        const query = body(stream);
        await (await post(gateway.url, path, query)).arrayBuffer();
        expect(upstream.refusals).toEqual([]);
        const got = Buffer.from(upstream.modelRequests[0]!.bytes).toString();
        expect(got).toBe(query.replace(`"${VIA[protocol]}"`, '"m1"'));
      },
    );

    test.each(DELIVERIES)(
      'a stream that comes %s goes down byte for byte',
      async (_how, delivery) => {
        upstream.enqueue({ ...RICH, delivery });
        const response = await post(gateway.url, path, body(true));
        const got = new Uint8Array(await response.arrayBuffer());
        expect(response.headers.get('x-hopgate-notes')).toBeNull();
        expect(response.headers.get('x-hopgate-target')).toMatch(/\/m1$/);
        expect(response.headers.get('x-hopgate-request-id')).toMatch(/^req_\d{13}_[0-9a-z]{10}$/);
        expect(sent().length).toBeGreaterThan(500);
        expect(Buffer.from(got).toString()).toBe(sent().toString());
        expect(sha(got)).toBe(sha(sent()));
      },
    );

    test('a whole answer goes down byte for byte, vendor fields and spacing included', async () => {
      upstream.enqueue(RICH);
      await (await post(gateway.url, path, body(false))).arrayBuffer();
      const answer = sent()
        .toString()
        .replace(/^\{/, '{ "vendor_extra" : 1234567890123456789.0,\n ');
      upstream.clear();
      upstream.enqueue({ raw: answer, contentType: 'application/json' });
      const response = await post(gateway.url, path, body(false));
      expect(await response.text()).toBe(answer);
      expect(response.headers.get('content-type')).toContain('application/json');
    });

    test('a compressed stream arrives as the same text', async () => {
      upstream.enqueue({ ...RICH, delivery: { gzip: true } });
      const response = await post(gateway.url, path, body(true));
      const text = await response.text();
      expect(text).toBe(Buffer.from(Bun.gunzipSync(sent() as Uint8Array<ArrayBuffer>)).toString());
    });

    test('a vendor’s error goes down with its own status, message and headers', async () => {
      const message =
        '{"error" : {"message":"odd \\u0061", "type":"invalid_request_error","x":1.0}}';
      upstream.enqueue({ status: 422, body: message, headers: { 'x-ratelimit-left': '7' } });
      const response = await post(gateway.url, path, body(false));
      expect(response.status).toBe(422);
      expect(await response.text()).toBe(message);
      expect(response.headers.get('x-ratelimit-left')).toBe('7');
    });

    test('the upstream gets the provider’s key, never the client’s', async () => {
      await (
        await post(gateway.url, path, body(false), { headers: { 'x-api-key': 'sk-client' } })
      ).arrayBuffer();
      const headers = JSON.stringify(upstream.modelRequests[0]?.headers);
      expect(headers).toContain('sk-upstream');
      expect(headers).not.toContain('sk-client');
    });
  });
}

/** Images and audio whose answers report no usage: their cost is that of a request, or unknown, and never none. */

import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { until } from '../support/until.ts';
import { type EndpointVendor, startVendor } from './vendor.ts';

let vendor: EndpointVendor;
let gateway: InProcess;
let usage: object | undefined;
/** A transcript that is no JSON. */
let words: string | undefined;

beforeAll(async () => {
  vendor = startVendor(({ path }) =>
    path.endsWith('/speech')
      ? new Response(new Uint8Array(3000), { headers: { 'content-type': 'audio/mpeg' } })
      : words !== undefined
        ? new Response(words, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
        : Response.json({
            created: 1,
            text: 'x',
            data: [{ b64_json: 'AAAA', embedding: [1] }],
            usage,
          }),
  );
  gateway = await startInProcess({
    providers: {
      v: {
        protocol: 'openai-chat',
        base_url: vendor.url,
        models: ['*'],
        prices: {
          tokens: { input: 5, output: 40 },
          each: { input: 0, output: 0, request: 20 },
          words: { input: 5, output: 40, request: 0.1 },
          minutes: { input: 0, output: 0, minute: 6 },
          free: { input: 0, output: 0 },
        },
      },
    },
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop();
});

/** Its row: the cost, and whether it is estimated. */
async function costOf(path: string, model: string, more: object = {}) {
  const form = new FormData();
  form.set('model', model);
  form.set('file', new File(['sound'], 'a.mp3'));
  const isForm = /transcriptions|translations|edits|variations/.test(path);
  const response = await fetch(`${gateway.url}/v1${path}`, {
    method: 'POST',
    body: isForm ? form : JSON.stringify({ model, input: 'a cat', prompt: 'a cat', ...more }),
  });
  expect(response.status).toBe(200);
  await response.arrayBuffer();
  const request = response.headers.get('x-hopgate-request-id')!;
  const file = join(gateway.home, 'state', 'spend.db');
  const row = await until(() => {
    if (!existsSync(file)) return undefined;
    const db = new Database(file, { readonly: true });
    db.run('PRAGMA busy_timeout = 5000');
    // The file is there a moment before its tables.
    if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'spend'").get() === null) {
      db.close();
      return undefined;
    }
    const [found] = db
      .query<{ cost: number | null }, [string]>('SELECT * FROM spend WHERE request = ?')
      .all(request);
    db.close();
    return found;
  });
  return row.cost;
}

const PATHS = [
  ...['/images/generations', '/images/edits', '/images/variations'],
  ...['/audio/speech', '/audio/transcriptions', '/audio/translations'],
];

test.each(PATHS)('%s without usage: unknown, the price of a request, or free', async (path) => {
  usage = undefined;
  expect([
    await costOf(path, 'tokens'),
    await costOf(path, 'each'),
    await costOf(path, 'free'),
  ]).toEqual([...[null, 20_000_000, 0]]);
});

test('media in a body are no words of its prompt', async () => {
  usage = undefined;
  const media = 'QUFB'.repeat(100_000);
  expect(await costOf('/images/generations', 'words', { image: media })).toBeLessThan(1_000_000);
});

test('with usage, tokens are counted; what is made of texts needs none', async () => {
  usage = { input_tokens: 10, output_tokens: 1000, total_tokens: 1010 };
  expect(await costOf('/images/generations', 'tokens')).toBe(10 * 5000 + 1000 * 40_000);
  usage = undefined;
  expect(await costOf('/embeddings', 'tokens')).toBeGreaterThan(0);
});

test('a transcript without usage costs its minutes where its form tells them', async () => {
  const path = '/audio/transcriptions';
  const cues = '1\n00:00:00,000 --> 00:00:20,000\na\n\n2\n00:00:20,000 --> 00:01:30,000\nb\n';
  for (const [text, cost] of [
    [cues, 9_000_000],
    [`WEBVTT\n\n${cues.replaceAll(',', '.')}`, 9_000_000],
    ['a b', null],
    ['', null],
  ] as const) {
    words = text;
    expect(await costOf(path, 'minutes')).toBe(cost);
    expect(await costOf(path, 'tokens')).toBe(null);
  }
  words = JSON.stringify({ task: 'transcribe', duration: 90, text: 'a b', segments: [] });
  expect(await costOf(path, 'minutes')).toBe(9_000_000);
});

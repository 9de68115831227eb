/** Turns share the bytes of their bodies: each try of each turn gets its own turn whole, and so does each recording. */

import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startInProcess } from '../support/in-process.ts';

const TURNS = 8;
const SESSIONS = 3;
const words = (what: string) => `${what} of this session. `.repeat(1500);

/** What a client sends with its turn `last`. */
function turn(session: number, last: number): string {
  const messages: object[] = [{ role: 'user', content: words(`task ${session}`) }];
  for (let i = 0; i <= last; i++) {
    messages.push({ role: 'assistant', content: `answer ${session}.${i}` });
    const cache = i === last ? { cache_control: { type: 'ephemeral' } } : {};
    messages.push({
      role: 'user',
      content: [{ type: 'text', text: words(`news ${session}.${i}`), ...cache }],
    });
  }
  return JSON.stringify({ model: 'm', max_tokens: 100, messages });
}

const reply = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

test('a turn that is tried again while the next one is written, and its recording, hold the same bytes as alone', async () => {
  const came: string[] = [];
  const tries = new Map<string, number>();
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = await request.text();
      came.push(body);
      const number = (tries.get(body) ?? 0) + 1;
      tries.set(body, number);
      if (number > 1)
        return new Response(reply, { headers: { 'content-type': 'application/json' } });
      // Long enough for the next turn to be on its way.
      await Bun.sleep(30);
      return new Response('{"error":{"message":"busy"}}', { status: 503 });
    },
  });
  const config = (history: number) => ({
    listen: '127.0.0.1:0',
    providers: {
      v: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vendor.port}/v1`,
        keys: ['sk-vendor'],
        profile: 'none',
      },
    },
    routes: [{ to: ['v/m'] }],
    retry: { attempts: 2, base_delay: 0 },
    limits: { history_bytes: history },
    samples: { mode: 'all' },
  });
  const send = async (url: string, body: string) => {
    const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' };
    const answer = await fetch(`${url}/v1/messages`, { method: 'POST', headers, body });
    expect(await answer.text()).toContain('ok');
  };
  const all = Array.from({ length: SESSIONS * TURNS }, (_, i) =>
    turn(i % SESSIONS, Math.floor(i / SESSIONS)),
  );

  const cold = await startInProcess(config(0));
  for (const body of all) await send(cold.url, body);
  await cold.stop();
  const expected = came.splice(0).sort();
  expect(new Set(expected).size).toBe(all.length);
  tries.clear();

  const warm = await startInProcess(config(64 * 1024 * 1024));
  const answers: Promise<void>[] = [];
  for (const body of all) {
    answers.push(send(warm.url, body));
    await Bun.sleep(8);
  }
  await Promise.all(answers);
  expect(came.sort()).toEqual(expected);
  const folder = join(warm.home, 'samples');
  const recorded = () =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /provider-request\.json$/.test(name))
      .map((name) => readFileSync(join(folder, name), 'utf8'));
  // A file is there before its bytes are.
  const bytes = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);
  while (bytes(recorded()) < bytes(expected)) await Bun.sleep(20);
  expect(recorded().sort()).toEqual(expected);
  await warm.stop();
  await vendor.stop(true);
});

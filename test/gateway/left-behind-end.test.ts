/** A client that leaves right behind its last event has had the answer, though the vendor's body stays open. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { FileReader } from '../../src/money/reader.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { ResponsesSocket } from '../support/responses-socket.ts';
import { until } from '../support/until.ts';

const KEYS = { free: 'key-without-a-budget', budgeted: 'key-with-a-budget' };
// Gemini's streams end with their body.
const VENDORS = {
  c: ['openai-chat', '/v1'],
  r: ['openai-responses', '/v1'],
  m: ['anthropic-messages', ''],
} as const;
const messages = [{ role: 'user', content: 'Hello.' }];
/** Path, body, and what ends an answer. */
const CLIENTS = {
  chat: ['/v1/chat/completions', { messages }, 'data: [DONE]'],
  responses: ['/v1/responses', { input: 'Hello.' }, 'event: response.completed'],
  messages: ['/v1/messages', { messages, max_tokens: 50 }, 'event: message_stop'],
} as const;
const CASES = Object.keys(KEYS).flatMap((key) =>
  Object.keys(VENDORS).flatMap((vendor) =>
    [...Object.keys(CLIENTS), 'socket'].map((client) => [client, vendor, key] as const),
  ),
);

let upstream: FakeUpstream;
let relay: Server;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  upstream.answerWith(() => say('Fine.', { usage: { input: 100, output: 10 } }));
  // Its answers have no end.
  relay = createServer(async (request, response) => {
    const answer = await fetch(`${upstream.origin}${request.url}`, {
      method: 'POST',
      headers: request.headers as Record<string, string>,
      body: Buffer.concat(await Readable.from(request).toArray()),
    });
    response.writeHead(answer.status, { 'content-type': 'text/event-stream' });
    for await (const chunk of answer.body!) response.write(chunk);
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const { port } = relay.address() as AddressInfo;
  const providers = Object.fromEntries(
    Object.entries(VENDORS).map(([name, [protocol, path]]) => {
      const base_url = `http://127.0.0.1:${port}${path}`;
      const prices = { '*': { input: 1, output: 2 } };
      return [name, { protocol, base_url, keys: ['sk-up'], models: [name], prices }];
    }),
  );
  gateway = await startInProcess({
    providers,
    samples: { mode: 'off' },
    auth: {
      keys: [
        { name: 'free', key: KEYS.free },
        { name: 'budgeted', key: KEYS.budgeted, budgets: [{ usd: 100, per: 'day' }] },
      ],
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  relay.closeAllConnections();
  relay.close();
  await upstream.stop();
});

async function answeredAndLeft(client: string, model: string, key: string): Promise<void> {
  const authorization = `Bearer ${key}`;
  if (client === 'socket') {
    const socket = await ResponsesSocket.open(gateway.url, { authorization });
    socket.create({ model, input: 'Hello.' });
    await socket.last();
    socket.close();
    return;
  }
  const [path, body, end] = CLIENTS[client as keyof typeof CLIENTS];
  const leaving = new AbortController();
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, ...body }),
    signal: leaving.signal,
  });
  let text = '';
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const at = text.indexOf(end);
    if (at >= 0 && text.includes('\n\n', at)) break;
  }
  leaving.abort();
}

/** Undefined before it is written, and before the file and its tables are. */
function rowOf(id: string): { readonly ended: string; readonly output: number } | undefined {
  const path = join(gateway.home, 'state', 'spend.db');
  if (!existsSync(path)) return undefined;
  const reader = new FileReader(path);
  try {
    return reader.all<{ ended: string; output: number }>(
      'SELECT ended, output FROM spend WHERE request = $id',
      { id },
    )[0];
  } catch {
    return undefined;
  } finally {
    reader.close();
  }
}

test.each(CASES)(
  '%s client, vendor %s, key %s: no client that has gone',
  async (client, vendor, name) => {
    const before = gateway.lines.length;
    await answeredAndLeft(client, vendor, KEYS[name as keyof typeof KEYS]);
    const line = await until(() =>
      gateway.lines.slice(before).find((one) => one.includes('"event":"exchange"')),
    );
    const { id, status, aborted } = JSON.parse(line);
    expect([status, aborted ?? false]).toEqual([200, false]);
    const row = await until(() => rowOf(id));
    expect(row.ended).toBe('done');
    // A client of Chat that does not ask for usage leaves an estimate.
    if (client !== 'chat' || vendor !== 'c' || name === 'budgeted') expect(row.output).toBe(10);
  },
);

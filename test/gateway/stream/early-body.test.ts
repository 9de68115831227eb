/** A stream that has come whole when it begins: the same bytes, and no end that says more than the vendor's. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { connect } from 'node:net';
import type { ByteSink } from '../../../src/gateway/stream/client-lane.ts';
import type { ClientStream } from '../../../src/gateway/stream/client-stream.ts';
import { earlyBody } from '../../../src/gateway/stream/early-body.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const words = (bytes: number) => {
  let text = event({ role: 'assistant', content: '' });
  while (text.length < bytes) text += event({ content: 'Grüße, 世界! ' });
  return text;
};
const END = `${event({}, 'stop')}data: [DONE]\n\n`;

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

/** What the vendor writes at once, what it writes later, and whether it closes then. */
let script: { now: string; later?: string; closes?: boolean } = { now: '' };
let gateway: InProcess;
const vendor = Bun.listen({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    async data(socket) {
      const { now, later, closes } = script;
      socket.write(now);
      socket.flush();
      if (later !== undefined) {
        await Bun.sleep(50);
        socket.write(later);
        socket.flush();
      }
      if (closes === true) socket.end();
    },
  },
});

beforeAll(async () => {
  gateway = await startInProcess({
    providers: {
      v: {
        protocol: 'openai-chat',
        base_url: `http://127.0.0.1:${vendor.port}`,
        models: ['m'],
        retry: { attempts: 1 },
      },
    },
  });
});
afterAll(async () => {
  await gateway?.stop();
  vendor.stop(true);
});

interface Seen {
  readonly head: string;
  /** Without the framing of chunks. */
  readonly body: string;
  /** The end of the body was said. */
  readonly isWhole: boolean;
}

/** The answer as it stands on the wire. */
function ask(path: string, body: object): Promise<Seen> {
  const { port } = new URL(gateway.url);
  const text = JSON.stringify(body);
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect(Number(port), '127.0.0.1', () =>
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
      ),
    );
    socket.on('data', (bytes: Buffer) => parts.push(bytes));
    socket.on('error', () => {});
    socket.on('close', () => resolve(seen(Buffer.concat(parts))));
  });
}

function seen(all: Buffer): Seen {
  const at = all.indexOf('\r\n\r\n');
  const head = all.toString('latin1', 0, at).toLowerCase();
  const rest = all.subarray(at + 4);
  const length = /content-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined) {
    return { head, body: rest.toString(), isWhole: rest.length === Number(length) };
  }
  const parts: Buffer[] = [];
  for (let from = 0; ; ) {
    const line = rest.indexOf('\r\n', from);
    const size = line < 0 ? -1 : Number.parseInt(rest.toString('latin1', from, line), 16);
    if (size <= 0) return { head, body: Buffer.concat(parts).toString(), isWhole: size === 0 };
    parts.push(rest.subarray(line + 2, line + 2 + size));
    from = line + 4 + size;
  }
}

const CHAT = { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
const MESSAGES = { ...CHAT, max_tokens: 100 };

for (const bytes of [400, 4000, 9000, 30_000]) {
  test(`${bytes} bytes that come at once leave as they came, with their length`, async () => {
    const text = words(bytes) + END;
    script = { now: HEAD + chunk(text) + chunk('') };
    const { head, body, isWhole } = await ask('/v1/chat/completions', CHAT);
    expect(body).toBe(text);
    expect(isWhole).toBe(true);
    expect(head).toContain(`content-length: ${Buffer.byteLength(text)}`);
    expect(head).toContain('content-type: text/event-stream');
  });

  test(`${bytes} bytes whose end comes later leave as a stream`, async () => {
    const text = words(bytes);
    script = { now: HEAD + chunk(text), later: chunk(END) + chunk('') };
    const { head, body, isWhole } = await ask('/v1/chat/completions', CHAT);
    expect(body).toBe(text + END);
    expect(isWhole).toBe(true);
    expect(head).not.toContain('content-length');
  });

  test(`${bytes} bytes without the protocol's end, at once: an error event and no clean end`, async () => {
    const text = words(bytes);
    script = { now: HEAD + chunk(text) + chunk('') };
    const { body, isWhole } = await ask('/v1/chat/completions', CHAT);
    expect(body.startsWith(text)).toBe(true);
    expect(body.slice(text.length)).toContain('"error"');
    expect(isWhole).toBe(false);
  });

  test(`${bytes} bytes and a closed connection: an error event and no clean end`, async () => {
    const text = words(bytes);
    script = { now: HEAD + chunk(text), closes: true };
    const { body, isWhole } = await ask('/v1/chat/completions', CHAT);
    expect(body.startsWith(text)).toBe(true);
    expect(body.slice(text.length)).toContain('"error"');
    expect(isWhole).toBe(false);
  });

  test(`${bytes} bytes for a client of another protocol: its own end, once`, async () => {
    script = { now: HEAD + chunk(words(bytes) + END) + chunk('') };
    const { body, isWhole } = await ask('/v1/messages', MESSAGES);
    expect(body.match(/event: message_stop/g)).toHaveLength(1);
    expect(body).toContain('Grüße, 世界! ');
    expect(isWhole).toBe(true);
  });
}

test('30 answers at the same time keep their own headers', async () => {
  const text = words(400) + END;
  script = { now: HEAD + chunk(text) + chunk('') };
  const heads = await Promise.all(
    Array.from({ length: 30 }, async () => (await ask('/v1/chat/completions', CHAT)).head),
  );
  const ids = heads.map((head) => /x-hopgate-request-id: (\S+)/.exec(head)?.[1]);
  expect(new Set(ids).size).toBe(30);
});

test('a long answer is not gathered: its writer waits for the client, and the parts leave as they are', async () => {
  const parts = [100_000, 100_000, 100_000, 100_000].map((size, at) => Buffer.alloc(size, 97 + at));
  let written = 0;
  const stream = {
    async pull(sink: ByteSink) {
      for (const part of parts) {
        const slow = sink.write(part);
        written++;
        if (slow instanceof Promise) await slow;
      }
      sink.close();
    },
    cancel() {},
  };
  const body = await earlyBody(stream as unknown as ClientStream);
  expect(written).toBe(3);
  expect(body).toBeInstanceOf(ReadableStream);
  const seen = await new Response(body as ReadableStream).bytes();
  expect(Buffer.compare(seen, Buffer.concat(parts))).toBe(0);
});

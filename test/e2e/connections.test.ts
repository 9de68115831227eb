/** Client connections in unusual states: idle, slow, half closed, too many; and malformed Host headers and model names. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { plainRequest, post } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

// The runtime checks its timers every four seconds.
const LIMITS = { idle_connection: 2, idle_body: 2, unfinished_bytes: 1_000_000 };

beforeAll(async () => {
  upstream = await startFakeUpstream({ models: ['m1'] });
  gateway = await startGateway(threeProviders(upstream, { limits: LIMITS }));
}, 120_000);
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const chat = plainRequest('openai-chat', 'via-chat', false);
const streamed = plainRequest('openai-chat', 'via-chat', true);

interface Open {
  readonly socket: Socket;
  said(): string;
  /** Milliseconds until the other side closed the connection. */
  readonly closed: Promise<number>;
}

function open(url: string, ...lines: string[]): Open {
  const began = performance.now();
  const { promise, resolve } = Promise.withResolvers<number>();
  let text = '';
  const socket = connect({
    port: Number(new URL(url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  });
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  socket.on('error', () => {});
  socket.on('end', () => socket.destroy());
  socket.on('close', () => resolve(performance.now() - began));
  if (lines.length > 0) socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return { socket, said: () => text, closed: promise };
}

const head = (method: string, path: string, ...more: string[]) => [
  `${method} ${path} HTTP/1.1`,
  'host: 127.0.0.1',
  ...more,
];
const withBody = (body: unknown) => {
  const text = JSON.stringify(body);
  return [`content-length: ${Buffer.byteLength(text)}`, '', text] as const;
};
const request = (body: unknown) => head('POST', chat.path, ...withBody(body)).join('\r\n');

describe('a client connection', () => {
  beforeAll(() => {
    upstream.answerWith(({ bytes, body }) => {
      if (bytes.length > 100_000) return say('all of it');
      return body.stream === true
        ? say('One word after the other.', { delivery: { piece: 5, paceMs: 2000 } })
        : say('late', { delivery: { firstByteMs: 9000 } });
    });
  });

  test.concurrent(
    'an idle connection is closed: without a request, with half a head, after an answer, in the middle of a body',
    async () => {
      const all = [
        open(gateway.url, ...head('GET', '/healthz')),
        open(gateway.url, ...head('POST', chat.path, 'content-length: 500')),
        open(gateway.url, ...head('POST', chat.path, 'content-length: 100000')),
        open(gateway.url, ...head('POST', chat.path, 'transfer-encoding: chunked')),
        open(
          gateway.url,
          ...head('POST', chat.path, 'content-length: 500', 'content-encoding: gzip'),
        ),
      ];
      const times = await Promise.all(all.map(({ closed }) => closed));
      expect(Math.max(...times)).toBeLessThan(30_000);
      expect(all[0]!.said()).toStartWith('HTTP/1.1 200');
    },
    { timeout: 40_000 },
  );

  test.concurrent(
    'a connection stays open during a slow answer and a slow stream, and closes afterwards',
    async () => {
      const whole = open(gateway.url);
      whole.socket.write(request(chat.body));
      const stream = open(gateway.url);
      stream.socket.write(request(streamed.body));
      await until(() => whole.said().includes('late'));
      await until(() => stream.said().includes('[DONE]'));
      expect(await stream.closed).toBeLessThan(40_000);
      await whole.closed;
      expect(whole.said()).toStartWith('HTTP/1.1 200');
    },
    { timeout: 60_000 },
  );

  test.concurrent(
    'a connection may send a large body slowly while bytes keep coming',
    async () => {
      const text = JSON.stringify({
        ...chat.body,
        messages: [{ role: 'user', content: 'x'.repeat(600_000) }],
      });
      const one = open(gateway.url, ...head('POST', chat.path, 'transfer-encoding: chunked'));
      const piece = Math.ceil(text.length / 5);
      for (let at = 0; at < text.length; at += piece) {
        const part = text.slice(at, at + piece);
        one.socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
        await Bun.sleep(1800);
      }
      one.socket.write('0\r\n\r\n');
      await until(() => one.said().includes('all of it'));
      one.socket.destroy();
    },
    { timeout: 30_000 },
  );

  test('a connection with two requests at once is closed before a vendor gets either', async () => {
    upstream.clear();
    upstream.enqueue(say('one'), say('two'));
    const one = open(gateway.url);
    one.socket.write(request(chat.body) + request(chat.body));
    await one.closed;
    await Bun.sleep(100);
    expect(upstream.modelRequests).toHaveLength(0);
  });
});

test('unfinished bodies stay within the memory limit, and refused ones get a Retry-After', async () => {
  const waiting = [0, 1, 2].map(() =>
    open(
      gateway.url,
      ...head('POST', chat.path, 'content-length: 400000', '', 'x'.repeat(399_000)),
    ),
  );
  const refused = await until(() => waiting.find(({ said: contentOf }) => contentOf() !== ''));
  expect(refused.said()).toStartWith('HTTP/1.1 503');
  expect(refused.said()).toMatch(/^retry-after: \d+/im);
  upstream.clear();
  upstream.enqueue(say('small ones go on'));
  expect((await post(gateway.url, chat.path, chat.body)).status).toBe(200);
  for (const { socket } of waiting) socket.destroy();
});

test('large bodies of requests that run stay within the memory limit until their exchanges are over', async () => {
  const limited = await startGateway(
    threeProviders(upstream, { limits: { running_bytes: 1_000_000 } }),
  );
  try {
    upstream.clear();
    const large = { ...chat.body, messages: [{ role: 'user', content: 'x'.repeat(600_000) }] };
    for (const path of [chat, streamed]) {
      upstream.enqueue(say('late', { delivery: { firstByteMs: 1500 } }), say('small'), say('next'));
      const before = upstream.modelRequests.length;
      const first = post(limited.url, chat.path, { ...large, stream: path === streamed });
      await upstream.request(before);
      const refused = await post(limited.url, chat.path, large);
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
      expect(await refused.json()).toMatchObject({ error: { code: 'too_many_large_requests' } });
      expect((await post(limited.url, chat.path, chat.body)).status).toBe(200);
      expect(await (await first).text()).toContain('late');
      const next = await until(async () => {
        const again = await post(limited.url, chat.path, large);
        return again.status === 200 ? again : undefined;
      });
      expect(await next.text()).toContain('next');
    }
  } finally {
    await limited.stop();
  }
});

test.skipIf(process.platform !== 'linux')(
  'with more connections than descriptors, open ones are served, the CPU stays idle, and the log names the limit',
  async () => {
    const limited = await startGateway(threeProviders(upstream), { descriptors: 256 });
    const crowd: Open[] = [];
    try {
      await Bun.sleep(500);
      const first = open(limited.url, ...head('GET', '/healthz'));
      await until(() => first.said().startsWith('HTTP/1.1 200'));
      for (let i = 0; i < 400; i++) crowd.push(open(limited.url));
      await until(() => limited.logs().find(({ event }) => event === 'connections.full'));
      expect(limited.logs().find(({ event }) => event === 'connections.full')).toMatchObject({
        limit: 'RLIMIT_NOFILE',
        descriptors: 256,
      });
      const before = cpuTicks(limited.pid);
      await Bun.sleep(1000);
      expect(cpuTicks(limited.pid) - before).toBeLessThan(30);
      // An open connection can still reach a vendor.
      upstream.clear();
      upstream.enqueue(say('there is room'));
      first.socket.write(request(chat.body));
      await until(() => first.said().includes('there is room'));
      for (const { socket } of crowd) socket.destroy();
      await until(async () => (await fetch(`${limited.url}/healthz`)).ok);
    } finally {
      for (const { socket } of crowd) socket.destroy();
      await limited.stop();
    }
  },
  { timeout: 30_000 },
);

test.skipIf(process.platform !== 'linux')(
  'a crowd right after the start, larger than the limit of open files, does not end the process, and all is paid for',
  async () => {
    const paid = { auth: { keys: [{ name: 'ci', key: 'key-of-the-crowd' }] } };
    const limited = await startGateway(threeProviders(upstream, paid), { descriptors: 256 });
    const headers = { authorization: 'Bearer key-of-the-crowd', connection: 'close' };
    upstream.answerWith(() => say('Hi.', { delivery: { firstByteMs: 300 } }));
    let ended: number | undefined;
    void limited.exited.then((code) => {
      ended = code;
    });
    let answered = 0;
    try {
      const asked = Array.from({ length: 600 }, async () => {
        const answer = await fetch(`${limited.url}${chat.path}`, {
          method: 'POST',
          headers,
          body: JSON.stringify(chat.body),
        });
        if (answer.ok && (await answer.text()).includes('Hi.')) answered++;
      });
      await Promise.allSettled(asked);
      expect(ended).toBeUndefined();
      expect(answered).toBeGreaterThan(100);
      await until(async () => {
        const usage = await fetch(`${limited.url}/v1/usage`, { headers });
        const { spent } = (await usage.json()) as { spent: { today: { requests: number } } | null };
        return (spent?.today.requests ?? 0) >= answered;
      });
    } finally {
      await limited.stop();
    }
  },
  { timeout: 120_000 },
);

test.skipIf(process.platform !== 'linux').each([
  ['right after the start', 0],
  ['later', 1000],
])(
  'idle connections that hold every descriptor do not keep others out: %s',
  async (_, waitMs) => {
    const limited = await startGateway(threeProviders(upstream), { descriptors: 256 });
    upstream.answerWith(() => say('Hi.'));
    await Bun.sleep(waitMs);
    const body = JSON.stringify(chat.body);
    const ask = () =>
      fetch(limited.url + chat.path, { method: 'POST', headers: { connection: 'close' }, body });
    const crowd = Array.from({ length: 300 }, () => open(limited.url));
    for (const { socket } of crowd) socket.write(request(chat.body));
    try {
      await until(() => crowd.filter(({ said }) => said().includes('Hi.')).length > 150);
      for (let i = 0; i < 3; i++) await until(async () => (await ask().catch(() => {}))?.ok);
      const before = cpuTicks(limited.pid);
      await Bun.sleep(1000);
      expect(cpuTicks(limited.pid) - before).toBeLessThan(30);
    } finally {
      for (const { socket } of crowd) socket.destroy();
      await limited.stop();
    }
  },
  { timeout: 60_000 },
);

/** CPU time that a process has used, in hundredths of a second. */
function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

describe('a malformed Host', () => {
  const paths = [
    ['GET', '/ui/api/info'],
    ['GET', '/v1/memory/a/events'],
    ['GET', '/docs'],
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['GET', '/v1/models'],
    ['GET', '/metrics'],
    ['GET', '/nowhere'],
    ['POST', chat.path],
  ] as const;
  test.each(['', '127.0.0.1@evil', 'a b', '[::1', 'x/y', 'x?y', '%', 'x:99999'])(
    'the Host "%s" is a client error on every route',
    async (host) => {
      for (const [method, path] of paths) {
        const one = open(
          gateway.url,
          `${method} ${path} HTTP/1.1`,
          `host: ${host}`,
          'content-length: 0',
        );
        await until(() => one.said() !== '');
        expect(one.said()).toMatch(/^HTTP\/1\.1 4\d\d/);
        one.socket.destroy();
      }
    },
  );

  test('CONNECT is refused with a message', async () => {
    const one = open(gateway.url, 'CONNECT example.com:443 HTTP/1.1', 'host: example.com:443');
    await until(() => one.said().includes('This is no proxy'));
    expect(one.said()).toStartWith('HTTP/1.1 405');
  });

  test('/metrics reveals nothing to a foreign Host', async () => {
    const headers = { host: 'evil.example' };
    const answer = await fetch(`${gateway.url}/metrics`, { headers });
    expect(answer.status).toBe(403);
    expect(await answer.text()).not.toContain('hopgate_requests_total');
  });
});

describe('a model name', () => {
  const anyModel = () => ({
    providers: {
      any: { protocol: 'openai-chat', base_url: vendor.baseUrl('openai-chat'), models: ['*'] },
    },
    samples: { mode: 'off' },
  });
  let vendor: FakeUpstream;
  let open: Gateway;
  beforeAll(async () => {
    vendor = await startFakeUpstream();
    open = await startGateway(anyModel());
  });
  afterAll(async () => {
    await open?.stop();
    await vendor?.stop();
  });

  test.each(['通义千问', '🙂', 'p/日本', 'модель', 'a b', '50%', 'نموذج‮'])(
    'a name in any script reaches the vendor, and headers carry it encoded: %s',
    async (model) => {
      for (const stream of [false, true]) {
        vendor.clear();
        vendor.enqueue(say('hello'));
        const answer = await post(open.url, chat.path, { ...chat.body, model, stream });
        await answer.text();
        expect(vendor.modelRequests[0]!.body.model).toBe(model);
        const reported = answer.headers.get('x-hopgate-target') ?? '';
        expect(decodeURIComponent(reported)).toBe(`any/${model}`);
      }
    },
  );

  test.each([
    'a\nb',
    'a\rb',
    'a\0',
    '\x1b[2J',
    'a\x7f',
    'a\x9b',
    '\ud800',
    '\u2028',
    'x'.repeat(400_000),
  ])('a malformed name is refused before a vendor gets the request', async (model) => {
    vendor.clear();
    const answer = await post(open.url, chat.path, { ...chat.body, model });
    expect([answer.status, vendor.modelRequests.length]).toEqual([400, 0]);
    expect(await answer.json()).toMatchObject({ error: { param: 'model' } });
  });
});

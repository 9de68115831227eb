/** The binary as a process: its inputs, its endpoints, how it starts, reloads and stops. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Gateway, runBinary, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { plainRequest, post } from './clients.ts';

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await startGateway(threeProviders(upstream));
}, 120_000);
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

/** A handwritten request that `fetch` would not send; returns the first bytes of the answer. */
function raw(url: string, lines: string[]): Promise<string> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    });
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

const chat = plainRequest('openai-chat', 'via-chat', true);

describe('serving', () => {
  test('stdout holds only the line with the address', () => {
    expect(gateway.stdout()).toBe(`hopgate listening on ${gateway.url}\n`);
  });

  test.skipIf(process.platform !== 'linux')('memory used only at start is released', async () => {
    const fresh = await startGateway(threeProviders(upstream));
    const resident = () =>
      Number(/RssFile:\s+(\d+)/.exec(readFileSync(`/proc/${fresh.pid}/status`, 'latin1'))?.[1]);
    try {
      const most = resident();
      for (let tries = 0; resident() > most - 8192 && tries < 100; tries++) await Bun.sleep(50);
      expect(resident()).toBeLessThan(most - 8192);
      expect((await fetch(`${fresh.url}/healthz`)).status).toBe(200);
    } finally {
      await fresh.stop();
    }
  });

  test('health, readiness, metrics and the root page answer', async () => {
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
    expect((await fetch(gateway.url, { method: 'HEAD' })).status).toBe(200);
    upstream.enqueue(say('counted'));
    await (await post(gateway.url, chat.path, chat.body)).text();
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/^# TYPE \w+ (counter|histogram|gauge)$/m);
  });

  test('models are listed in each protocol', async () => {
    const openai = (await (await fetch(`${gateway.url}/v1/models`)).json()) as {
      data: { id: string }[];
    };
    expect(openai.data.length).toBeGreaterThan(0);
    const headers = { 'anthropic-version': '2023-06-01', 'x-api-key': 'k' };
    const anthropic = (await (await fetch(`${gateway.url}/v1/models`, { headers })).json()) as {
      data: { id: string; type: string }[];
    };
    expect(anthropic.data.every((model) => model.type === 'model')).toBe(true);
  });

  test('tokens are counted for Messages clients, whatever the vendor', async () => {
    for (const model of ['via-chat', 'via-messages']) {
      const { body } = plainRequest('anthropic-messages', model, false);
      const { max_tokens: _, stream: __, ...rest } = body;
      const response = await post(gateway.url, '/v1/messages/count_tokens', rest);
      const counted = (await response.json()) as { input_tokens: number };
      expect(counted.input_tokens).toBeGreaterThan(0);
    }
  });

  test('a trailing slash is ignored, and a wrong method or path is an error in JSON', async () => {
    upstream.enqueue(say('slashed'));
    const answer = await post(gateway.url, `${chat.path}/`, chat.body);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('slashed');
    const wrong = await fetch(gateway.url + chat.path);
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await wrong.json()).toMatchObject({
      error: {
        message: `GET is not offered at ${chat.path}; use POST.`,
        code: 'method_not_allowed',
      },
    });
    expect((await fetch(`${gateway.url}/nowhere`, { method: 'POST', body: '{}' })).status).toBe(
      404,
    );
  });

  test('concurrent first requests work on parts that load on demand', async () => {
    const fresh = await startGateway(threeProviders(upstream));
    try {
      const paths = ['/v1/models', '/metrics', '/docs', '/ui', '/v1/memory/openapi.json', '/'];
      const answers = await Promise.all(paths.map((path) => fetch(fresh.url + path)));
      expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
    } finally {
      await fresh.stop();
    }
  });

  test('a thread of the Messages beta is refused with the message that makes the SDK send all messages', async () => {
    const { path, body } = plainRequest('anthropic-messages', 'via-messages', false);
    const response = await post(gateway.url, path, { ...body, thread: { type: 'create' } });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } },
    });
  });

  test('a foreign Host or Origin is refused on loopback', async () => {
    const host = await raw(gateway.url, ['GET /v1/models HTTP/1.1', 'host: evil.example']);
    expect(host).toMatch(/^HTTP\/1\.1 (403|421)/);
    const origin = await post(gateway.url, chat.path, chat.body, {
      headers: { origin: 'https://evil.example' },
    });
    expect(origin.status).toBe(403);
  });

  test('a client that leaves in the middle of its body is logged as gone, not as a failure', async () => {
    const { port } = new URL(gateway.url);
    const agent = 'leaves-early/1.0';
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(
      `POST ${chat.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: ${agent}\r\ncontent-length: 500\r\n\r\n{"mo`,
      () => socket.destroy(),
    );
    const line = await until(() =>
      gateway.logs().find(({ client }) => String(client).includes(agent)),
    );
    expect(line).toMatchObject({ level: 'warn', status: 499, aborted: true });
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/^hopgate_requests_total\{.*status="499"/m);
    expect(metrics).not.toMatch(/^hopgate_requests_total\{.*status="500"/m);
  });
});

// https://github.com/oven-sh/mimalloc; its limit of fetches: https://bun.com/docs/runtime/env
describe.skipIf(process.platform !== 'linux')(
  'variables that the runtime reads when it begins',
  () => {
    const NAMES = [
      'BUN_CONFIG_MAX_HTTP_REQUESTS',
      'MIMALLOC_PURGE_DELAY',
      'MIMALLOC_PURGE_HOLES_MIN_INTERVAL',
      'BUN_JSC_codeBlockAgingLeaseMultiplier',
    ];
    const variablesOf = (pid: number) =>
      new Map(
        readFileSync(`/proc/${pid}/environ`, 'utf8')
          .split('\0')
          .map((line) => line.split('=', 2) as [string, string]),
      );

    test('are set in a process that was started without them, under its pid', () => {
      const variables = variablesOf(gateway.pid);
      expect(NAMES.filter((name) => !(Number(variables.get(name)) > 0))).toEqual([]);
    });

    test('keep what the user has set', async () => {
      const other = await startGateway(threeProviders(upstream), {
        env: { MIMALLOC_PURGE_DELAY: '77' },
      });
      const variables = variablesOf(other.pid);
      await other.stop();
      expect(NAMES.map((name) => variables.get(name))).toEqual(['65535', '77', '30000', '20']);
    }, 30_000);
  },
);

describe('keys', () => {
  test('configured keys alone give access, in either header', async () => {
    const config = threeProviders(upstream, { auth: { keys: ['sk-door'] } });
    const guarded = await startGateway(config);
    try {
      const ask = (headers: Record<string, string>) =>
        post(guarded.url, chat.path, { ...chat.body, stream: false }, { headers });
      expect((await ask({ authorization: '' })).status).toBe(401);
      expect((await ask({ authorization: 'Bearer sk-wrong' })).status).toBe(401);
      upstream.enqueue(say('in'), say('in'));
      expect((await ask({ authorization: 'Bearer sk-door' })).status).toBe(200);
      expect((await ask({ authorization: '', 'x-api-key': 'sk-door' })).status).toBe(200);
      expect((await fetch(`${guarded.url}/healthz`)).status).toBe(200);
      expect((await fetch(`${guarded.url}/v1/models`)).status).toBe(401);
    } finally {
      await guarded.stop();
    }
  });

  test('without keys it does not start on a public address', async () => {
    const home = await mkdtemp(join(tmpdir(), 'hopgate-open-'));
    const path = join(home, 'hopgate.yaml');
    const open = { ...threeProviders(upstream), listen: '0.0.0.0:0' };
    await Bun.write(path, JSON.stringify(open));
    const run = await Promise.race([
      runBinary(['serve', '--config', path, '--port', '0'], {}),
      Bun.sleep(4000).then(() => undefined),
    ]);
    await rm(home, { recursive: true, force: true });
    expect(run).toBeDefined();
    expect(run!.code).not.toBe(0);
    expect(run!.stderr).toMatch(/auth|key/i);
    expect(run!.stdout).toBe('');
  });
});

describe('a public address', () => {
  const guarded = () => ({
    ...threeProviders(upstream),
    listen: '0.0.0.0:0',
    auth: { keys: ['sk-door'] },
  });
  const rejected = (run: Gateway) =>
    run.logs().filter(({ event }) => event === 'config.rejected').length;

  test.each([
    ['as it is', {}],
    ['and the address, which needs a restart', { listen: '127.0.0.1:0' }],
  ])('a reload that removes the keys is refused: %s', async (_, more) => {
    const run = await startGateway(guarded());
    try {
      const { auth: _keys, ...open } = guarded();
      await Bun.write(run.configPath, JSON.stringify({ ...open, ...more }));
      run.signal('SIGHUP');
      await until(() => rejected(run) > 0);
      const requestFor = () => post(run.url, chat.path, chat.body).then(({ status }) => status);
      expect(await requestFor()).toBe(401);
      // The file watcher refuses it, too.
      await until(() => rejected(run) > 1);
      expect(await requestFor()).toBe(401);
      expect(run.stderr()).toContain('without gateway keys');
    } finally {
      await run.stop();
    }
  });
});

describe('a port', () => {
  test.each([1, 2])(
    'a second start on a port shared by several processes is detected; workers: %i',
    async (workers) => {
      const run = await startGateway({ ...threeProviders(upstream), workers: 2 });
      try {
        const { port } = new URL(run.url);
        const second = await runBinary([
          'serve',
          '--config',
          run.configPath,
          '--port',
          port,
          '--workers',
          String(workers),
        ]);
        expect([second.code, second.stderr]).toEqual([1, expect.stringContaining(`Port ${port}`)]);
      } finally {
        await run.stop();
      }
    },
  );
});

describe('an untrusted working directory', () => {
  test('.env and bunfig.toml of the working directory are ignored', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hopgate-hostile-'));
    const trap = join(folder, 'trapped');
    await Bun.write(join(folder, 'bunfig.toml'), 'preload = ["./preload.ts"]\n');
    await Bun.write(
      join(folder, 'preload.ts'),
      `require('node:fs').writeFileSync(${JSON.stringify(trap)}, 'preload ran');`,
    );
    for (const file of ['.env', '.env.local', '.env.production']) {
      await Bun.write(join(folder, file), `HOPGATE_HOME=${join(folder, 'home')}\n`);
    }
    const run = await startGateway(threeProviders(upstream), { cwd: folder });
    try {
      upstream.enqueue(say('safe'));
      expect(await (await post(run.url, chat.path, chat.body)).text()).toContain('safe');
      expect(existsSync(trap)).toBe(false);
      expect(existsSync(join(folder, 'home'))).toBe(false);
    } finally {
      await run.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe('stopping and reloading', () => {
  const slow = () => say('One word after the other.', { delivery: { piece: 2, paceMs: 40 } });

  test('SIGTERM lets an open stream finish, refuses new requests, and exits with 0', async () => {
    const run = await startGateway(threeProviders(upstream));
    upstream.clear();
    upstream.enqueue(slow());
    const response = await post(run.url, chat.path, chat.body);
    const reading = response.text();
    run.signal('SIGTERM');
    await Bun.sleep(100);
    const late = await fetch(`${run.url}/readyz`).then(
      (one) => one.status,
      () => 0,
    );
    expect([0, 503]).toContain(late);
    const text = await reading;
    expect(text.trimEnd()).toEndWith('data: [DONE]');
    expect(await run.exited).toBe(0);
    await run.stop();
  });

  test('SIGTERM exits at once when no request is open', async () => {
    const settings = { limits: { drain: 600 }, log: { format: 'json' } };
    const run = await startGateway(threeProviders(upstream, settings));
    run.signal('SIGTERM');
    expect(await run.exited).toBe(0);
    await run.stop();
    // Who reads a log in JSON reads no banner in it.
    const lines = run.stderr().trimEnd().split('\n');
    expect(lines.filter((line) => !line.startsWith('{'))).toEqual([]);
    expect(run.logs().map(({ event }) => event)).toContain('server.started');
  });

  test('a second SIGTERM exits even while a stream hangs', async () => {
    const run = await startGateway(threeProviders(upstream, { limits: { drain: 600 } }));
    upstream.clear();
    upstream.enqueue(say('x', { delivery: { cut: { at: 2, by: 'hang' } } }));
    const response = await post(run.url, chat.path, chat.body);
    const reading = response.text().catch(() => 'broken');
    run.signal('SIGTERM');
    await Bun.sleep(150);
    run.signal('SIGTERM');
    await run.exited;
    expect(await reading).not.toContain('[DONE]');
    await run.stop();
  });

  test('SIGHUP applies a changed file and refuses a broken one', async () => {
    const run = await startGateway(threeProviders(upstream));
    try {
      const ask = async (model: string) => {
        upstream.clear();
        const { path, body } = plainRequest('openai-chat', model, false);
        return (await post(run.url, path, body)).status;
      };
      expect(await ask('renamed')).toBe(404);
      const config = threeProviders(upstream) as { routes: unknown[] };
      const routes = [...config.routes, { when: { model: 'renamed' }, to: ['chat/m1'] }];
      await Bun.write(run.configPath, JSON.stringify({ ...config, routes }));
      run.signal('SIGHUP');
      await until(async () => (await ask('renamed')) === 200);
      await Bun.write(run.configPath, 'providers: [');
      run.signal('SIGHUP');
      await Bun.sleep(300);
      expect(await ask('renamed')).toBe(200);
    } finally {
      await run.stop();
    }
  });

  test.each([
    ['of a provider', { providers: { concurrency: 1 } }],
    ['of all together', { limits: { concurrency: 1 } }],
  ])('a reload does not let a second request past the limit %s', async (_whose, limit) => {
    const config = threeProviders(upstream) as { providers: { chat: object } };
    const { providers, limits = {} } = limit as Record<string, object>;
    const chatOnly = { ...config.providers, chat: { ...config.providers.chat, ...providers } };
    const limited = { ...config, providers: chatOnly, limits };
    const run = await startGateway(limited);
    try {
      upstream.clear();
      const slowMs = 1000;
      upstream.enqueue(say('first', { delivery: { firstByteMs: slowMs } }), say('second'));
      const ask = async () => (await post(run.url, chat.path, chat.body)).text();
      const first = ask();
      await upstream.request(0);
      await Bun.write(run.configPath, JSON.stringify({ ...limited, keep_alive: 14 }));
      run.signal('SIGHUP');
      await until(() => run.logs().find(({ event }) => event === 'config.reloaded'));
      const second = ask();
      expect(await first).toContain('first');
      expect(await second).toContain('second');
      const [one, two] = upstream.modelRequests;
      expect(two!.at - one!.at).toBeGreaterThanOrEqual(slowMs * 0.95);
    } finally {
      await run.stop();
    }
  });
});

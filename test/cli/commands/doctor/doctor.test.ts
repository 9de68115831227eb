/** `hopgate doctor` against small servers that fail as vendors do: what it says, and what it never says. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import {
  checkOpenFiles,
  checkPort,
  checkWritable,
  diskRoom,
} from '../../../../src/cli/commands/doctor/machine.ts';
import { createWorld, type World } from '../../world.ts';

const KEY = 'sk-hopgate-test-0123456789abcdef';

let world: World;
const stops: (() => void)[] = [];
beforeEach(() => {
  world = createWorld();
  world.fetch = fetch;
});
afterEach(() => {
  world.remove();
  for (const stop of stops.splice(0)) stop();
});

type Handler = (request: Request, path: string) => Response | Promise<Response>;

const pem = (name: string) => join(import.meta.dir, '../../../support/certificates', `${name}.pem`);

/** A vendor on loopback, over TLS with a certificate of this name; returns its address. */
function vendor(handle: Handler, certificate?: string): string {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    ...(certificate === undefined
      ? {}
      : {
          tls: { cert: Bun.file(pem(certificate)), key: Bun.file(pem(`${certificate}.key`)) },
        }),
    fetch: (request) => handle(request, new URL(request.url).pathname),
  });
  stops.push(() => server.stop(true));
  return `http${certificate === undefined ? '' : 's'}://127.0.0.1:${server.port}`;
}

/** Answers as a healthy vendor of any protocol, after `check` had nothing to say. */
const healthy =
  (check: Handler = () => new Response(null, { status: 204 })): Handler =>
  async (request, path) => {
    const objection = await check(request.clone() as Request, path);
    if (objection.status !== 204) return objection;
    if (path.endsWith('/models')) return Response.json({ data: [{ id: 'm-1' }, { id: 'm-2' }] });
    if (path.endsWith('/chat/completions')) return Response.json({ choices: [{}] });
    if (path.endsWith('/responses')) return Response.json({ output: [] });
    if (path.endsWith('/messages')) return Response.json({ content: [] });
    return Response.json({ error: { message: 'no such path' } }, { status: 404 });
  };

const refuse = (status: number, message: string) => () =>
  Response.json({ error: { message } }, { status });

interface Provider {
  readonly protocol?: string;
  readonly base_url: string;
  readonly keys?: readonly string[];
  readonly models?: readonly string[];
  readonly [key: string]: unknown;
}

async function doctor(provider: Provider, ...more: string[]) {
  const p = { protocol: 'openai-chat', keys: [KEY], models: ['m-1'], ...provider };
  const config = world.write('hopgate.yaml', JSON.stringify({ listen: 0, providers: { p } }));
  const run = await world.run(['doctor', '--config', config, ...more]);
  const json = await world.run(['doctor', '--config', config, '--json', ...more]);
  for (const { out, err } of [run, json]) expect(out + err).not.toContain(KEY.slice(3));
  expect(json.code).toBe(run.code);
  const { ok, findings } = JSON.parse(json.out) as {
    ok: boolean;
    findings: { about: string; status: string; message: string; hint?: string }[];
  };
  expect(ok).toBe(run.code === 0);
  return { ...run, of: findings.filter(({ about }) => about === 'provider p') };
}

describe('a healthy provider', () => {
  for (const [protocol, suffix, auth, value] of [
    ['openai-chat', '/v1', 'authorization', `Bearer ${KEY}`],
    ['openai-responses', '/v1', 'authorization', `Bearer ${KEY}`],
    ['anthropic-messages', '', 'x-api-key', KEY],
  ] as const) {
    test(`${protocol}: key, list and completion, exit 0`, async () => {
      const paths: string[] = [];
      const base = vendor(
        healthy((request, path) => {
          paths.push(`${request.method} ${path}`);
          return request.headers.get(auth) === value
            ? new Response(null, { status: 204 })
            : Response.json({ error: { message: 'no key' } }, { status: 401 });
        }),
      );
      const { code, out, of } = await doctor({ protocol, base_url: base + suffix });
      expect(of.map(({ status }) => status)).toEqual(['ok', 'ok']);
      expect(of[0]!.message).toContain('2 models listed');
      expect(of[1]!.message).toStartWith('m-1 answered in ');
      expect(code).toBe(0);
      expect(out).toContain('Everything is fine.');
      const path = { 'openai-chat': '/chat/completions', 'openai-responses': '/responses' };
      expect(paths).toContain(`POST /v1${path[protocol as keyof typeof path] ?? '/messages'}`);
    });
  }

  test('one token is asked for, and none with --no-completion', async () => {
    const bodies: unknown[] = [];
    const base = vendor(
      healthy(async (request) => {
        if (request.method === 'POST') bodies.push(await request.json());
        return new Response(null, { status: 204 });
      }),
    );
    await doctor({ base_url: base }, '--no-completion');
    expect(bodies).toEqual([]);
    await doctor({ base_url: base }, '--model', 'm-2');
    expect(bodies[0]).toMatchObject({ model: 'm-2', max_tokens: 1 });
  });

  test('query parameters, headers and a vendor without a model list', async () => {
    const base = vendor((request, path) => {
      const url = new URL(request.url);
      if (url.searchParams.get('api-version') !== '1' || request.headers.get('x-team') !== 'a') {
        return new Response('', { status: 400 });
      }
      return path.endsWith('/models')
        ? new Response('', { status: 404 })
        : Response.json({ choices: [{}] });
    });
    const extra = { query: { 'api-version': '1' }, headers: { 'x-team': 'a' } };
    const { code, of } = await doctor({ base_url: base, ...extra });
    expect(of[0]!.message).toContain('no model list (404)');
    expect(code).toBe(0);
  });
});

describe('what is wrong is said in words, with advice, exit 1', () => {
  const cases: readonly (readonly [
    what: string,
    handler: Handler,
    says: RegExp,
    advice: RegExp,
  ])[] = [
    ['401', refuse(401, `Incorrect API key: ${KEY}`), /was rejected \(401\)/, /wrong, expired/],
    ['403', refuse(403, 'region'), /may not do this \(403\)/, /permission|region/],
    [
      'model not found',
      healthy((_, path) =>
        path.endsWith('/models')
          ? new Response(null, { status: 204 })
          : refuse(404, 'The model m-1 does not exist')(),
      ),
      /model "m-1" is not served \(404\)/,
      // The vendor lists it all the same: the name itself is no better one.
      /^(?!.*mean "m-1")/,
    ],
    [
      'no credit',
      healthy((_, path) =>
        path.endsWith('/models')
          ? new Response(null, { status: 204 })
          : refuse(402, 'Insufficient Balance')(),
      ),
      /no credit \(402\): "Insufficient Balance"/,
      /Top it up/,
    ],
    [
      'vendor down',
      healthy((_, path) =>
        path.endsWith('/models')
          ? new Response(null, { status: 204 })
          : new Response('<h1>Bad Gateway</h1>', { status: 502 }),
      ),
      /the vendor failed \(502\): "Bad Gateway"/,
      /status page/,
    ],
    ['wrong path', () => new Response('', { status: 404 }), /nothing is at/, /base_url/],
    ['a web page', () => new Response('<html>hi</html>'), /no JSON/, /base_url or protocol/],
    ['another protocol', () => Response.json({ ok: true }), /without a completion/, /base_url/],
  ];
  for (const [what, handler, says, advice] of cases) {
    test(what, async () => {
      const { code, of, out } = await doctor({ base_url: vendor(handler) });
      const failure = of.find(({ status }) => status === 'fail')!;
      expect(failure.message).toMatch(says);
      expect(failure.hint).toMatch(advice);
      expect(code).toBe(1);
      expect(out).toContain('FAIL');
    });
  }

  test('one of two keys is bad: it is named, the other goes on', async () => {
    const good = 'sk-good-key-0123456789';
    const base = vendor(
      healthy((request) =>
        request.headers.get('authorization') === `Bearer ${good}`
          ? new Response(null, { status: 204 })
          : refuse(401, 'bad')(),
      ),
    );
    const { code, of } = await doctor({ base_url: base, keys: [KEY, good] });
    expect(of.map(({ status }) => status)).toEqual(['fail', 'ok', 'ok']);
    expect(of[0]!.message).toMatch(/^keys\[0\] key-[0-9a-f]{6} was rejected/);
    expect(code).toBe(1);
  });

  test('429 is a warning: the key works', async () => {
    const base = vendor(
      healthy((_, path) =>
        path.endsWith('/models')
          ? new Response(null, { status: 204 })
          : refuse(429, 'quota exceeded')(),
      ),
    );
    const { code, of, out } = await doctor({ base_url: base });
    expect(of.at(-1)).toMatchObject({ status: 'warn' });
    expect(code).toBe(0);
    expect(out).toContain('Everything works, with 1 warning.');
  });

  test('a reasoning model that wants more than one token is there', async () => {
    const base = vendor(
      healthy((_, path) =>
        path.endsWith('/models')
          ? new Response(null, { status: 204 })
          : refuse(400, 'Could not finish the message because max_tokens was reached')(),
      ),
    );
    expect((await doctor({ base_url: base })).code).toBe(0);
  });

  test('a model that the vendor does not list: what was probably meant', async () => {
    const { of } = await doctor({ base_url: vendor(healthy()), models: ['m-11', 'm-2'] });
    expect(of.find(({ status }) => status === 'warn')).toMatchObject({
      hint: 'Did you mean "m-1"?',
    });
  });

  test('a refused connection', async () => {
    const { code, of } = await doctor({ base_url: 'http://127.0.0.1:1/v1' });
    expect(of[0]).toMatchObject({ status: 'fail', message: '127.0.0.1:1 refused the connection' });
    expect(of).toHaveLength(1);
    expect(code).toBe(1);
  });

  test('a silent server: reported after --timeout', async () => {
    const base = vendor(() => new Promise<Response>(() => {}));
    const { of } = await doctor({ base_url: base }, '--timeout', '1');
    expect(of[0]!.message).toMatch(/did not answer within 1 s$/);
    expect(of[0]!.hint).toContain('--timeout');
  });

  test('plain http where TLS is expected', async () => {
    const base = vendor(healthy()).replace('http:', 'https:');
    expect((await doctor({ base_url: base })).of[0]!.message).toContain('TLS handshake');
  });

  test('a certificate of an unknown authority', async () => {
    const base = vendor(healthy(), 'localhost');
    const { host } = new URL(base);
    const { of } = await doctor({ base_url: base });
    expect(of[0]!.message).toContain(`certificate of ${host} is not trusted`);
    expect(of[0]!.hint).toContain('ca_file');
    // The advice helps.
    const trusting = await doctor({ base_url: base, tls: { ca_file: pem('authority') } });
    expect(trusting.of.map(({ status }) => status)).not.toContain('fail');
  });

  test('a server that hangs up', async () => {
    const server: Server = createServer((socket) => socket.on('data', () => socket.destroy()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stops.push(() => server.close());
    const { port } = server.address() as { port: number };
    const { of } = await doctor({ base_url: `http://127.0.0.1:${port}/v1` });
    expect(of[0]).toMatchObject({ status: 'fail' });
    expect(of[0]!.message).toContain('closed the connection');
  });

  test('a name that cannot be resolved', async () => {
    const { of } = await doctor({ base_url: 'https://no-such-host.invalid/v1' });
    expect(of[0]!.message).toBe('the name no-such-host.invalid cannot be resolved');
  });

  test('the proxy is named, without its password', async () => {
    world.variables.HTTP_PROXY = 'http://me:hunter2hunter2@127.0.0.1:1';
    const { of, out } = await doctor({ base_url: 'http://127.0.0.1:1/v1' });
    expect(of[0]!.message).toContain('through the proxy http://me:');
    expect(out).not.toContain('hunter2');
  });

  test('no key for a vendor that needs one: which variable to set', async () => {
    const providers = {
      glm: { protocol: 'openai-chat', base_url: 'https://api.vendor.invalid/v1' },
    };
    const config = world.write('hopgate.yaml', JSON.stringify({ listen: 0, providers }));
    world.variables.HTTPS_PROXY = 'http://127.0.0.1:1';
    const { out, code } = await world.run(['doctor', '-c', config]);
    expect(code).toBe(1);
    expect(out).toContain('there is no API key');
    expect(out).toContain('ZHIPU_API_KEY');
  });
});

describe('the rest of the machine', () => {
  test('--provider picks one; a wrong name exits 2', async () => {
    const base = vendor(healthy());
    expect((await doctor({ base_url: base }, '--provider', 'p')).code).toBe(0);
    const config = join(world.home, 'hopgate.yaml');
    const { code, err } = await world.run(['doctor', '-c', config, '--provider', 'px']);
    expect(code).toBe(2);
    expect(err).toContain('Did you mean "p"?');
  });

  test('a broken configuration is the finding', async () => {
    const config = world.write('hopgate.yaml', 'providers:\n  a: { protocl: x }\n');
    const { code, out } = await world.run(['doctor', '-c', config]);
    expect(code).toBe(1);
    expect(out).toContain(`${config}:2:`);
  });

  test('nothing configured: a warning that says what to do, exit 0', async () => {
    world.fetch = (() => Promise.reject(new Error('offline'))) as unknown as typeof fetch;
    const { code, out } = await world.run(['doctor', '--json']);
    const { findings } = JSON.parse(out);
    expect(findings[0]).toMatchObject({ about: 'config', status: 'warn' });
    expect(findings.at(-1)).toMatchObject({ about: 'provider demo', status: 'skip' });
    // The usual port may be taken on this machine; that is a true finding then.
    const port = findings.find((f: { about: string }) => f.about === 'port');
    expect(code).toBe(port.status === 'fail' ? 1 : 0);
  });

  test('the port: free, held by hopgate, held by another program', async () => {
    const hold = (body: string) => {
      const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(body) });
      stops.push(() => server.stop(true));
      return { host: '127.0.0.1', port: server.port! };
    };
    const ours = hold('{"name":"hopgate","version":"1"}');
    expect(await checkPort(ours, fetch)).toMatchObject({ status: 'ok' });
    expect((await checkPort(ours, fetch)).message).toContain('hopgate is running');
    const other = hold('hello');
    expect(await checkPort(other, fetch)).toMatchObject({ status: 'fail' });
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    const free = { host: '127.0.0.1', port: server.port! };
    await server.stop(true);
    expect((await checkPort(free, fetch)).message).toContain('is free');
    expect(await checkPort({ host: '203.0.113.1', port: 9999 }, fetch)).toMatchObject({
      status: 'fail',
      message: '203.0.113.1 is no address of this machine',
    });
  });

  test('the home: can be made, is a file, may not be written', () => {
    expect(checkWritable('home', join(world.home, 'a/b/c')).status).toBe('ok');
    const file = world.write('file', '');
    expect(checkWritable('home', join(file, 'x')).status).toBe('fail');
    mkdirSync(join(world.home, 'locked'));
    chmodSync(join(world.home, 'locked'), 0o500);
    // Root may write anywhere.
    const expected = process.getuid?.() === 0 ? 'ok' : 'fail';
    expect(checkWritable('home', join(world.home, 'locked/x')).status).toBe(expected);
  });

  test('a full disk is a failure and a nearly full one a warning, though the folder can be written', () => {
    const disk = { bavail: 1_000_000, bsize: 4096, files: 1000, ffree: 900 };
    expect(diskRoom(disk)).toBeUndefined();
    expect(diskRoom({ ...disk, bavail: 0 })).toEqual({ level: 'fail', free: 'only 0 KB are' });
    expect(diskRoom({ ...disk, bavail: 2560 })).toEqual({ level: 'warn', free: 'only 10 MB are' });
    expect(diskRoom({ ...disk, ffree: 0 })?.level).toBe('fail');
    // A file system that counts no files.
    expect(diskRoom({ ...disk, files: 0, ffree: 0 })).toBeUndefined();
  });

  test('open files: few are a warning with a number of streams', () => {
    const limits = (n: string) =>
      world.write('limits', `Max open files            ${n}   4096  files\n`);
    expect(checkOpenFiles(limits('1024'))).toMatchObject({ status: 'warn' });
    expect(checkOpenFiles(limits('1024')).message).toContain('about 512 streams');
    expect(checkOpenFiles(limits('65536')).status).toBe('ok');
    expect(checkOpenFiles(limits('unlimited')).status).toBe('ok');
    expect(checkOpenFiles('/nowhere').status).toBe('skip');
  });
});

describe('what a route, a key and an address stand for', () => {
  const file = (base: string, keys: string, more: string) =>
    `listen: 0\nproviders:\n  p: { protocol: openai-chat, base_url: "${base}/v1", keys: ${keys}, models: ["m-*"] }\n${more}`;
  const run = async (text: string, ...more: string[]) => {
    const config = world.write('hopgate.yaml', text);
    return world.run(['doctor', '--config', config, ...more]);
  };

  test('a route or an alias to a model that the vendor does not list is a warning, with the nearest', async () => {
    const base = vendor(healthy());
    const more = 'routes:\n  - to: [p/m1]\naliases: { fast: p/quite-another }\n';
    const { out, code } = await run(file(base, `["${KEY}"]`, more));
    expect(code).toBe(0);
    expect(out).toContain('does not list the model "m1", which a route or alias sends there');
    expect(out).toContain('Did you mean "m-1"?');
    expect(out).toContain('the model "quite-another"');
    expect(out).toContain('It lists m-1, m-2.');
    expect(out).not.toContain('Everything is fine.');
  });

  test.each([
    [404, 'The model m1 does not exist', '[p/m1]'],
    [400, '模型不存在，请检查模型代码。', '[p/m1]'],
    [400, '模型不存在，请检查模型代码。', '[p/m-1, p/m1]'],
  ])(
    'a routed model that the vendor refuses with %i %s is a failure, exit 1',
    async (status, message, to) => {
      const asked: string[] = [];
      const base = vendor(
        healthy(async (request) => {
          if (request.method !== 'POST') return new Response(null, { status: 204 });
          const { model } = (await request.json()) as { model: string };
          asked.push(model);
          return model === 'm1' ? refuse(status, message)() : new Response(null, { status: 204 });
        }),
      );
      const { out, code } = await run(file(base, `["${KEY}"]`, `routes:\n  - to: ${to}\n`));
      expect(code).toBe(1);
      expect(out.replace(/\s+/g, ' ')).toContain(`the model "m1" is not served (${status})`);
      expect(asked).toContain('m1');
    },
  );

  test('at most three routed models are asked, and models of a preset are not warned of', async () => {
    const asked: string[] = [];
    const base = vendor(
      healthy(async (request) => {
        if (request.method === 'POST')
          asked.push(((await request.json()) as { model: string }).model);
        return new Response(null, { status: 204 });
      }),
    );
    const preset = `listen: 0\nproviders:\n  glm: { base_url: "${base}/v1", protocol: openai-chat, keys: ["${KEY}"] }\n`;
    const { out } = await run(`${preset}routes:\n  - to: [glm/a, glm/b, glm/c, glm/d]\n`);
    expect(asked).toEqual(['a', 'b', 'c']);
    expect(out).not.toContain('does not list the model "glm');
  });

  test('what a pattern takes is listed, and one model is one model', async () => {
    const { out } = await run(file(vendor(healthy()), `["${KEY}"]`, ''));
    expect(out).toContain('m-*: m-1, m-2');
    const one = vendor((_, path) =>
      path.endsWith('/models')
        ? Response.json({ data: [{ id: 'm-1' }] })
        : Response.json({ choices: [{}] }),
    );
    expect((await run(file(one, `["${KEY}"]`, ''))).out).toContain('1 model listed');
  });

  test('a key is named by its place and by what stands there', async () => {
    world.variables.SOME_KEY = KEY;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
    const { out } = await run(file(vendor(refuse(401, 'bad')), '["${SOME_KEY}"]', ''));
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as it stands in the file
    expect(out).toContain('keys[0] ${SOME_KEY} was rejected (401)');
  });

  test('plain http to a port that speaks TLS', async () => {
    const base = vendor(healthy(), 'localhost').replace('https:', 'http:');
    const { out, code } = await run(file(base, `["${KEY}"]`, ''));
    expect(code).toBe(1);
    expect(out.replace(/\s+/g, ' ')).toMatch(/base_url says http:\/\/.*https:\/\//);
  });
});

describe('what serve would refuse', () => {
  test('check and doctor refuse it, too', async () => {
    const text = `listen: 0.0.0.0:0\nproviders:\n  p: { protocol: openai-chat, base_url: "${vendor(healthy())}/v1", keys: ["${KEY}"], models: [m-1] }\n`;
    const config = world.write('hopgate.yaml', text);
    const check = await world.run(['check', '--config', config]);
    expect([check.code, check.out]).toEqual([1, '']);
    expect(check.err).toContain(`${config}:1:9: listen: refusing to listen on 0.0.0.0 without`);
    expect(check.err).toContain('1 problem.');
    const json = await world.run(['check', '--json', '--config', config]);
    expect([json.code, JSON.parse(json.out)]).toMatchObject([
      1,
      { ok: false, warnings: [], problems: [{ path: 'listen', line: 1, column: 9 }] },
    ]);
    const doctor = await world.run(['doctor', '--config', config]);
    expect(doctor.code).toBe(1);
    expect(doctor.out).toContain('refusing to listen');
    world.write('hopgate.yaml', `${text}auth: { keys: [a-key-of-some-length] }\n`);
    expect((await world.run(['check', '--config', config])).code).toBe(0);
  });
});

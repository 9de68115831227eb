/** The binary with a certificate: HTTPS and WSS, and a new certificate while connections are open. */

import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { type Gateway, runBinary, startGateway } from '../support/binary.ts';
import { until } from '../support/until.ts';

const CERTIFICATES = Bun.fileURLToPath(new URL('../support/certificates', import.meta.url));
const read = (name: string) => readFileSync(join(CERTIFICATES, name), 'utf8');

let folder = '';
let gateway: Gateway | undefined;
const vendors: Bun.Server<undefined>[] = [];
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  for (const vendor of vendors.splice(0)) vendor.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

/** Fresh files of this pair. */
function files(name: 'localhost' | 'elsewhere') {
  folder = mkdtempSync(join(tmpdir(), 'hopgate-tls-'));
  const paths = { cert_file: join(folder, 'cert.pem'), key_file: join(folder, 'key.pem') };
  put(name, paths);
  return paths;
}

type Paths = ReturnType<typeof files>;

function put(name: 'localhost' | 'elsewhere', { cert_file, key_file }: Paths): void {
  copyFileSync(join(CERTIFICATES, `${name}.pem`), cert_file);
  copyFileSync(join(CERTIFICATES, `${name}.key.pem`), key_file);
  chmodSync(key_file, 0o600);
}

/** A vendor whose streams send one word at once, and the rest when they are released. */
function slowVendor() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({
      id: 'c1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm1',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })}\n\n`;
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        (async function* () {
          yield chunk({ role: 'assistant', content: 'first' });
          await released;
          yield `${chunk({ content: ' second' })}${chunk({}, 'stop')}data: [DONE]\n\n`;
        })(),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
  });
  vendors.push(vendor);
  return { base: `http://127.0.0.1:${vendor.port}/v1`, release };
}

const configOf = (paths: Paths, more: Record<string, unknown> = {}) => ({
  listen: { address: '127.0.0.1:0', tls: paths },
  samples: { mode: 'off' },
  log: { format: 'json' },
  ...more,
});

/** The name in the certificate that a new connection gets. @throws when it is refused or reset */
function served(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const { hostname, port } = new URL(url);
  const options = { host: hostname, port: Number(port), rejectUnauthorized: false };
  const socket = connect(options, () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  });
  socket.on('error', reject);
  return promise;
}

const unverified = { tls: { rejectUnauthorized: false } };
/** Without the line breaks of a terminal. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ');
const logged = (name: string) => gateway!.logs().filter((line) => line.event === name);

const stream = (url: string, model: string) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
    ...unverified,
  });

describe('a certificate', () => {
  test('a client that trusts its authority gets answers by HTTPS and WSS', async () => {
    gateway = await startGateway(configOf(files('localhost')));
    expect(gateway.url).toStartWith('https://');
    const url = gateway.url.replace('127.0.0.1', 'localhost');
    const tls = { ca: read('authority.pem') };
    expect((await fetch(`${url}/healthz`, { tls })).status).toBe(200);
    // What the frame serves, too: it looks for the path behind the scheme.
    for (const path of ['/v1/models', '/ui', '/ui/api/info', '/docs', '/metrics', '/v1/usage']) {
      const answer = await fetch(url + path, { tls, headers: { 'x-hopgate-ui': '1' } });
      expect([path, answer.status]).toEqual([path, 200]);
    }
    // Without the authority the client refuses: the certificate is the one of the files.
    expect(fetch(`${url}/healthz`)).rejects.toThrow();
    const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/responses`, { tls } as never);
    const frames: { type: string }[] = [];
    socket.onmessage = ({ data }) => void frames.push(JSON.parse(String(data)));
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    socket.send(JSON.stringify({ type: 'response.create', model: 'demo', input: 'Say hello.' }));
    await until(() => frames.some(({ type }) => type === 'response.completed'));
    socket.close();
  }, 60_000);

  test.each([1, 2])(
    'a new pair is taken over: no connection fails, and open streams and sockets go on; processes: %i',
    async (workers) => {
      const paths = files('localhost');
      const vendor = slowVendor();
      const providers = {
        slow: { protocol: 'openai-chat', base_url: vendor.base, keys: ['sk-1'], models: ['m1'] },
      };
      gateway = await startGateway(configOf(paths, { providers, workers }));
      const { url } = gateway;
      const answers = await Promise.all([stream(url, 'm1'), stream(url, 'm1')]);
      const sockets = Array.from(
        { length: 4 },
        () => new WebSocket(`${url.replace('https', 'wss')}/v1/responses`, unverified as never),
      );
      await Promise.all(sockets.map((socket) => new Promise((done) => (socket.onopen = done))));
      const closed: number[] = [];
      for (const socket of sockets) socket.onclose = ({ code }) => void closed.push(code);
      const failures: string[] = [];
      const seen = new Set<string>();
      let ends = false;
      const clients = Array.from({ length: 8 }, async () => {
        while (!ends) {
          try {
            seen.add(await served(url));
          } catch (thrown) {
            failures.push(String(thrown));
          }
        }
      });
      await until(() => seen.has('localhost'));
      put('elsewhere', paths);
      // Several processes each take it over in their own time.
      await until(async () => {
        for (let i = 0; i < 16; i++) if ((await served(url)) !== 'elsewhere.test') return false;
        return true;
      });
      ends = true;
      await Promise.all(clients);
      expect(failures).toEqual([]);
      expect([...seen].sort()).toEqual(['elsewhere.test', 'localhost']);
      await until(() => logged('tls.renewed').length === 1);
      expect(logged('tls.renewed')[0]).toMatchObject({ names: ['elsewhere.test'] });
      vendor.release();
      for (const answer of answers) {
        const text = await answer.text();
        expect(text).toContain('first');
        expect(text).toContain('second');
        expect(text).toEndWith('data: [DONE]\n\n');
      }
      // The sockets are served on by the server that opened them.
      for (const socket of sockets) {
        const answer = new Promise<string>((done) => {
          socket.onmessage = ({ data }) => done(String(data));
        });
        socket.send('{"type":"nothing known"}');
        expect(await answer).toContain('"type":"error"');
      }
      expect(closed).toEqual([]);
      // A request by HTTP and a socket reach the new server as well.
      expect((await fetch(`${url}/healthz`, { ...unverified, keepalive: false })).status).toBe(200);
      const late = new WebSocket(
        `${url.replace('https', 'wss')}/v1/responses`,
        unverified as never,
      );
      await new Promise((done) => (late.onopen = done));
      for (const socket of [...sockets, late]) socket.close();
      expect(await gateway.stop()).toBe(0);
    },
    90_000,
  );

  test('a connection that waits between requests is told to end with its next answer', async () => {
    const paths = files('localhost');
    gateway = await startGateway(configOf(paths));
    const { url } = gateway;
    const { port } = new URL(url);
    const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false });
    let heads = '';
    socket.on('data', (data) => (heads += data.toString('latin1')));
    const ask = () => socket.write(`HEAD /healthz HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
    const answers = () => heads.match(/^HTTP\/1\.1 200/gm)?.length ?? 0;
    ask();
    await until(() => answers() === 1);
    expect(heads).not.toMatch(/^connection: close\r$/im);
    put('elsewhere', paths);
    await until(async () => (await served(url)) === 'elsewhere.test');
    ask();
    await until(() => answers() === 2);
    expect(heads).toMatch(/^connection: close\r$/im);
    socket.destroy();
  }, 60_000);

  test('a pair that cannot be used is logged, and the old one stays until a right one comes', async () => {
    const paths = files('localhost');
    gateway = await startGateway(configOf(paths));
    const { url } = gateway;
    copyFileSync(join(CERTIFICATES, 'elsewhere.pem'), paths.cert_file);
    gateway.signal('SIGHUP');
    await until(() => logged('tls.rejected').length > 0);
    expect(logged('tls.rejected')[0]?.why).toContain('does not belong to the certificate');
    expect(await served(url)).toBe('localhost');
    writeFileSync(paths.cert_file, 'no certificate');
    gateway.signal('SIGHUP');
    await until(() => logged('tls.rejected').length > 1);
    expect(logged('tls.rejected')[1]?.why).toContain('holds no certificate');
    rmSync(paths.key_file);
    gateway.signal('SIGHUP');
    await until(() => logged('tls.rejected').length > 2);
    expect(await served(url)).toBe('localhost');
    expect(logged('tls.renewed')).toEqual([]);
    put('elsewhere', paths);
    gateway.signal('SIGHUP');
    await until(async () => (await served(url)) === 'elsewhere.test');
    expect(gateway.stderr()).not.toContain('PRIVATE KEY');
  }, 60_000);

  test('a reload may name other files; the switch to TLS needs a restart', async () => {
    const paths = files('localhost');
    gateway = await startGateway(configOf(paths));
    const { url, configPath } = gateway;
    const other = {
      cert_file: join(CERTIFICATES, 'elsewhere.pem'),
      key_file: join(CERTIFICATES, 'elsewhere.key.pem'),
    };
    writeFileSync(configPath, JSON.stringify(configOf(other)));
    await until(async () => (await served(url)) === 'elsewhere.test');
    expect(logged('config.reloaded').at(-1)?.needs_restart).toEqual([]);
    writeFileSync(configPath, JSON.stringify({ ...configOf(other), listen: '127.0.0.1:0' }));
    await until(() => logged('config.reloaded').length > 1);
    expect(logged('config.reloaded').at(-1)?.needs_restart).toEqual(['listen']);
    expect(await served(url)).toBe('elsewhere.test');
  }, 60_000);

  test('serve, check and doctor name a pair that cannot be used, with its place in the file', async () => {
    const paths = files('localhost');
    copyFileSync(join(CERTIFICATES, 'elsewhere.key.pem'), paths.key_file);
    const config = join(folder, 'hopgate.yaml');
    writeFileSync(
      config,
      `listen:\n  tls: { cert_file: ${paths.cert_file}, key_file: ${paths.key_file} }\n`,
    );
    const why = `the key in ${paths.key_file} does not belong to the certificate in ${paths.cert_file}`;
    const check = await runBinary(['check', '--config', config]);
    expect([check.code, check.stderr]).toEqual([
      1,
      expect.stringContaining(`:2:8: listen.tls: ${why}`),
    ]);
    const doctor = await runBinary(['doctor', '--config', config]);
    expect([doctor.code, oneLine(doctor.stdout)]).toEqual([1, expect.stringContaining(why)]);
    const serve = await runBinary(['serve', '--config', config, '--port', '0']);
    expect([serve.code, serve.stderr]).toEqual([1, expect.stringContaining(`hopgate: ${why}`)]);
    put('localhost', paths);
    const right = await runBinary(['check', '--config', config]);
    expect([right.code, right.stdout]).toEqual([0, expect.stringContaining('with TLS')]);
    const healthy = await runBinary(['doctor', '--config', config]);
    expect(oneLine(healthy.stdout)).toContain('the certificate is for localhost, 127.0.0.1');
  }, 60_000);

  test.skipIf(process.platform === 'win32')(
    'a key that other users can read is named at the start and by doctor',
    async () => {
      const paths = files('localhost');
      chmodSync(paths.key_file, 0o644);
      gateway = await startGateway(configOf(paths));
      await until(() => logged('tls.key.exposed').length > 0);
      expect(logged('tls.key.exposed')[0]).toMatchObject({ path: paths.key_file, level: 'warn' });
      const doctor = await runBinary(['doctor', '--config', gateway.configPath]);
      expect(oneLine(doctor.stdout)).toContain(`can read or change ${paths.key_file}`);
    },
    60_000,
  );

  test.skipIf(process.platform !== 'linux')(
    'a restart behind a new pair loses no connection either',
    async () => {
      const paths = files('localhost');
      const supervised = { NOTIFY_SOCKET: '/nowhere/notify' };
      gateway = await startGateway(configOf(paths), { env: supervised });
      const { url } = gateway;
      put('elsewhere', paths);
      await until(async () => (await served(url)) === 'elsewhere.test');
      const failures: string[] = [];
      let ends = false;
      const clients = Array.from({ length: 8 }, async () => {
        while (!ends) await served(url).catch((thrown) => failures.push(String(thrown)));
      });
      gateway.signal('SIGUSR2');
      const line = await until(() => logged('server.succeeded')[0]);
      try {
        expect(await gateway.exited).toBe(0);
        expect(await served(url)).toBe('elsewhere.test');
      } finally {
        ends = true;
        await Promise.all(clients);
        process.kill(line.pid as number, 'SIGKILL');
      }
      expect(failures).toEqual([]);
    },
    60_000,
  );
});

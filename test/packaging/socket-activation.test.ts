/** Checks packaging/README.md's reason for no socket activation against the Bun in use. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { join } from 'node:path';
import { removeScratch, scratchFolder } from './release-once.ts';

afterAll(removeScratch);

// Started as systemd does: descriptor 3 is a listening socket of another process.
const PROBE = `import http from 'node:http';
import net from 'node:net';
const wanted = Number(process.argv[2]);
const said = {};
const own = Bun.serve({ fd: 3, port: 0, fetch: () => new Response('serve') });
said.serve = own.port === wanted ? 'takes it' : 'binds its own';
own.stop(true);
const ended = (server, name) =>
  new Promise((resolve) => {
    server.on('error', (error) => resolve(void (said[name] = error.code)));
    server.listen({ fd: 3 }, () => {
      said[name] = server.address()?.port === wanted ? 'takes it' : 'binds its own';
      server.close();
      resolve();
    });
  });
await ended(http.createServer(), 'http');
await ended(net.createServer(), 'net');
console.log(JSON.stringify(said));
process.exit(0);
`;

describe.skipIf(process.platform !== 'linux')('a listening socket as descriptor 3', () => {
  let message: Record<string, string>;
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  afterAll(() => listener.stop(true));

  beforeAll(async () => {
    const script = join(scratchFolder('activation'), 'probe.ts');
    await Bun.write(script, PROBE);
    const fd = (listener as unknown as { fd: number }).fd;
    const child = Bun.spawn([process.execPath, script, String(listener.port)], {
      env: { PATH: process.env.PATH!, LISTEN_FDS: '1' },
      stdio: ['ignore', 'pipe', 'inherit', fd],
    });
    message = JSON.parse(await new Response(child.stdout as ReadableStream).text());
  }, 30_000);

  test('descriptor 3 is a real listening socket', async () => {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(listener.port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      });
      socket.on('error', () => resolve(false));
    });
    expect(open).toBe(true);
  });

  // If this fails, Bun supports it: socket activation can be built, and the note in the README goes.
  test('no HTTP server of Bun accepts descriptor 3, only raw ones do', () => {
    expect(message).toEqual({ serve: 'binds its own', http: 'binds its own', net: 'takes it' });
  });
});

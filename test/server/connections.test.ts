/** Of many connections at once, those on which two requests stand: nothing is asked for them, and all others are answered. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { Connections } from '../../src/server/connections.ts';
import { healthPlugin } from '../../src/server/own-routes.ts';
import { nativeRoutes } from '../../src/server/plugin-routes.ts';
import { receive } from '../../src/server/receive.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { until } from '../support/until.ts';

let server: RunningServer;
/** Names of the requests that a vendor would have been asked for. */
const asked: string[] = [];

beforeAll(async () => {
  const connections = new Connections({
    idleMs: 0,
    bodyIdleMs: 0,
    unfinishedBytes: 0,
    runningBytes: 0,
  });
  const serve = receive(
    { access: () => () => WITHOUT_KEY, bodyBytes: () => 1e6, connections, onRefused: () => {} },
    async ({ body }) => {
      const name = Buffer.from(body).toString();
      asked.push(name);
      await Bun.sleep(20);
      return new Response(`<${name}>`);
    },
  );
  const post = { POST: (request: Request) => serve(request, openaiChat) };
  server = await startServer({
    app: {
      routes: { '/ask': post, ...nativeRoutes(healthPlugin({ unready: () => undefined })) },
      fetch: async () => new Response('elsewhere'),
      connections,
    },
    host: '127.0.0.1',
    port: 0,
    reusePort: false,
    joins: false,
    idleMs: 0,
    drainMs: 0,
  });
});
afterAll(() => server.stop());
beforeEach(() => {
  asked.length = 0;
});

const head = (length: number) =>
  `POST /ask HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`;
const request = (name: string) => head(name.length) + name;
const look = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

interface Open {
  readonly socket: Socket;
  said: string;
  closed: boolean;
}

async function open(): Promise<Open> {
  const socket = connect(server.port, '127.0.0.1');
  const one: Open = { socket, said: '', closed: false };
  socket.on('data', (data) => {
    one.said += data.toString('latin1');
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    one.closed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return one;
}

const opened = (count: number) => Promise.all(Array.from({ length: count }, open));

describe('two requests at once', () => {
  test.each([0, 1, 7, 19])('on connection %d of twenty are both left alone', async (odd) => {
    const all = await opened(20);
    // In one go: the server finds them all in the same turn of its event loop.
    all.forEach(({ socket }, i) => {
      socket.write(i === odd ? request('odd') + request('odder') : request(`n${i}`));
    });
    const even = all.filter((_, i) => i !== odd);
    await until(() => even.every(({ said }) => said.includes('>')));
    await until(() => all[odd]!.closed);
    expect(asked).toHaveLength(19);
    expect(asked.filter((name) => name.startsWith('odd'))).toEqual([]);
    for (const [i, { said }] of all.entries()) if (i !== odd) expect(said).toContain(`<n${i}>`);
    for (const { socket } of all) socket.destroy();
  });

  test.each(['/healthz', '/nowhere'])('are found among requests to %s', async (path) => {
    const all = await opened(21);
    const kinds = [
      (i: number) => request(`n${i}`),
      () => look(path),
      () => request('odd') + request('odder'),
    ];
    all.forEach(({ socket }, i) => void socket.write(kinds[i % 3]!(i)));
    await until(() => all.every(({ said, closed }) => said !== '' || closed));
    await until(() => all.filter(({ said }) => said.includes('>')).length === 7);
    expect(asked.toSorted()).toEqual([0, 12, 15, 18, 3, 6, 9].map((i) => `n${i}`));
    for (const { socket } of all) socket.destroy();
  });

  test('are found where the body comes later than the head', async () => {
    const all = await opened(12);
    for (const { socket } of all) socket.write(head(4));
    await Bun.sleep(30);
    all.forEach(({ socket }, i) => {
      const body = `b${i}`.padEnd(4, '_');
      socket.write(i % 2 === 0 ? body : body + request('more'));
    });
    const odd = all.filter((_, i) => i % 2 === 1);
    const even = all.filter((_, i) => i % 2 === 0);
    await until(() => odd.every(({ closed }) => closed));
    await until(() => even.every(({ said }) => said.includes('>')));
    expect(asked.toSorted()).toEqual(['b0__', 'b10_', 'b2__', 'b4__', 'b6__', 'b8__']);
    for (const { socket } of all) socket.destroy();
  });

  test('are found where the body of one comes while others begin', async () => {
    const [late, ...others] = await opened(6);
    late!.socket.write(head(4));
    await Bun.sleep(30);
    late!.socket.write(`late${request('more')}`);
    others.forEach(({ socket }, i) => void socket.write(request(`n${i}`)));
    await until(() => others.every(({ said }) => said.includes('>')));
    await until(() => late!.closed);
    expect(asked.toSorted()).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
    for (const { socket } of others) socket.destroy();
  });
});

test('one request after the other on one connection is answered each time', async () => {
  const [one] = await opened(1);
  for (const name of ['first', 'second', 'third']) {
    one!.socket.write(request(name));
    await until(() => one!.said.includes(`<${name}>`));
  }
  expect(asked).toEqual(['first', 'second', 'third']);
  one!.socket.destroy();
});

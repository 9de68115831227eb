/** Requests whose body never arrives whole: which status and error they get. */

import { afterAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import type { Gateway } from '../../src/gateway/types.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { Connections } from '../../src/server/connections.ts';
import { receive } from '../../src/server/receive.ts';
import { until } from '../support/until.ts';

const reached: Gateway = async () => new Response('reached');

/** Serves with `handle`, and keeps what was refused. */
function door(handle: Gateway = reached) {
  const refused: GatewayError[] = [];
  const took: number[] = [];
  const serve = receive(
    {
      access: () => () => ({ ...WITHOUT_KEY, id: 'ann' }),
      bodyBytes: () => 1000,
      connections: new Connections({
        idleMs: 0,
        bodyIdleMs: 0,
        unfinishedBytes: 0,
        runningBytes: 0,
      }),
      onRefused: (_request, _protocol, _id, error, _owner, ms) => {
        refused.push(error);
        took.push(ms);
      },
    },
    handle,
  );
  return { refused, took, serve: (request: Request) => serve(request, openaiChat) };
}

const servers: Bun.Server<undefined>[] = [];
afterAll(async () => {
  for (const server of servers) await server.stop(true);
});

/** The same behind a socket; `begun`: requests that have come so far. */
function listening(handle?: Gateway) {
  const { refused, took, serve } = door(handle);
  let begun = 0;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      begun++;
      return serve(request);
    },
  });
  servers.push(server);
  return { refused, took, server, begun: () => begun };
}

const head = (length: string) => `POST / HTTP/1.1\r\nhost: x\r\n${length}\r\n\r\n`;

/** Sends bytes by hand, and gives the socket once the request is being served. */
async function send({ server, begun }: ReturnType<typeof listening>, bytes: string) {
  const socket = connect(server.port!, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(bytes);
  await until(() => begun() > 0);
  return socket;
}

const gone = { status: 499, message: 'The client went away.' };

describe('a body that breaks off', () => {
  test.each([
    ['in the middle of its length', `${head('content-length: 50')}{"mod`],
    ['in the middle of a chunk', `${head('transfer-encoding: chunked')}32\r\n{"mod`],
  ])('%s is a client that left, no failure of this gateway', async (_where, bytes) => {
    const open = listening();
    const socket = await send(open, bytes);
    socket.destroy();
    expect(await until(() => open.refused[0])).toMatchObject(gone);
  });

  test('has the time for which it was waited for', async () => {
    const open = listening();
    const socket = await send(open, `${head('content-length: 50')}{"mod`);
    await Bun.sleep(60);
    socket.destroy();
    await until(() => open.refused[0]);
    expect(open.took[0]).toBeGreaterThan(50);
  });

  test('by chunks that are none is no failure of this gateway', async () => {
    const open = listening();
    await send(open, `${head('transfer-encoding: chunked')}3\r\nabc\r\nzz\r\n`);
    expect((await until(() => open.refused[0])).status).toBeLessThan(500);
  });

  test('because the server stops is no failure of this gateway', async () => {
    const open = listening();
    await send(open, `${head('content-length: 50')}{"mod`);
    await open.server.stop(true);
    expect(await until(() => open.refused[0])).toMatchObject(gone);
  });

  test('while the client is still there is a 400 in words', async () => {
    const { refused, serve } = door();
    const body = new ReadableStream({ pull: (to) => to.error(new Error('inner words')) });
    const response = await serve(new Request('http://x/', { method: 'POST', body }));
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(text).toContain('The request body could not be read to its end.');
    expect(text).not.toContain('inner');
    expect(refused).toMatchObject([{ kind: 'invalid_request' }]);
  });
});

describe('what fails behind the body', () => {
  const post = (signal?: AbortSignal) =>
    new Request('http://x/', { method: 'POST', body: '{}', signal });

  test('with the client still there stays a 500', async () => {
    const { serve } = door(() => Promise.reject(new Error('a fault')));
    expect((await serve(post())).status).toBe(500);
  });

  test('after the client left is its leaving', async () => {
    const leaving = new AbortController();
    const { serve } = door(async () => {
      leaving.abort();
      throw new Error('aborted');
    });
    expect((await serve(post(leaving.signal))).status).toBe(499);
  });

  test('in words keeps them, even when the client left', async () => {
    const { serve } = door(() => Promise.reject(new GatewayError('too_large', 'Too much.')));
    expect((await serve(post(AbortSignal.abort()))).status).toBe(413);
  });
});

/** The network client against servers that behave, misbehave, hang up and pretend to be others. */

import { afterEach, describe, expect, spyOn, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Socket, TCPSocketListener } from 'bun';
import { ByteList } from '../../../src/lib/bytes/byte-list.ts';
import { Abort } from '../../../src/lib/loop/abort.ts';
import { http1Transport } from '../../../src/upstream/http1/index.ts';
import { ResponseStream } from '../../../src/upstream/http1/response-stream.ts';
import type { UpstreamAnswer, UpstreamTls } from '../../../src/upstream/transport.ts';
import { until } from '../../support/until.ts';

/** One connection as the server sees it. */
interface Peer {
  readonly number: number;
  /** What has come over it and has not been answered yet. */
  inbox: string;
  closed: boolean;
}

interface Server {
  readonly url: string;
  readonly peers: readonly Peer[];
  readonly requests: readonly string[];
}

const open: TCPSocketListener<Peer>[] = [];
afterEach(() => {
  for (const listener of open.splice(0)) listener.stop(true);
});

const certificate = (name: string) =>
  readFileSync(join(import.meta.dir, '../../support/certificates', `${name}.pem`), 'utf8');

/** Calls `answer` for every request that has come whole (its body by content-length). */
function serve(
  answer: (socket: Socket<Peer>, request: string, number: number) => void,
  tls?: { readonly cert: string; readonly key: string; readonly ca?: string },
): Server {
  const peers: Peer[] = [];
  const requests: string[] = [];
  const listener = Bun.listen<Peer>({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls === undefined
      ? {}
      : {
          tls: {
            ...tls,
            ...(tls.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
          },
        }),
    socket: {
      open(socket) {
        socket.data = { number: peers.length + 1, inbox: '', closed: false };
        peers.push(socket.data);
      },
      data(socket, bytes) {
        const peer = socket.data;
        peer.inbox += bytes.toString('latin1');
        for (;;) {
          const end = peer.inbox.indexOf('\r\n\r\n');
          if (end < 0) return;
          const length = Number(/content-length: (\d+)/i.exec(peer.inbox)?.[1] ?? 0);
          if (peer.inbox.length < end + 4 + length) return;
          const request = peer.inbox.slice(0, end + 4 + length);
          peer.inbox = peer.inbox.slice(end + 4 + length);
          requests.push(request);
          answer(socket, request, requests.length);
        }
      },
      close(socket) {
        socket.data.closed = true;
      },
      error() {},
    },
  });
  open.push(listener);
  const scheme = tls === undefined ? 'http' : 'https';
  return { url: `${scheme}://127.0.0.1:${listener.port}/v1/chat`, peers, requests };
}

const client = (tls: UpstreamTls = {}) => http1Transport(async () => tls);
const ok = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const text = async ({ body }: UpstreamAnswer) => Buffer.from(await body.readAll()).toString();

const ask = (url: string, abort = new Abort(), body = 'hi') => ({
  url,
  method: 'POST' as const,
  headers: new Headers({ authorization: 'Bearer k' }),
  body: Buffer.from(body),
  abort,
});

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (thrown: { code?: string }) => thrown.code ?? String(thrown),
  );

describe('connections', () => {
  test('one after the other share one; what is sent is a request as RFC 9112 has it', async () => {
    const server = serve((socket, _request, number) => socket.write(ok(`answer ${number}`)));
    const send = client();
    for (let i = 1; i <= 20; i++)
      expect(await text(await send(ask(server.url)))).toBe(`answer ${i}`);
    expect(server.peers.length).toBe(1);
    const { host } = new URL(server.url);
    expect(server.requests[0]).toBe(
      `POST /v1/chat HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer k\r\ncontent-length: 2\r\n\r\nhi`,
    );
  });

  test('one that is minutes old ends with its answer: a name that moved is looked up again', async () => {
    const server = serve((socket, _request, number) => socket.write(ok(`answer ${number}`)));
    const send = client();
    let late = 0;
    const real = performance.now.bind(performance);
    const clock = spyOn(performance, 'now').mockImplementation(() => real() + late);
    try {
      for (const minutes of [0, 4, 6, 7, 12]) {
        late = minutes * 60_000;
        expect(await text(await send(ask(server.url)))).toStartWith('answer');
      }
    } finally {
      clock.mockRestore();
    }
    // 0, 4 and 6 on the first, whose answer at 6 is its last; 7 and 12 on the second.
    expect(server.peers.length).toBe(2);
    await until(() => server.peers.every(({ closed }) => closed));
  });

  test('many at once get their own answers, and their connections are kept', async () => {
    const server = serve((socket, request) => {
      const body = request.slice(request.indexOf('\r\n\r\n') + 4);
      setTimeout(() => socket.write(ok(`to ${body}`)), 5 + (body.length % 3));
    });
    const send = client();
    const round = () =>
      Promise.all(
        Array.from({ length: 150 }, async (_, i) => {
          expect(await text(await send(ask(server.url, undefined, `${i}`)))).toBe(`to ${i}`);
        }),
      );
    await round();
    await round();
    expect(server.peers.length).toBe(150);
  });

  test('a kept one holds no process back, also when it was used again', async () => {
    const server = serve((socket) => socket.write(ok('x')));
    const from = (path: string) => JSON.stringify(join(import.meta.dir, '../../../src', path));
    const script = `import { http1Transport } from ${from('upstream/http1/index.ts')};
      import { Abort } from ${from('lib/loop/abort.ts')};
      const send = http1Transport();
      const ask = async () => {
        const request = { url: ${JSON.stringify(server.url)}, method: 'POST', headers: new Headers() };
        const answer = await send({ ...request, body: new Uint8Array(1), abort: new Abort() });
        await answer.body.readAll();
      };
      await ask();
      await ask();
      await Bun.sleep(200);
      await ask();`;
    const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'pipe' });
    const late = Bun.sleep(20_000).then(() => child.kill());
    await Promise.race([child.exited, late]);
    expect(await new Response(child.stderr).text()).toBe('');
    expect(child.exitCode).toBe(0);
    expect(server.peers.length).toBe(1);
  }, 30_000);

  test('a kept one that the server has closed is not used', async () => {
    const server = serve((socket) => {
      socket.write(ok('x'));
      socket.end();
    });
    const send = client();
    await text(await send(ask(server.url)));
    await until(() => server.peers[0]!.closed);
    await Bun.sleep(20);
    expect(await text(await send(ask(server.url)))).toBe('x');
    expect(server.requests.length).toBe(2);
  });

  test('a kept one that closes instead of answering costs another connection, not the request', async () => {
    const server = serve((socket, _request, number) => {
      if (number === 2) socket.terminate();
      else socket.write(ok(`answer ${number}`));
    });
    const send = client();
    await text(await send(ask(server.url)));
    expect(await text(await send(ask(server.url)))).toBe('answer 3');
    expect(server.peers.length).toBe(2);
  });

  test('a new one that closes instead of answering is an error: nothing is sent twice', async () => {
    const server = serve((socket) => socket.end());
    expect(await codeOf(client()(ask(server.url)))).toBe('ECONNRESET');
    expect(server.requests.length).toBe(1);
  });

  test('half an answer is an error, even on a kept one: it may have cost something', async () => {
    const server = serve((socket, _request, number) => {
      if (number === 1) socket.write(ok('x'));
      else {
        socket.write('HTTP/1.1 200 OK\r\nconte');
        setTimeout(() => socket.terminate(), 10);
      }
    });
    const send = client();
    await text(await send(ask(server.url)));
    expect(await codeOf(send(ask(server.url)))).toBe('ECONNRESET');
    expect(server.requests.length).toBe(2);
  });

  test('connection: close, a body until the close, bytes too many: never used again', async () => {
    const answers = [
      'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\n1',
      'HTTP/1.1 200 OK\r\n\r\n2',
      `${ok('3')}HTTP/1.1 200 OK\r\n`,
      ok('4'),
    ];
    const server = serve((socket, _request, number) => {
      socket.write(answers[number - 1]!);
      if (number === 2) socket.end();
    });
    const send = client();
    for (const body of ['1', '2', '3', '4']) {
      expect(await text(await send(ask(server.url)))).toBe(body);
    }
    expect(server.peers.length).toBe(4);
  });

  test('an answer without a request closes the connection', async () => {
    const server = serve((socket, _request, number) => {
      socket.write(ok(`${number}`));
      if (number === 1) setTimeout(() => socket.write(ok('poison')), 10);
    });
    const send = client();
    expect(await text(await send(ask(server.url)))).toBe('1');
    await until(() => server.peers[0]!.closed);
    expect(await text(await send(ask(server.url)))).toBe('2');
  });

  test('an answer that came before the request of the same turn was written is none of its', async () => {
    const sockets: Socket<Peer>[] = [];
    const server = serve((socket, _request, number) => {
      sockets.push(socket);
      socket.write(ok(`answer ${number}`));
    });
    const send = client();
    await text(await send(ask(server.url)));
    const [kept] = sockets;
    // Both become ready in the same turn of the event loop.
    const asked = new Promise<UpstreamAnswer>((resolve, reject) => {
      const starter = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data() {},
          open(socket) {
            setTimeout(() => {
              socket.write('go');
              kept?.write(ok('stolen'));
              Bun.sleepSync(20);
            }, 10);
          },
        },
      });
      open.push(starter as unknown as TCPSocketListener<Peer>);
      void Bun.connect({
        hostname: '127.0.0.1',
        port: starter.port,
        socket: { data: () => void send(ask(server.url)).then(resolve, reject) },
      });
    });
    expect(await text(await asked)).toBe('answer 2');
    expect(server.peers.length).toBe(2);
  });

  test('an answer before the whole request was sent is an answer; the rest is not sent on', async () => {
    const listener = Bun.listen<undefined>({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.pause();
          socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nlarge');
        },
      },
    });
    const answer = await client()({
      ...ask(`http://127.0.0.1:${listener.port}/`),
      body: Buffer.alloc(64 * 1024 * 1024),
    });
    expect([answer.status, await text(answer)]).toEqual([413, 'large']);
    listener.stop(true);
  });

  test('a large body arrives whole', async () => {
    const body = Array.from({ length: 400_000 }, (_, i) => `${i % 10}`)
      .join('')
      .repeat(8);
    const server = serve((socket, request) =>
      socket.write(ok(Bun.hash(request.slice(request.indexOf('\r\n\r\n') + 4)).toString())),
    );
    expect(await text(await client()(ask(server.url, undefined, body)))).toBe(
      Bun.hash(body).toString(),
    );
  });

  test('a body of pieces arrives in order and is not changed, over connections that are slow and used at once', async () => {
    const sizes = [1, 70_000, 3, 64 * 1024, 65_000, 500, 1_500_000, 2, 130_000];
    const bodies = [0, 1, 2, 3].map((number) =>
      [...sizes, ...Array.from({ length: 300 }, (_, i) => 1 + ((i * 37) % 9000))].map((size, i) =>
        Buffer.alloc(size, `${number}:${i}:${size} `),
      ),
    );
    const sums = bodies.map((pieces) => Bun.hash(Buffer.concat(pieces)));
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const came: Uint8Array[] = [];
        for await (const chunk of request.body ?? []) {
          came.push(chunk);
          if (came.length % 3 === 0) await Bun.sleep(1);
        }
        return new Response(Bun.hash(Buffer.concat(came)).toString());
      },
    });
    const send = client();
    for (let round = 0; round < 2; round++) {
      const answers = bodies.map(async (pieces) => {
        const asked = { ...ask(`http://127.0.0.1:${server.port}/`), body: new ByteList(pieces) };
        return text(await send(asked));
      });
      expect(await Promise.all(answers)).toEqual(sums.map(String));
    }
    expect(bodies.map((pieces) => Bun.hash(Buffer.concat(pieces)))).toEqual(sums);
    await server.stop(true);
  });

  test('a small body of pieces is one request like any other', async () => {
    const server = serve((socket) => socket.write(ok('')));
    const body = new ByteList(['{"a":', '1', '}'].map((part) => Buffer.from(part)));
    await text(await client()({ ...ask(server.url), body }));
    expect(server.requests[0]).toEndWith('content-length: 7\r\n\r\n{"a":1}');
  });

  test('a host header from the configuration stands in for that of the address', async () => {
    const server = serve((socket) => socket.write(ok('')));
    const headers = new Headers({ host: 'other.test', 'content-length': '999', connection: 'x' });
    await client()({ ...ask(server.url), headers });
    expect(server.requests[0]).toBe(
      'POST /v1/chat HTTP/1.1\r\nhost: other.test\r\ncontent-length: 2\r\n\r\nhi',
    );
  });

  test('no server on the port: an error that names the reason', async () => {
    expect(await codeOf(client()(ask('http://127.0.0.1:1/')))).toBe('ECONNREFUSED');
    expect(await codeOf(client()(ask('http://nowhere.invalid/')))).toBe('ENOTFOUND');
  });
});

const STREAM = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n`;

describe('bodies', () => {
  /** All of a body, with what ended it. */
  async function drained({ body }: UpstreamAnswer): Promise<{ got: string; error?: string }> {
    let got = '';
    try {
      for (;;) {
        const more = await body.read();
        if (more === undefined) return { got };
        for (const piece of more) got += Buffer.from(piece).toString();
      }
    } catch (thrown) {
      return { got, error: (thrown as { code?: string }).code ?? String(thrown) };
    }
  }

  test('chunks come as they come, one by one and by flow', async () => {
    const server = serve(async (socket) => {
      socket.write(STREAM + chunk('one'));
      for (const word of ['two', 'three']) {
        await Bun.sleep(15);
        socket.write(chunk(word));
      }
      await Bun.sleep(15);
      socket.write('0\r\n\r\n');
    });
    const send = client();
    expect(await drained(await send(ask(server.url)))).toEqual({ got: 'onetwothree' });
    const { body } = await send(ask(server.url));
    const seen: string[] = [];
    await body.pipe({
      write: (piece) => {
        seen.push(Buffer.from(piece).toString());
        return undefined;
      },
    });
    expect(seen).toEqual(['one', 'two', 'three']);
    expect(server.peers.length).toBe(1);
  });

  test('a cut gives what came before it, and then the error: never an end', async () => {
    const cuts = [
      'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome',
      `${STREAM}4\r\nsome`,
      `${STREAM}${chunk('some')}`,
      `${STREAM}${chunk('some')}0\r\n`,
    ];
    const server = serve((socket, _request, number) => {
      socket.write(cuts[(number - 1) % cuts.length]!);
      setTimeout(() => socket.end(), 10);
    });
    const send = client();
    for (const _cut of cuts) {
      expect(await drained(await send(ask(server.url)))).toEqual({
        got: 'some',
        error: 'ECONNRESET',
      });
    }
    for (const _cut of cuts) {
      const { body } = await send(ask(server.url));
      let got = '';
      const code = await codeOf(
        body.pipe({
          write: (piece) => {
            got += Buffer.from(piece).toString();
            return undefined;
          },
        }),
      );
      expect([got, code]).toEqual(['some', 'ECONNRESET']);
    }
  });

  test('what is no HTTP in the middle of a body is an error, and the connection is closed', async () => {
    const server = serve((socket) => {
      socket.write(`${STREAM}${chunk('some')}what is this?\r\n`);
    });
    expect(await drained(await client()(ask(server.url)))).toEqual({
      got: 'some',
      error: 'malformed HTTP',
    });
    await until(() => server.peers[0]!.closed);
  });

  test('a reader that does not read makes the server wait, and loses nothing', async () => {
    const piece = Buffer.alloc(64 * 1024, 'a');
    const total = 512;
    let sent = 0;
    const listener = Bun.listen<{ left: Uint8Array }>({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${piece.length * total}\r\n\r\n`);
          socket.data = { left: piece };
          push(socket);
        },
        drain: push,
      },
    });
    function push(socket: Socket<{ left: Uint8Array }>): void {
      while (sent < total) {
        const written = socket.write(socket.data.left);
        if (written < socket.data.left.length) {
          socket.data.left = socket.data.left.subarray(Math.max(0, written));
          return;
        }
        socket.data.left = piece;
        sent++;
      }
    }
    const { body } = await client()(ask(`http://127.0.0.1:${listener.port}/`));
    await Bun.sleep(300);
    // What the kernel's buffers on both sides take, and a little here.
    expect(sent).toBeLessThan(total / 2);
    let got = 0;
    let turn: Promise<void> | undefined;
    await body.pipe({
      write: (bytes) => {
        got += bytes.length;
        if (turn !== undefined || got > piece.length * 20) return undefined;
        turn = Bun.sleep(30).then(() => {
          turn = undefined;
        });
        return turn;
      },
    });
    expect([got, sent]).toEqual([piece.length * total, total]);
    listener.stop(true);
  });

  test('a taker that is slow gets one chunk at a time, in order, and the end behind the last', async () => {
    const server = serve((socket) => {
      socket.write(STREAM);
      for (let i = 0; i < 5; i++) setTimeout(() => socket.write(chunk(`${i}`)), i * 2);
      setTimeout(() => socket.write('0\r\n\r\n'), 15);
    });
    const { body } = await client()(ask(server.url));
    let busy = false;
    let got = '';
    await body.pipe({
      write: async (bytes) => {
        expect(busy).toBe(false);
        busy = true;
        await Bun.sleep(10);
        got += Buffer.from(bytes).toString();
        busy = false;
      },
    });
    expect(got).toBe('01234');
  });
});

describe('who leaves', () => {
  const reason = new Error('the client has gone');

  test('before anything: nothing is sent', async () => {
    const server = serve((socket) => socket.write(ok('x')));
    const abort = new Abort();
    abort.abort(reason);
    expect(client()(ask(server.url, abort))).rejects.toBe(reason);
    await Bun.sleep(20);
    expect(server.peers.length).toBe(0);
  });

  for (const [name, start] of [
    ['before the headers', ''],
    ['in the middle of the headers', 'HTTP/1.1 200 OK\r\n'],
  ] as const) {
    test(`${name}: the server sees the connection close at once`, async () => {
      const server = serve((socket) => socket.write(start));
      const abort = new Abort();
      const asked = client()(ask(server.url, abort));
      await until(() => server.requests.length === 1);
      abort.abort(reason);
      expect(asked).rejects.toBe(reason);
      await until(() => server.peers[0]!.closed);
    });
  }

  for (const how of ['the signal', 'cancel'] as const) {
    test(`in the middle of the body, by ${how}`, async () => {
      const server = serve((socket) => socket.write(STREAM + chunk('some')));
      const abort = new Abort();
      const send = client();
      const { body } = await send(ask(server.url, abort));
      expect(await body.read()).toHaveLength(1);
      const more = body.read() as Promise<unknown>;
      more.catch(() => {});
      if (how === 'cancel') body.cancel();
      else abort.abort(reason);
      await until(() => server.peers[0]!.closed);
      expect(more).rejects.toThrow();
      // The next request is none of its business.
      expect((await send(ask(server.url))).status).toBe(200);
    });
  }

  test('as the last bytes come: the connection is not kept for others', async () => {
    const server = serve((socket, _request, number) => {
      if (number > 1) return void socket.write(ok('2'));
      socket.write(STREAM);
      // The end in the very bytes whose taker gives up.
      setTimeout(() => socket.write(`${chunk('some')}0\r\n\r\n`), 10);
    });
    const send = client();
    const abort = new Abort();
    const { body } = await send(ask(server.url, abort));
    const flowing = body.pipe({
      write: () => {
        abort.abort(reason);
        return undefined;
      },
    });
    await flowing;
    expect((await send(ask(server.url))).status).toBe(200);
    expect(server.peers.length).toBe(2);
  });

  test('after the whole answer: the connection stays for others', async () => {
    const server = serve((socket, _request, number) => socket.write(ok(`${number}`)));
    const send = client();
    const abort = new Abort();
    const answer = await send(ask(server.url, abort));
    abort.abort(reason);
    answer.body.cancel();
    expect(await text(answer)).toBe('1');
    expect(await text(await send(ask(server.url)))).toBe('2');
    expect(server.peers.length).toBe(1);
  });
});

describe('TLS', () => {
  const ca = certificate('authority');
  const pair = (name: string) => ({ cert: certificate(name), key: certificate(`${name}.key`) });
  const hello = (socket: Socket<Peer>) => socket.write(ok('hello'));
  const named = (url: string) => url.replace('127.0.0.1', 'localhost');

  test('a peer that proves its name, by name and by address', async () => {
    const server = serve(hello, pair('localhost'));
    const send = client({ ca });
    expect(await text(await send(ask(named(server.url))))).toBe('hello');
    expect(await text(await send(ask(server.url)))).toBe('hello');
    // A connection that was verified for one name is not used for another.
    expect(server.peers.length).toBe(2);
  });

  for (const [name, presented, tls, code] of [
    ["another host's certificate", 'elsewhere', { ca }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['a certificate of an unknown authority', 'localhost', {}, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ] as const) {
    for (const address of ['by name', 'by address'] as const) {
      test(`${name} (${address}): refused before a byte of the request is sent`, async () => {
        const server = serve(hello, pair(presented));
        const url = address === 'by name' ? named(server.url) : server.url;
        expect(await codeOf(client(tls)(ask(url)))).toBe(code);
        await Bun.sleep(50);
        expect(server.requests).toEqual([]);
      });
    }
  }

  test('large requests and answers arrive whole, whichever side is slow', async () => {
    const body = Buffer.alloc(6 * 1024 * 1024, 'body ');
    const answer = Buffer.alloc(6 * 1024 * 1024, 'answer ');
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      tls: pair('localhost'),
      async fetch(request) {
        await Bun.sleep(50);
        const same = body.equals(Buffer.from(await request.arrayBuffer()));
        return new Response(same ? answer : 'not what was sent');
      },
    });
    const send = client({ ca });
    for (let i = 0; i < 3; i++) {
      const { body: got } = await send({ ...ask(`https://localhost:${server.port}/`), body });
      const chunks: Uint8Array[] = [];
      await got.pipe({
        write: (chunk) => {
          chunks.push(chunk);
          return chunks.length % 4 === 0 ? Bun.sleep(2) : undefined;
        },
      });
      expect(Buffer.concat(chunks).equals(answer)).toBe(true);
    }
    await server.stop(true);
  });

  test('verification switched off takes any certificate', async () => {
    const server = serve(hello, pair('elsewhere'));
    const send = client({ rejectUnauthorized: false });
    expect(await text(await send(ask(named(server.url))))).toBe('hello');
  });

  test('a server that wants a certificate of the client gets the configured one', async () => {
    const server = serve(hello, { ...pair('localhost'), ca });
    const own = { ca, ...pair('client') };
    expect(await text(await client(own)(ask(named(server.url))))).toBe('hello');
    expect(await codeOf(client({ ca })(ask(named(server.url))))).not.toBe('no error');
  });

  test('who leaves while certificates are read sends nothing', async () => {
    const server = serve((socket) => socket.write(ok('late')), {
      cert: certificate('localhost'),
      key: certificate('localhost.key'),
    });
    const abort = new Abort();
    const reason = new Error('gone');
    const send = http1Transport(async () => {
      abort.abort(reason);
      return { ca: certificate('authority') };
    });
    await expect(send(ask(server.url, abort))).rejects.toBe(reason);
    await Bun.sleep(50);
    expect(server.requests.length).toBe(0);
  });

  const BAD = 'HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n';
  for (const [name, answers] of Object.entries({
    'answers what it cannot read': () => true,
    'answers what it cannot read, and hangs up': () => true,
    'waits for the rest of a request': (came: string) => came.includes('\r\n\r\n'),
  })) {
    test(`a server of plain HTTP that ${name} is known without a limit of time`, async () => {
      let came = '';
      const listener = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data(socket, bytes) {
            came += bytes.toString('latin1');
            if (!answers(came)) return;
            socket.write(BAD);
            if (name.endsWith('hangs up')) socket.end();
          },
        },
      });
      open.push(listener as never);
      const url = `https://127.0.0.1:${listener.port}/`;
      await expect(client({ ca })(ask(url))).rejects.toMatchObject({ speaks: 'http' });
      expect(came).not.toContain('Bearer');
    });
  }

  for (const [name, tls] of Object.entries({
    'of the runtime': true,
    'that answers with an alert': false,
  })) {
    test(`a server of TLS ${name} that gets plain HTTP is told from one that hangs up`, async () => {
      const secure = serve(hello, pair('localhost'));
      let { url } = secure;
      if (!tls) {
        // As OpenSSL does: one alert, in the clear (RFC 8446 §6).
        const target = new URL(url);
        const front = Bun.listen<{ to?: Socket }>({
          hostname: '127.0.0.1',
          port: 0,
          socket: {
            open(socket) {
              socket.data = {};
            },
            async data(socket, bytes) {
              if (bytes[0] !== 0x16 && socket.data.to === undefined) {
                socket.write(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46]));
                socket.end();
                return;
              }
              socket.data.to ??= await Bun.connect({
                hostname: '127.0.0.1',
                port: Number(target.port),
                socket: { data: (_, back) => void socket.write(back) },
              });
              socket.data.to.write(bytes);
            },
          },
        });
        open.push(front as never);
        url = `https://127.0.0.1:${front.port}/`;
      }
      const send = client();
      for (let i = 0; i < 2; i++) {
        const answer = send(ask(url.replace('https', 'http')));
        await expect(answer).rejects.toMatchObject({ speaks: 'https' });
      }
      expect(secure.requests).toEqual([]);
    });
  }

  test('a server that speaks no TLS is an error, not a hang', async () => {
    const server = serve((socket) => socket.write(ok('plain')));
    const listener = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n') },
    });
    expect(await codeOf(client({ ca })(ask(`https://127.0.0.1:${listener.port}/`)))).not.toBe(
      'no error',
    );
    expect(server.requests).toEqual([]);
    listener.stop(true);
  });
});

test('a connection that waited for its reader is open for the next answer once this one is whole, read or not', async () => {
  const calls: string[] = [];
  const line = {
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    drop: () => calls.push('drop'),
  };
  const head = Promise.withResolvers<UpstreamAnswer>();
  const answer = new ResponseStream(line, head);
  const half = Buffer.alloc(300 * 1024);
  answer.receive(Buffer.from(`HTTP/1.1 400 x\r\ncontent-length: ${2 * half.length}\r\n\r\n`));
  answer.receive(half);
  // On its way already when the connection was told to wait.
  answer.receive(half);
  (await head.promise).body.cancel();
  expect(calls).toEqual(['pause', 'resume']);
});

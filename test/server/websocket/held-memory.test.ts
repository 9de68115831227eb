/** What a WebSocket client can make the gateway hold: unfinished messages, and errors that it does not read. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import {
  type IdleSocket,
  IdleSockets,
  messageBytes,
} from '../../../src/server/websocket/idle-sockets.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { ResponsesSocket } from '../../support/responses-socket.ts';
import { until } from '../../support/until.ts';

const MB = 1024 * 1024;
const KEYS = { attacker: 'a'.repeat(32), other: 'o'.repeat(32) };

let gateway: InProcess;
beforeAll(async () => {
  gateway = await startInProcess({
    providers: {
      demo: { protocol: 'openai-chat', base_url: 'http://127.0.0.1:1/v1', keys: ['k'] },
    },
    auth: { keys: Object.entries(KEYS).map(([name, key]) => ({ name, key })) },
    // A sixteenth is a megabyte; the process of a test takes more than 32 MB in any case.
    limits: { unfinished_bytes: 16 * MB },
    samples: { mode: 'off' },
  });
});
afterAll(() => gateway.stop());

/** A connection after its handshake, as bytes. */
async function opened(key: string): Promise<{ socket: Socket; ended: () => boolean }> {
  const { hostname, port, host } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  let ended = false;
  socket.on('error', () => {});
  socket.on('close', () => {
    ended = true;
  });
  const head = [
    'GET /v1/responses HTTP/1.1',
    `host: ${host}`,
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    `authorization: Bearer ${key}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  await new Promise((done) => socket.once('data', done));
  return { socket, ended: () => ended };
}

/** A frame of a client, masked with zeros. @param first byte: the final bit and the kind */
function frame(first: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const head =
    length < 126
      ? Buffer.from([first, 0x80 | length])
      : Buffer.from([first, 0x80 | 127, 0, 0, 0, 0, ...uint32(length)]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

const uint32 = (value: number) => [24, 16, 8, 0].map((shift) => (value >> shift) & 0xff);

const TEXT = 0x01;
const FINAL = 0x80;

describe('messages that never end', () => {
  test('of a key with many connections: those that have been silent for the longest time are closed', async () => {
    const other = await ResponsesSocket.open(gateway.url, {
      authorization: `Bearer ${KEYS.other}`,
    });
    const attackers: Awaited<ReturnType<typeof opened>>[] = [];
    for (let i = 0; i < 30; i++) {
      const one = await opened(KEYS.attacker);
      one.socket.write(frame(TEXT, Buffer.alloc(MB / 2, 120)));
      one.socket.resume();
      attackers.push(one);
    }
    await until(() => attackers.filter(({ ended }) => ended()).length >= 24);
    // Two owners have six each.
    expect(attackers.map(({ ended }) => ended())).toEqual([
      ...Array(24).fill(true),
      ...Array(6).fill(false),
    ]);
    expect(other.end).toBeUndefined();
    for (const { socket } of attackers) socket.destroy();
    other.close();
  });

  test('one that is larger than a sixteenth of the bytes for unfinished bodies ends its connection', async () => {
    const { socket, ended } = await opened(KEYS.attacker);
    for (let i = 0; i < 4 && !ended(); i++) {
      socket.write(frame(i === 0 ? TEXT : 0, Buffer.alloc(MB, 120)));
      await Bun.sleep(5);
    }
    await until(ended);
  });
});

test('errors that a client does not read end its connection before they are many', async () => {
  const { socket, ended } = await opened(KEYS.attacker);
  socket.pause();
  const wrong = Buffer.concat(Array(1000).fill(frame(FINAL | TEXT, Buffer.from('x'))));
  let sent = 0;
  // Kernels hold some megabytes of them.
  while (!ended() && sent < 1000) {
    socket.write(wrong);
    while (socket.writableNeedDrain && !ended()) await Bun.sleep(1);
    sent++;
    await Bun.sleep(0);
  }
  expect(sent).toBeLessThan(1000);
});

describe('idle connections', () => {
  const look = async (given: readonly (readonly [string, boolean])[], memory: number) => {
    const closed: number[] = [];
    const sockets = given.map(
      ([owner, idle], at): IdleSocket => ({
        owner,
        idle,
        heardAt: at,
        yield: () => closed.push(at),
      }),
    );
    let looks = 0;
    const open = new Set(sockets);
    const idle = new IdleSockets(open, {
      unfinishedBytes: () => 100,
      memory: () => {
        looks++;
        return memory;
      },
      everyMs: 1,
    });
    idle.watch();
    await until(() => looks > 0);
    open.clear();
    return [...new Set(closed)].sort((a, b) => a - b);
  };
  const of = (owner: string, count: number, idle = true) =>
    Array.from({ length: count }, () => [owner, idle] as const);

  test('are left alone while the process is small', async () => {
    expect(await look(of('a', 100), 200)).toEqual([]);
  });

  test('of one owner: twelve stay, those that were heard last', async () => {
    expect(await look(of('a', 15), 201)).toEqual([0, 1, 2]);
  });

  test('do not count where something runs', async () => {
    expect(await look([...of('a', 30, false), ...of('a', 12)], 201)).toEqual([]);
  });

  test('of an owner that has one stay, however many owners there are', async () => {
    const many = Array.from({ length: 40 }, (_, at) => [`o${at}`, true] as const);
    expect(await look([...of('a', 3), ...many], 201)).toEqual([0, 1]);
  });
});

test.each([
  [50, 1600, 50],
  [200, 1600, 100],
  [50, 0, 50],
])(
  'a message may have the bytes of a body (%i), or a sixteenth of %i: %i',
  (body, unfinished, most) => {
    expect(messageBytes(body, unfinished)).toBe(most);
  },
);

/** Checks of WebSockets: paced streams beside the same over SSE, and what idle sockets cost. */

import type { Socket } from 'bun';
import { sleep } from './clock.ts';
import { cpuBetween, cpuSample, residentMegabytes } from './process-usage.ts';
import { CLIENT_HEADERS, type ProductOptions, startProduct } from './product.ts';
import { requestBody } from './scenarios.ts';
import { median } from './statistics.ts';
import type { Bench } from './target.ts';

const MODEL = 'paced-100x20ms';
const EVENTS = 100;
const LAST = '"type":"response.completed"';
const IDLE_MS = 10_000;
const WIRES = ['sse', 'websocket'] as const;
type Wire = (typeof WIRES)[number];

const fields = Object.entries(CLIENT_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
const HANDSHAKE = `GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\n${fields.join('')}connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

/** The same question on both wires. */
const QUESTION: Readonly<Record<Wire, Buffer>> = { sse: posted(), websocket: framed() };

function posted(): Buffer {
  const body = requestBody('responses', MODEL, true);
  return Buffer.from(
    `POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\n${fields.join('')}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** One masked text frame; the mask is zero. */
function framed(): Buffer {
  const question = JSON.parse(requestBody('responses', MODEL, false)) as object;
  const text = Buffer.from(JSON.stringify({ type: 'response.create', ...question }));
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x81_fe, 0);
  head.writeUInt16BE(text.length, 2);
  return Buffer.concat([head, text]);
}

interface Client {
  readonly socket: Socket;
  /** Resolves when this has come; looks at what came since the last call. */
  seen(mark: string): Promise<void>;
}

async function connect(port: number): Promise<Client> {
  let tail = '';
  let waiting: { mark: string; resolve: () => void; reject: (error: Error) => void } | undefined;
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_socket, chunk) {
        tail = tail.slice(-64) + chunk.toString('latin1');
        if (waiting === undefined || !tail.includes(waiting.mark)) return;
        waiting.resolve();
        waiting = undefined;
      },
      close() {
        waiting?.reject(new Error('the gateway closed a connection'));
      },
    },
  });
  const seen = (mark: string) => {
    tail = '';
    return new Promise<void>((resolve, reject) => {
      waiting = { mark, resolve, reject };
    });
  };
  return { socket, seen };
}

async function clients(wire: Wire, port: number, count: number): Promise<Client[]> {
  const all: Client[] = [];
  while (all.length < count) {
    const some = await Promise.all(Array.from({ length: 50 }, () => connect(port)));
    for (const one of some) {
      if (wire === 'websocket') {
        const upgraded = one.seen(' 101 ');
        one.socket.write(HANDSHAKE);
        await upgraded;
      }
      all.push(one);
    }
  }
  for (const { socket } of all.splice(count)) socket.terminate();
  return all;
}

/** Microseconds of the gateway's CPU for each event of one round. */
async function round(wire: Wire, pid: number, all: readonly Client[]): Promise<number> {
  const before = cpuSample(pid);
  await Promise.all(
    all.map(async ({ socket, seen }, at) => {
      await sleep((200 * at) / all.length);
      const over = seen(LAST);
      socket.write(QUESTION[wire]);
      await over;
    }),
  );
  return cpuBetween(before, cpuSample(pid)) / 1000 / (all.length * EVENTS);
}

/** Microseconds of CPU an event, on both wires. */
export interface PacedSockets {
  readonly sse: number;
  readonly websocket: number;
  readonly ratio: number;
}

/** The same paced streams on both wires in turn, onto a vendor of this protocol. */
export async function pacedSockets(
  bench: Bench,
  upstream: ProductOptions['upstream'],
  options: { readonly streams: number; readonly rounds: number },
): Promise<PacedSockets> {
  const { streams, rounds } = options;
  const { child, port } = await startProduct(bench, { upstream, name: `sockets-${upstream}` });
  try {
    const open: Record<Wire, Client[]> = { sse: [], websocket: [] };
    for (const wire of WIRES) open[wire] = await clients(wire, port, streams);
    const costs: Record<Wire, number[]> = { sse: [], websocket: [] };
    // The first round of each is not counted.
    for (let at = 0; at <= rounds; at++) {
      for (const wire of WIRES) {
        const cost = await round(wire, child.pid, open[wire]);
        if (at > 0) costs[wire].push(cost);
      }
    }
    const [sse, websocket] = [median(costs.sse), median(costs.websocket)];
    return { sse, websocket, ratio: websocket / sse };
  } finally {
    await child.stop();
  }
}

/** What each idle socket costs. */
export interface IdleSockets {
  readonly sockets: number;
  readonly kilobytes: number;
  /** Microseconds of CPU in each second. */
  readonly cpu: number;
}

export async function idleSockets(bench: Bench, sockets: number): Promise<IdleSockets> {
  const { child, port } = await startProduct(bench, { upstream: 'openai-chat', name: 'idle' });
  try {
    // Whatever the first few bring along is not theirs.
    await clients('websocket', port, 50);
    await sleep(1000);
    const memory = residentMegabytes(child.pid);
    const at = cpuSample(child.pid);
    await sleep(IDLE_MS);
    const without = cpuBetween(at, cpuSample(child.pid));
    await clients('websocket', port, sockets);
    await sleep(2000);
    const kilobytes = ((residentMegabytes(child.pid) - memory) * 1024) / sockets;
    const sample = cpuSample(child.pid);
    await sleep(IDLE_MS);
    const spent = cpuBetween(sample, cpuSample(child.pid)) - without;
    return { sockets, kilobytes, cpu: Math.max(0, spent) / 1000 / sockets / (IDLE_MS / 1000) };
  } finally {
    await child.stop();
  }
}

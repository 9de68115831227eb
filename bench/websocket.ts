/** `bun bench/websocket.ts`: paced streams over WebSocket beside the same over SSE, and what idle sockets cost. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Socket } from 'bun';
import { announcedPort, startChild, stopChildren } from './children.ts';
import { sleep } from './clock.ts';
import { cpuBetween, cpuSample, residentMegabytes } from './process-usage.ts';
import { CLIENT_HEADERS, type ProductOptions, startProduct } from './product.ts';
import { requestBody } from './scenarios.ts';
import { median } from './statistics.ts';

const HELP = `bun bench/websocket.ts [options]

  --streams N   paced streams at once (500)
  --rounds N    rounds of each wire, in turn (5)
  --idle N      idle sockets (2000)
  --json        the figures as JSON
`;

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '5' },
    idle: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

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

interface Ratio {
  readonly upstream: string;
  readonly sse: number;
  readonly websocket: number;
  readonly ratio: number;
}

const dir = mkdtempSync(join(tmpdir(), 'hopgate-bench-websocket-'));
const count = Number(values.streams);

async function ratio(upstream: ProductOptions['upstream'], mockPort: number): Promise<Ratio> {
  const bench = { mockPort, mockPid: 0, dir, say: () => {} };
  const { child, port } = await startProduct(bench, { upstream, name: `paced-${upstream}` });
  const open: Record<Wire, Client[]> = { sse: [], websocket: [] };
  for (const wire of WIRES) open[wire] = await clients(wire, port, count);
  const costs: Record<Wire, number[]> = { sse: [], websocket: [] };
  // The first round of each is not counted.
  for (let at = 0; at <= Number(values.rounds); at++) {
    for (const wire of WIRES) {
      const cost = await round(wire, child.pid, open[wire]);
      if (at > 0) costs[wire].push(cost);
    }
  }
  await child.stop();
  const [sse, websocket] = [median(costs.sse), median(costs.websocket)];
  return { upstream, sse, websocket, ratio: websocket / sse };
}

async function idle(mockPort: number) {
  const bench = { mockPort, mockPid: 0, dir, say: () => {} };
  const { child, port } = await startProduct(bench, { upstream: 'openai-chat', name: 'idle' });
  const sockets = Number(values.idle);
  // Whatever the first few bring along is not theirs.
  await clients('websocket', port, 50);
  await sleep(1000);
  const before = residentMegabytes(child.pid);
  await clients('websocket', port, sockets);
  await sleep(2000);
  const after = residentMegabytes(child.pid);
  const sample = cpuSample(child.pid);
  await sleep(IDLE_MS);
  const cpu = cpuBetween(sample, cpuSample(child.pid));
  await child.stop();
  return {
    sockets,
    kilobytesEach: ((after - before) * 1024) / sockets,
    cpuMicrosEachSecond: cpu / 1000 / sockets / (IDLE_MS / 1000),
  };
}

if (values.help) {
  console.log(HELP);
  process.exit(0);
}
try {
  const mock = startChild(['bun', new URL('mock-upstream.ts', import.meta.url).pathname], {
    logFile: join(dir, 'mock.log'),
    stdout: 'pipe',
  });
  const mockPort = await announcedPort(mock);
  const ratios = [await ratio('openai-responses', mockPort), await ratio('openai-chat', mockPort)];
  const idling = await idle(mockPort);
  if (values.json) console.log(JSON.stringify({ streams: count, ratios, idle: idling }));
  else {
    console.log('| paced streams, CPU an event | SSE | WebSocket | ratio |\n|---|--:|--:|--:|');
    for (const one of ratios) {
      const name = one.upstream === 'openai-responses' ? 'same protocol' : 'onto Chat';
      const costs = [one.sse, one.websocket].map((cost) => `${cost.toFixed(1)} µs`);
      console.log(`| ${count} streams, ${name} | ${costs.join(' | ')} | ${one.ratio.toFixed(2)} |`);
    }
    const { sockets, kilobytesEach, cpuMicrosEachSecond } = idling;
    console.log(
      `\n${sockets} idle sockets: ${kilobytesEach.toFixed(1)} KB and ${cpuMicrosEachSecond.toFixed(2)} µs of CPU a second each.`,
    );
  }
} finally {
  await stopChildren();
  rmSync(dir, { recursive: true, force: true });
}

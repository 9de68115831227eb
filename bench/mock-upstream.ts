/** A fast mock vendor on raw TCP, its own process: the reply is chosen by the request's `model`, the dialect by its path. */

import type { Socket } from 'bun';
import { nanoseconds } from './clock.ts';
import {
  block,
  burst,
  type Dialect,
  httpChunk,
  json,
  jsonHttp,
  LAST_CHUNK,
  pacedTemplates,
  pacedText,
  STAMP_DIGITS,
  STREAM_HEAD,
  streamFrames,
} from './replies.ts';

const GIGABYTE = 1 << 30;

/** Writes further parts of an answer; called when the socket has room again. */
type Source = () => Buffer | undefined;

interface Connection {
  /** Bytes of a request that is not complete yet. */
  inbox: Buffer[];
  received: number;
  /** Total length of the request, once its head has been seen. */
  wanted: number;
  /** What the socket did not take. */
  unsent: Buffer | undefined;
  source: Source | undefined;
  /** A request is being answered: if the peer closes now, it aborted. */
  busy: boolean;
  ended: boolean;
}

type Peer = Socket<Connection>;

const aborts: number[] = [];
let openConnections = 0;
let servedRequests = 0;
let sentBytes = 0;

/** Sends bytes; keeps a copy of what the socket does not take (the buffers are shared). */
function send(socket: Peer, bytes: Buffer): void {
  const connection = socket.data;
  if (connection.unsent !== undefined) {
    connection.unsent = Buffer.concat([connection.unsent, bytes]);
    return;
  }
  const taken = Math.max(0, socket.write(bytes));
  sentBytes += taken;
  if (taken < bytes.length) connection.unsent = Buffer.from(bytes.subarray(taken));
}

function resume(socket: Peer): void {
  const connection = socket.data;
  const rest = connection.unsent;
  if (rest !== undefined) {
    connection.unsent = undefined;
    send(socket, rest);
  }
  while (connection.unsent === undefined && connection.source !== undefined) {
    const next = connection.source();
    if (next === undefined) finish(socket);
    else send(socket, next);
  }
}

function finish(socket: Peer): void {
  socket.data.source = undefined;
  socket.data.busy = false;
}

// Paced streams: one wheel per pace, one slot per millisecond of it, one 1 ms timer for all.
interface Paced {
  readonly socket: Peer;
  readonly send: (index: number) => boolean;
  index: number;
}
const wheels = new Map<number, Paced[][]>();
let pacedStreams = 0;
let ticker: ReturnType<typeof setInterval> | undefined;
let lastTick = 0;

function startPaced(socket: Peer, paceMs: number, sendNext: (index: number) => boolean): void {
  let wheel = wheels.get(paceMs);
  if (wheel === undefined) {
    wheel = Array.from({ length: paceMs }, () => []);
    wheels.set(paceMs, wheel);
  }
  const now = Math.floor(nanoseconds() / 1e6);
  wheel[now % paceMs]!.push({ socket, send: sendNext, index: 0 });
  pacedStreams++;
  if (ticker === undefined) {
    lastTick = now;
    ticker = setInterval(tick, 1);
  }
}

function tick(): void {
  const now = Math.floor(nanoseconds() / 1e6);
  for (let t = Math.max(lastTick + 1, now - 1000); t <= now; t++) {
    for (const [pace, wheel] of wheels) turn(wheel, t % pace);
  }
  lastTick = now;
  if (pacedStreams === 0) {
    clearInterval(ticker);
    ticker = undefined;
  }
}

function turn(wheel: Paced[][], slot: number): void {
  const streams = wheel[slot]!;
  let gone = 0;
  for (const stream of streams) {
    if (stream.socket.data.ended || !stream.send(stream.index++)) {
      stream.index = -1;
      gone++;
    }
  }
  if (gone === 0) return;
  wheel[slot] = streams.filter((stream) => stream.index >= 0);
  pacedStreams -= gone;
}

type Answer = (socket: Peer) => void;

function pacedAnswer(dialect: Dialect, model: string, events: number, paceMs: number): Answer {
  const templates = pacedTemplates(dialect, model, events);
  const frames = streamFrames(dialect, model, events);
  const opening = Buffer.from(STREAM_HEAD + frames.opening.map(httpChunk).join(''));
  // Only Responses repeats the whole text in its ending, so only there it must be remembered.
  const remembers = dialect === 'responses';
  const ending = (texts: string[]) =>
    Buffer.from(frames.closing(texts).map(httpChunk).join('') + LAST_CHUNK);
  const fixedEnding = remembers ? undefined : ending([]);
  return (socket) => {
    const texts: string[] = [];
    send(socket, opening);
    startPaced(socket, paceMs, (index) => {
      const template = templates[index];
      if (template === undefined) {
        send(socket, fixedEnding ?? ending(texts));
        finish(socket);
        return false;
      }
      const stamp = String(nanoseconds()).padStart(STAMP_DIGITS, '0');
      template.bytes.write(stamp, template.hole, STAMP_DIGITS, 'latin1');
      if (remembers) texts.push(pacedText(stamp));
      send(socket, template.bytes);
      return true;
    });
  };
}

function gigaAnswer(dialect: Dialect, model: string): Answer {
  const frames = streamFrames(dialect, model, 0);
  const opening = Buffer.from(STREAM_HEAD + frames.opening.map(httpChunk).join(''));
  const body = block(dialect, model);
  const ending = Buffer.from(frames.closing([]).map(httpChunk).join('') + LAST_CHUNK);
  return (socket) => {
    let left = Math.ceil(GIGABYTE / body.length) + 1;
    send(socket, opening);
    socket.data.source = () => {
      left--;
      return left > 0 ? body : left === 0 ? ending : undefined;
    };
    resume(socket);
  };
}

function whole(bytes: Buffer): Answer {
  return (socket) => {
    socket.data.source = () => undefined;
    send(socket, bytes);
    if (socket.data.unsent === undefined) finish(socket);
  };
}

/** `json-1k`, `burst-N`, `paced-NxMms`, `giga`, `slow` (never answers). */
function makeAnswer(dialect: Dialect, model: string): Answer {
  if (model === 'json-1k') return whole(json(dialect, model));
  const burstName = /^burst-(\d+)$/.exec(model);
  if (burstName !== null) return whole(burst(dialect, model, Number(burstName[1])));
  const pacedName = /^paced-(\d+)x(\d+)ms$/.exec(model);
  if (pacedName !== null) {
    return pacedAnswer(dialect, model, Number(pacedName[1]), Number(pacedName[2]));
  }
  if (model === 'giga') return gigaAnswer(dialect, model);
  if (model === 'slow') return () => {};
  return whole(noModel(model));
}

const noModel = (model: string) =>
  jsonHttp(404, { error: { message: `no such model: ${model}`, type: 'not_found' } });

const answers = new Map<string, Answer>();

function answerFor(dialect: Dialect, model: string): Answer {
  const key = `${dialect} ${model}`;
  let answer = answers.get(key);
  if (answer === undefined) {
    answer = makeAnswer(dialect, model);
    answers.set(key, answer);
  }
  return answer;
}

function dialectOf(requestLine: string): Dialect | undefined {
  if (requestLine.includes('/chat/completions ')) return 'chat';
  if (/\/messages[? ]/.test(requestLine)) return 'messages';
  return requestLine.includes('/responses ') ? 'responses' : undefined;
}

/** Gemini names its model in the path. */
const GENERATE = /\/models\/([^:]+):(?:g|streamG)enerateContent/;

const MODEL = /"model"\s*:\s*"([^"]+)"/;

function modelOf(body: Buffer): string {
  // Nearly always among the first bytes; the whole body only where it is not.
  const found = MODEL.exec(body.toString('latin1', 0, Math.min(512, body.length)));
  return (found ?? MODEL.exec(body.toString('latin1')))?.[1] ?? '';
}

/** What a runner may ask: `GET /control` gives the state and forgets the aborts. */
function control(): Buffer {
  const state = { openConnections, servedRequests, sentBytes, aborts: aborts.splice(0) };
  return jsonHttp(200, state);
}

function handle(socket: Peer, request: Buffer, bodyAt: number): void {
  const line = request.toString('latin1', 0, request.indexOf(13));
  servedRequests++;
  const dialect = dialectOf(line);
  const called = GENERATE.exec(line)?.[1];
  if (called !== undefined) {
    socket.data.busy = true;
    answerFor('gemini', called)(socket);
    return;
  }
  if (dialect === undefined) {
    const known = line.startsWith('GET /control');
    send(socket, known ? control() : jsonHttp(404, { error: { message: line } }));
    return;
  }
  socket.data.busy = true;
  answerFor(dialect, modelOf(request.subarray(bodyAt)))(socket);
}

function onData(socket: Peer, data: Buffer): void {
  const connection = socket.data;
  connection.inbox.push(data);
  connection.received += data.length;
  if (connection.received < connection.wanted) return;
  const request = connection.inbox.length === 1 ? data : Buffer.concat(connection.inbox);
  const headEnd = request.indexOf('\r\n\r\n');
  if (headEnd < 0) {
    connection.inbox = [request];
    return;
  }
  if (connection.wanted === 0) {
    const head = request.toString('latin1', 0, headEnd);
    if (/\r\ntransfer-encoding:\s*chunked/i.test(head)) {
      send(socket, jsonHttp(411, { error: { message: 'this mock wants a content-length' } }));
      return;
    }
    const length = Number(/\r\ncontent-length:\s*(\d+)/i.exec(head)?.[1] ?? 0);
    connection.wanted = headEnd + 4 + length;
    if (connection.received < connection.wanted) {
      connection.inbox = [request];
      if (/\r\nexpect:\s*100-continue/i.test(head)) {
        send(socket, Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'));
      }
      return;
    }
  }
  connection.inbox = [];
  connection.received = 0;
  connection.wanted = 0;
  handle(socket, request, headEnd + 4);
}

function onClose(socket: Peer): void {
  openConnections--;
  socket.data.ended = true;
  socket.data.source = undefined;
  if (socket.data.busy) aborts.push(nanoseconds());
}

const server = Bun.listen<Connection>({
  hostname: '127.0.0.1',
  port: Number(process.argv[2] ?? 0),
  socket: {
    open(socket) {
      openConnections++;
      socket.setNoDelay(true);
      socket.data = {
        inbox: [],
        received: 0,
        wanted: 0,
        unsent: undefined,
        source: undefined,
        busy: false,
        ended: false,
      };
    },
    data: onData,
    drain: resume,
    close: onClose,
    error() {},
  },
});

console.log(`mock listening on http://127.0.0.1:${server.port}`);

/** One connection of the load generator: sends a request, reads and judges the answer, says when it is done. */

import type { Socket } from 'bun';
import { nanoseconds } from './clock.ts';
import { createReplyReader } from './http-reader.ts';
import type { LoadPlan } from './load-plan.ts';
import { EVENT_MARK, STAMP_DIGITS } from './replies.ts';

const MARK = EVENT_MARK.charCodeAt(0);
// Of the three dialects that clients speak here (Gemini's counts come behind its ending); an answer in Responses repeats its text and cannot be counted by marks.
const ENDINGS = ['[DONE]', 'message_stop', '"finishReason":"STOP"'];

/** What all connections of a run write into. */
export interface Tally {
  requests: number;
  events: number;
  bytes: number;
  lost: number;
  aborted: number;
  readonly errors: Map<string, number>;
  readonly latency: number[];
  readonly firstByte: number[];
  readonly delay: number[];
  readonly log: number[];
}

export interface Client {
  readonly busy: boolean;
  send(): void;
  close(): void;
}

const count = (errors: Map<string, number>, kind: string) =>
  errors.set(kind, (errors.get(kind) ?? 0) + 1);

/** Reads the digits of a stamp; NaN where there are none. */
function stampAt(chunk: Buffer, at: number): number {
  let value = 0;
  for (let i = at; i < at + STAMP_DIGITS; i++) value = value * 10 + chunk[i]! - 48;
  return value;
}

/**
 * Connects and gives a client. `done` is called after every answer (also a failed one) with whether
 * the connection can go on.
 */
export async function connect(
  plan: LoadPlan,
  request: Buffer,
  tally: Tally,
  done: (client: Client, usable: boolean) => void,
): Promise<Client> {
  let busy = false;
  let sentAt = 0;
  let events = 0;
  let status = 0;
  let gotBody = false;
  let unsent: Buffer | undefined;
  let carry: Buffer | undefined;
  let last: Buffer | undefined;
  let lastStart = 0;
  let lastEnd = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const settle = (usable: boolean, error?: string) => {
    if (!busy) return;
    busy = false;
    if (timer !== undefined) clearTimeout(timer);
    if (error !== undefined) count(tally.errors, error);
    done(client, usable);
  };

  const countEvents = (chunk: Buffer, from: number, end: number) => {
    let bytes = chunk;
    let start = from;
    let stop = end;
    if (carry !== undefined) {
      bytes = Buffer.concat([carry, chunk.subarray(from, end)]);
      start = 0;
      stop = bytes.length;
      carry = undefined;
    }
    const now = plan.stamped ? nanoseconds() : 0;
    for (let i = bytes.indexOf(MARK, start); i >= 0 && i < stop; i = bytes.indexOf(MARK, i + 1)) {
      if (plan.stamped && i + 1 + STAMP_DIGITS > stop) {
        carry = Buffer.from(bytes.subarray(i, stop));
        return;
      }
      events++;
      tally.events++;
      if (plan.stamped) tally.delay.push((now - stampAt(bytes, i + 1)) / 1000);
    }
  };

  /** The last bytes of the answer hold the protocol's own ending. */
  const endedProperly = () => {
    const tail = last?.toString('latin1', Math.max(lastStart, lastEnd - 600), lastEnd) ?? '';
    return ENDINGS.some((ending) => tail.includes(ending));
  };

  const judge = (): string | undefined => {
    if (status !== 200) return `status ${status}`;
    if (plan.events === 0) return undefined;
    tally.lost += Math.max(0, plan.events - events);
    if (!endedProperly()) return 'no terminal event';
    return events > plan.events ? 'too many events' : undefined;
  };

  const reader = createReplyReader({
    head(code) {
      status = code;
    },
    body(chunk, start, end) {
      tally.bytes += end - start;
      if (!gotBody) {
        gotBody = true;
        tally.firstByte.push((nanoseconds() - sentAt) / 1000);
      }
      last = chunk;
      lastStart = start;
      lastEnd = end;
      if (plan.events > 0) countEvents(chunk, start, end);
    },
    end(keepAlive) {
      const micros = (nanoseconds() - sentAt) / 1000;
      const error = judge();
      last = undefined;
      if (error === undefined) {
        tally.requests++;
        tally.latency.push(micros);
        if (plan.log === true) tally.log.push(sentAt, micros);
      }
      settle(keepAlive, error);
    },
  });

  const flush = (socket: Socket, bytes: Buffer) => {
    const taken = Math.max(0, socket.write(bytes));
    unsent = taken < bytes.length ? bytes.subarray(taken) : undefined;
  };

  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: plan.port,
    socket: {
      open(opened) {
        opened.setNoDelay(true);
      },
      data(from, chunk) {
        try {
          reader.push(chunk);
        } catch (error) {
          settle(false, String(error).slice(0, 60));
          from.terminate();
        }
        if (plan.stallMs !== undefined) from.pause();
      },
      drain(to) {
        if (unsent !== undefined) flush(to, unsent);
      },
      close() {
        if (!reader.closed()) settle(false, gotBody ? 'cut in the body' : 'closed before a body');
      },
      error() {
        settle(false, 'socket error');
      },
    },
  });

  const client: Client = {
    get busy() {
      return busy;
    },
    send() {
      busy = true;
      events = 0;
      status = 0;
      gotBody = false;
      carry = undefined;
      sentAt = nanoseconds();
      flush(socket, request);
      if (plan.abortAfterMs !== undefined) {
        timer = setTimeout(() => {
          tally.aborted++;
          tally.log.push(nanoseconds());
          settle(false);
          socket.terminate();
        }, plan.abortAfterMs);
      }
    },
    close() {
      busy = false;
      socket.terminate();
    },
  };
  return client;
}

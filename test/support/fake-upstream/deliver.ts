/** Writes an answer to the connection: frames with their pace, splits and faults. */

import type { ServerResponse } from 'node:http';
import type { Delivery, FakeProtocol } from './answer.ts';
import type { Frame, Rendered } from './render.ts';

const encoder = new TextEncoder();

function frameText(frame: Frame, delivery: Delivery): string {
  const data = typeof frame.data === 'string' ? frame.data : JSON.stringify(frame.data);
  const event = frame.event === '' || delivery.bareData ? '' : `event: ${frame.event}\n`;
  const text = `${event}data: ${data}\n\n`;
  return delivery.crlf ? text.replaceAll('\n', '\r\n') : text;
}

const PING = 'event: ping\ndata: {"type": "ping"}\n\n';

function noise(protocol: FakeProtocol, delivery: Delivery): string {
  if (!delivery.comments) return '';
  const text = protocol === 'anthropic-messages' ? `: keep-alive\n\n${PING}` : ': keep-alive\n\n';
  return delivery.crlf ? text.replaceAll('\n', '\r\n') : text;
}

/** The pieces to write, and the action after the last one. */
export interface Plan {
  contentType: string;
  writes: Uint8Array[];
  end: 'end' | 'reset' | 'truncate' | 'hang';
}

/** `at` as a count out of `length`: itself, or a fraction when below 1. */
const upTo = (at: number, length: number) => (at < 1 ? Math.floor(at * length) : at);

/** A stream's frames after its delivery's cut, missing terminal event and error event. */
export function planStream(rendered: Rendered, protocol: FakeProtocol, delivery: Delivery): Plan {
  const { cut } = delivery;
  let frames = rendered.frames;
  if (delivery.dropTerminal) frames = frames.slice(0, rendered.terminal);
  if (cut !== undefined) frames = frames.slice(0, upTo(cut.at, rendered.terminal));
  if (cut?.by === 'error') frames = [...frames, ...rendered.errorFrames];
  const between = noise(protocol, delivery);
  const texts = frames.map((frame, i) => (i > 0 ? between : '') + frameText(frame, delivery));
  return {
    contentType: 'text/event-stream; charset=utf-8',
    ...packed(
      texts.map((text) => encoder.encode(text)),
      delivery,
    ),
    end: cut === undefined || cut.by === 'error' ? 'end' : cut.by,
  };
}

/** A whole answer (or raw bytes), cut as its delivery says. */
export function planWhole(bytes: Uint8Array, contentType: string, delivery: Delivery): Plan {
  const { cut } = delivery;
  const stored = cut === undefined ? bytes : bytes.subarray(0, upTo(cut.at, bytes.length));
  const end = cut === undefined || cut.by === 'error' ? 'end' : cut.by;
  return { contentType, ...packed([stored], delivery), end };
}

function packed(writes: Uint8Array[], delivery: Delivery): { writes: Uint8Array[] } {
  if (!delivery.gzip && delivery.split === undefined) return { writes };
  let all = new Uint8Array(Buffer.concat(writes));
  if (delivery.gzip) all = new Uint8Array(Bun.gzipSync(all));
  return { writes: delivery.split?.(all) ?? [all] };
}

/** The progress of a delivery; stored in the request's record. */
export interface Progress {
  /** Pieces written. */
  written: number;
  /** Body bytes as sent. */
  sent: Uint8Array[];
  /** The script itself breaks the connection. */
  broken?: boolean;
  /** The peer closed before the answer was over: milliseconds since the request was read. */
  abortedAfterMs?: number;
}

/** Ends the connection as scripted; for `hang`, resolves once the peer has left. */
async function finish(
  response: ServerResponse,
  end: Plan['end'],
  progress: Progress,
  gone: Promise<void>,
) {
  const socket = response.socket;
  progress.broken = end === 'truncate' || end === 'reset';
  if (end === 'end') response.end();
  else if (end === 'truncate') socket?.destroy();
  else if (end === 'reset') socket?.resetAndDestroy();
  else await gone;
}

/** Plays a plan; returns when nothing is left to send. */
export async function play(
  response: ServerResponse,
  status: number,
  plan: Plan,
  delivery: Delivery,
  headers: Record<string, string>,
  progress: Progress,
  gone: Promise<void>,
): Promise<void> {
  let left = false;
  void gone.then(() => {
    left = true;
  });
  if (delivery.firstByteMs !== undefined)
    await Promise.race([Bun.sleep(delivery.firstByteMs), gone]);
  if (delivery.ready !== undefined) await Promise.race([delivery.ready, gone]);
  if (delivery.before !== undefined) return finish(response, delivery.before, progress, gone);
  response.writeHead(status, {
    'content-type': plan.contentType,
    ...(delivery.gzip ? { 'content-encoding': 'gzip' } : {}),
    ...headers,
    ...delivery.headers,
  });
  response.flushHeaders();
  const pause = delivery.paceMs ?? (plan.end === 'end' && !delivery.split ? undefined : 0);
  for (const bytes of plan.writes) {
    if (left) return;
    response.write(bytes);
    progress.written++;
    progress.sent.push(bytes);
    // Without a turn of the loop the pieces would leave as one packet, and a reset would overtake them.
    if (pause !== undefined) await Promise.race([Bun.sleep(pause), gone]);
  }
  // Written bytes must reach the peer first, since a reset discards bytes in transit.
  if (plan.end === 'reset' || plan.end === 'truncate') await Bun.sleep(20);
  await finish(response, plan.end, progress, gone);
}

/** Bytes of a stream that say nothing, and what its first bytes say it is: servers label events and JSON in every way. */

import type { GatewayError } from '../../conversation/errors.ts';
import { isEmptyFrame, type StreamEvent } from '../../conversation/events.ts';
import { asBuffer, withoutByteOrderMark } from '../../lib/bytes/bytes.ts';
import type { FrameLimit, SseFrame } from '../../lib/bytes/sse.ts';
import { TargetError, tooMuch } from '../../upstream/target-error.ts';
import type { Upstream } from '../../upstream/upstream.ts';

/** How much an upstream may send, and how long it may say nothing. */
export interface Bounds {
  readonly provider: string;
  readonly limits: Upstream['config']['answers'];
  /** 0: no limit. */
  readonly contentMs: number;
  /** What no error may show. */
  readonly secrets?: readonly string[] | undefined;
}

// What a piece holds besides its bytes, about: without it many tiny ones would count for nothing.
export const PIECE_COST = 64;

const silent = ({ provider, contentMs }: Bounds): TargetError =>
  new TargetError(
    'next-target',
    'timeout',
    `Provider ${provider} kept the connection alive, but said nothing for ${contentMs / 1000} s (timeouts.content).`,
  );

/** The limit of one frame. */
export class BoundedFrame implements FrameLimit {
  constructor(private readonly bounds: Bounds) {}

  get bytes(): number {
    return this.bounds.limits.frameBytes;
  }

  error(): Error {
    return longFrame(this.bounds);
  }
}

export const longFrame = ({ provider, limits }: Bounds): TargetError =>
  tooMuch(provider, 'an event', limits.frameBytes, 'frame_bytes');

/** Counts what says nothing. Nothing fires by itself: who sends nothing at all is silent in another way. */
export class QuietLimit {
  #bytes = 0;
  /** When the time without a word began; 0: the last thing was one. */
  #since = 0;
  /** The current chunk has content. */
  #spoke = false;

  constructor(private readonly bounds: Bounds) {}

  /** A frame came, and these are its events. @throws GatewayError if frames without events are too many bytes */
  frame({ data, from, to }: SseFrame, events: readonly StreamEvent[]): void {
    if (events.length > 0 && !isEmptyFrame(events[0])) {
      if (!this.#spoke) this.#spoke = events.some(isContent);
      return;
    }
    const error = this.bytesError(Math.max(to - from, data?.length ?? 0));
    if (error !== undefined) throw error;
  }

  /** All frames of a chunk have come. @throws GatewayError if there was no content for too long */
  chunk(): void {
    const error = this.#spoke ? this.contentCame() : this.timeError();
    this.#spoke = false;
    if (error !== undefined) throw error;
  }

  /** Content has come. */
  contentCame(): undefined {
    this.#since = 0;
  }

  /** Something without content has come. The error that ends the answer, if that has gone on for too long. */
  timeError(): GatewayError | undefined {
    const { contentMs } = this.bounds;
    if (contentMs <= 0) return undefined;
    const now = performance.now();
    if (this.#since === 0) this.#since = now;
    return now - this.#since >= contentMs ? silent(this.bounds) : undefined;
  }

  /** So many bytes had no content. The error that ends the answer, if they are too many. */
  bytesError(bytes: number): GatewayError | undefined {
    this.#bytes += bytes + PIECE_COST;
    const { provider, limits } = this.bounds;
    if (this.#bytes <= limits.frameBytes) return undefined;
    return tooMuch(provider, 'comments and empty events', limits.frameBytes, 'frame_bytes');
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const COLON = 0x3a;
const E = 0x65;
const P = 0x70;
const K = 0x6b;
const EVENT_NAME = 'event: '.length;
const QUIET_EVENT = /^event: ?(?:ping|keep-?alive)\s*$/;
const QUIET_DATA = /^data: ?(?:\{"type": ?"(?:ping|keep-?alive)"[^{}]{0,100}\}|\{\})?\s*$/;

/** May these bytes be a comment or a ping? Cheap enough to be asked of every chunk. */
export function mayBeQuiet(chunk: Uint8Array): boolean {
  const first = chunk[0];
  if (first === COLON || first === LF || first === CR) return true;
  if (first !== E) return false;
  const name = chunk[EVENT_NAME];
  return name === P || name === K;
}

/**
 * Are these bytes nothing but comments, pings and blank lines? `inside`: they begin in the middle of a line
 * that is one of those.
 */
export function isQuiet(chunk: Uint8Array, inside: boolean): boolean {
  const text = asBuffer(chunk).toString('latin1');
  let at = inside ? text.indexOf('\n') + 1 : 0;
  if (inside && at === 0) return true;
  while (at < text.length) {
    const next = text.indexOf('\n', at);
    const end = next < 0 ? text.length : next;
    const first = text.charCodeAt(at);
    const plain = first === COLON || end === at || (first === CR && end === at + 1);
    if (!plain && !saysPing(text.slice(at, Math.min(end, at + LONG_LINE)))) return false;
    at = end + 1;
  }
  return true;
}

// No ping is as long.
const LONG_LINE = 200;
const saysPing = (line: string): boolean => QUIET_EVENT.test(line) || QUIET_DATA.test(line);

/** Does a line go on behind these bytes? */
export const endsInside = (chunk: Uint8Array): boolean => chunk[chunk.length - 1] !== LF;

/** Where the first byte stands that is no white space; -1: nowhere. */
export function firstNonBlank(chunk: Uint8Array): number {
  for (let i = 0; i < chunk.length; i++) {
    const byte = chunk[i];
    if (byte !== SPACE && byte !== LF && byte !== CR && byte !== TAB) return i;
  }
  return -1;
}

/** Is this event part of the answer itself, not only of its circumstances? */
export const isContent = (event: StreamEvent): boolean =>
  event.type !== 'start' && event.type !== 'usage' && !isEmptyFrame(event);

const FIELDS = ['data:', 'event:', 'id:', 'retry:', 'error:', ':'];
const MAX_FIELD = 6;
const OBJECT = 0x7b;
const LIST = 0x5b;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What a body is; undefined: its first bytes do not say it. */
export function formOf(given: Uint8Array): 'events' | 'json' | undefined {
  // Of a mark alone, parsers of events know what to make.
  const bytes = given.length > 3 ? withoutByteOrderMark(given) : given;
  const at = firstNonBlank(bytes);
  if (at < 0) return undefined;
  if (bytes[at] === OBJECT || bytes[at] === LIST) return 'json';
  return isField(bytes, at) ? 'events' : undefined;
}

/** Does the name of a field stand here, or as much of one as has come? */
function isField(bytes: Uint8Array, at: number): boolean {
  const head = utf8.decode(bytes.subarray(at, at + MAX_FIELD));
  const whole = at + MAX_FIELD <= bytes.length;
  for (const field of FIELDS) {
    if (head.startsWith(field) || (!whole && field.startsWith(head))) return true;
  }
  return false;
}

/** Is a body of this type and with these first bytes a stream of events? What it is counts more than what it is called. */
export function isEvents(contentType: string, bytes: Uint8Array | undefined): boolean {
  const form = bytes === undefined ? undefined : formOf(bytes);
  return form === undefined ? contentType.includes('event-stream') : form === 'events';
}

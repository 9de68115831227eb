/** Turns the answer on a vendor's WebSocket into an HTTP answer: frames become server-sent events. */

import { FlatHeaders } from '../../lib/http/headers.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import type { ChunkSink, ResponseBody, UpstreamAnswer } from '../transport.ts';
import { collect } from '../transport.ts';

const utf8 = new TextEncoder();

/** A frame of a vendor, as far as it is read. */
export interface VendorFrame {
  readonly type: string;
  readonly text: string;
  /** An error that is the answer, or the end of the connection. */
  readonly error: JsonObject | undefined;
}

// As vendors write it; any other order is parsed.
const FIRST_TYPE = /^\{"type":"([a-z_.]{1,80})"/;
const LAST_TYPES = new Set(['response.completed', 'response.failed', 'response.incomplete']);
/** The vendor closes the connection, which says nothing of the request. */
const CONNECTION_LIMIT = 'websocket_connection_limit_reached';

/** Undefined for what is no event. */
export function vendorFrame(text: string): VendorFrame | undefined {
  const type = FIRST_TYPE.exec(text)?.[1];
  if (type !== undefined && type !== 'error') return { type, text, error: undefined };
  const value = tryParse(text);
  if (!isObject(value) || typeof value.type !== 'string') return undefined;
  return { type: value.type, text, error: value.type === 'error' ? value : undefined };
}

/** Is it the last frame of a response? */
export const isLast = ({ type, error }: VendorFrame): boolean =>
  error !== undefined || LAST_TYPES.has(type);

/** An event of the response itself; others (limits, metadata) may come before an error. */
export const isAnswer = ({ type, error }: VendorFrame): boolean =>
  error !== undefined || (type.startsWith('response.') && type !== 'response.metadata');

/** Does it end the connection, and not the response? */
export const endsConnection = ({ error }: VendorFrame): boolean => {
  const inner = isObject(error?.error) ? error.error : error;
  return inner?.code === CONNECTION_LIMIT;
};

/** Does the vendor not know the response that was to be continued (any more)? */
export const isForgotten = ({ error }: VendorFrame): boolean =>
  isObject(error?.error) && error.error.code === 'previous_response_not_found';

/** The response object of the last frame of an answer that came to its end. */
export function completed({ type, text }: VendorFrame): JsonObject | undefined {
  if (type !== 'response.completed') return undefined;
  const event = tryParse(text);
  return isObject(event) && isObject(event.response) ? event.response : undefined;
}

// Those that hold the response object.
const OF_THE_RESPONSE = /^response\.(?:queued|created|in_progress|completed|failed|incomplete)$/;

/** The frame without the id that only this connection put into the request. */
export function withoutPrevious(frame: VendorFrame, id: string): VendorFrame {
  if (!OF_THE_RESPONSE.test(frame.type)) return frame;
  const name = '"previous_response_id":';
  for (const mark of [`${name}"${id}"`, `${name} "${id}"`]) {
    if (frame.text.includes(mark))
      return { ...frame, text: frame.text.replace(mark, `${name}null`) };
  }
  return frame;
}

export function sseOf({ type, text }: VendorFrame): Uint8Array {
  const data = text.includes('\n') ? text.replaceAll('\n', '\ndata: ') : text;
  return utf8.encode(`event: ${type}\ndata: ${data}\n\n`);
}

/** The status that an error frame names; undefined: it is an event, whose code says what went wrong. */
export function statusOf({ status, status_code: other }: JsonObject): number | undefined {
  const named = status ?? other;
  return typeof named === 'number' && named >= 400 && named <= 599 ? named : undefined;
}

/** An error frame that came instead of an answer, with its status and the headers that it names. */
export function refusalOf(status: number, frame: JsonObject): UpstreamAnswer {
  const { headers, error } = frame;
  const list = new FlatHeaders();
  for (const [name, value] of Object.entries(isObject(headers) ? headers : {})) {
    try {
      if (typeof value === 'string' || typeof value === 'number') list.set(name, String(value));
    } catch {
      // No header can carry it.
    }
  }
  list.set('content-type', 'application/json');
  const body = new FrameBody(Number.POSITIVE_INFINITY, () => {});
  body.push(utf8.encode(JSON.stringify({ error: error ?? frame })));
  body.end();
  return { status, headers: list, body };
}

export const streamAnswer = (body: FrameBody): UpstreamAnswer => ({
  status: 200,
  headers: FlatHeaders.of({ 'content-type': 'text/event-stream' }),
  body,
});

/** A body of the chunks that are pushed into it. */
export class FrameBody implements ResponseBody {
  #chunks: Uint8Array[] = [];
  #size = 0;
  #over = false;
  #broken: unknown;
  #active = false;
  #slow: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  /** @param most bytes that wait for a slow reader; beyond them the answer is broken off */
  constructor(
    private readonly most: number,
    private readonly onCancel: () => void,
  ) {}

  push(chunk: Uint8Array): void {
    if (this.#over) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#active = true;
    if (this.#size > this.most) {
      this.fail(new Error('the answer on the WebSocket came faster than it could be read'));
      this.onCancel();
    }
    this.#wake?.();
  }

  end(): void {
    this.#over = true;
    this.#wake?.();
  }

  fail(thrown: unknown): void {
    if (this.#over) return;
    this.#broken = thrown;
    this.end();
  }

  async read(): Promise<readonly Uint8Array[] | undefined> {
    while (this.#chunks.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunks = this.#chunks;
    if (chunks.length > 0) {
      this.#chunks = [];
      this.#size = 0;
      return chunks;
    }
    if (this.#broken !== undefined) throw this.#broken;
    return undefined;
  }

  async pipe(sink: ChunkSink): Promise<void> {
    for (let batch = await this.read(); batch !== undefined; batch = await this.read()) {
      for (const chunk of batch) {
        this.#slow = sink.write(chunk);
        if (this.#slow !== undefined) await this.#slow;
        this.#slow = undefined;
      }
    }
  }

  readAll(most = Number.POSITIVE_INFINITY): Promise<Uint8Array> {
    return collect(this, most);
  }

  takeActivity(): boolean {
    const active = this.#active || this.#slow !== undefined;
    this.#active = false;
    return active;
  }

  cancel(): void {
    if (this.#over) return;
    this.#chunks = [];
    this.end();
    this.onCancel();
  }
}

/** Turns the server-sent events of an answer into frames of a WebSocket: the data of each, and nothing else. */

import { turnStateIn } from '../../conversation/session/turn-state.ts';
import { type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';

const utf8 = new TextEncoder();
const BLANK_LINE = '\n\n';
const DATA = 'data: ';
const BRACE_OPEN = 0x7b;
const COLON = 0x3a;

// Written first by every encoder, this gateway's own included.
const LAST = /^\{"type":"response\.(?:completed|failed|incomplete)"/;
const LAST_EVENTS = new Set(['response.completed', 'response.failed', 'response.incomplete']);

const ERROR = /^\{"type":"error"/;

/** A sign of life between the events: clients count the time between text frames, and skip unknown ones. */
const KEEP_ALIVE = '{"type":"keepalive"}';

/** Splits the stream of one answer. */
export class AnswerFrames {
  /** The last event of the response has been seen. */
  ended = false;
  readonly #mark: string;
  /** An error event went out. */
  #failed = false;
  /** Made when bytes come, or a piece of an event. */
  #parser: SseParser | undefined;

  /** @param streamId the named lane, which every frame names */
  constructor(
    streamId: string | undefined,
    private readonly onTurnState: (value: string) => void = () => {},
  ) {
    this.#mark = streamId === undefined ? '' : `{"stream_id":"${streamId}",`;
  }

  /** The frames that this completes, in order. @throws as SseParser does */
  push(chunk: Uint8Array | string): readonly string[] {
    const frames: string[] = [];
    const pending = this.#parser?.pending !== undefined;
    if (typeof chunk === 'string' && !pending && chunk.endsWith(BLANK_LINE)) {
      this.#whole(chunk, frames);
      return frames;
    }
    this.#parser ??= new SseParser({ raw: false });
    let first = pending;
    const bytes = typeof chunk === 'string' ? utf8.encode(chunk) : chunk;
    this.#parser.read(bytes, {
      frame: (frame) => {
        this.#event(frame, first, frames);
        first = false;
      },
    });
    return frames;
  }

  /** What stands at the end without a blank line behind it. */
  end(): readonly string[] {
    const frames: string[] = [];
    for (const frame of this.#parser?.end() ?? []) this.#event(frame, true, frames);
    return frames;
  }

  keepAlive(): string {
    return this.#marked(KEEP_ALIVE);
  }

  /** Text of this gateway's own encoder: whole events, each with one line of data. */
  #whole(text: string, frames: string[]): void {
    for (let at = 0; at < text.length; ) {
      const end = text.indexOf(BLANK_LINE, at);
      if (text.charCodeAt(at) === COLON) frames.push(this.keepAlive());
      else {
        const line = text.startsWith(DATA, at) ? at : text.indexOf(`\n${DATA}`, at) + 1;
        if (line > 0 || at === 0) this.#data(text.slice(line + DATA.length, end), '', frames);
      }
      at = end + BLANK_LINE.length;
    }
  }

  /** @param doubtful it may be the stump of an event that was cut */
  #event({ event, data }: SseFrame, doubtful: boolean, frames: string[]): void {
    if (data === undefined) {
      if (event === '') frames.push(this.keepAlive());
    } else if (!doubtful || tryParse(data) !== undefined) this.#data(data, event, frames);
  }

  /** What is no object (`[DONE]`) is for streams of HTTP alone. */
  #data(data: string, event: string, frames: string[]): void {
    // A client takes what stands behind the end for the beginning of its next answer.
    if (data.charCodeAt(0) !== BRACE_OPEN || this.ended) return;
    if (event === 'error' || ERROR.test(data)) {
      if (this.#failed || endsRequest(data)) return;
      this.#failed = true;
    }
    const state = turnStateIn(data);
    if (state !== undefined) this.onTurnState(state);
    this.ended ||= LAST.test(data) || LAST_EVENTS.has(event);
    frames.push(this.#marked(data));
  }

  #marked(data: string): string {
    return this.#mark === '' ? data : this.#mark + data.slice(1);
  }
}

/** Is it a frame of a vendor's socket by which clients end the request, and no event within an answer? */
function endsRequest(data: string): boolean {
  const value = tryParse(data);
  return isObject(value) && (value.status !== undefined || value.status_code !== undefined);
}

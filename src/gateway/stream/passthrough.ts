/** Forwards a stream as bytes: the upstream speaks the client's protocol and nothing has to be changed. */

import type {
  ClientContext,
  Codec,
  Digest,
  StreamDecoder,
  StreamEncoder,
  UpstreamContext,
} from '../../codecs/codec.ts';
import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import type { Notes } from '../../conversation/notes.ts';
import { asBuffer, containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isSilent, MAX_SILENT, type SseFrame, SseParser } from '../../lib/bytes/sse.ts';
import { maskedError } from '../../upstream/vendor-error.ts';
import { AnswerProgress } from './answer-progress.ts';
import { TailBuffer } from './fast/tail-buffer.ts';
import { ErrorMask } from './mask-errors.ts';
import type { FinalAnswer, Output, StreamPipeline } from './pipeline.ts';
import {
  BoundedFrame,
  type Bounds,
  endsInside,
  isContent,
  isQuiet,
  longFrame,
  mayBeQuiet,
  PIECE_COST,
  QuietLimit,
} from './quiet-bytes.ts';

const LF = 0x0a;
const CR = 0x0d;
const BRACKET = 0x5d;

const NO_BYTES = new Uint8Array(0);
// Frames from before the answer (Messages has the prompt's tokens there) up to this many characters.
const HEAD_CHARS = 8 * 1024;
// What a frame holds besides them, about.
const FRAME_COST = 16;
// The ending of every protocol, usage included, stands in its last few frames.
const LAST_FRAMES = 4;
const BLANK_LINES = needles('\n\n', '\n\r\n', '\r\r');
const [USAGE, FAILED] = needles('"usage"', '"error"') as [Buffer, Buffer];
const [DONE] = needles('[DONE]') as [Buffer];
/** Reasons that are no failure. Behind any other one the end is read. */
const FINISHED = needles(
  ...['stop', 'tool_calls', 'length'].flatMap((reason) => [
    `"finish_reason":"${reason}"`,
    `"finish_reason": "${reason}"`,
  ]),
);
// Some vendors say `"usage":null` in every frame.
const COUNTED = needles('"usage":{', '"usage": {');

/**
 * Forwards every chunk as the very object that came. Frames are decoded until an answer has begun;
 * from then on nothing looks, and the end that was kept is read when it is over. Should the vendor
 * end naturally before any answer began, its ending is held back: it would pass for success.
 */
export class Passthrough extends AnswerProgress implements StreamPipeline {
  failure: GatewayError | undefined;
  /** Until an answer has begun. */
  #parser: SseParser | undefined;
  /** Nothing stood behind the last blank line that was read. */
  #isParsed = true;
  /** What came last says nothing. */
  #hushed = false;
  /** Bytes since the end of an event was last seen, or looked for. */
  #passed = 0;
  /** Of an event. */
  readonly #most: number;
  readonly #tail: TailBuffer;
  #last: Uint8Array | undefined;
  readonly #protocol: Codec;
  readonly #client: ClientContext;
  readonly #decoder: StreamDecoder;
  readonly #notes: Notes;
  #pinger: StreamEncoder | undefined;
  readonly #head: SseFrame[] = [];
  #headChars = 0;
  #digest: Digest | undefined;
  readonly #bounds: Bounds | undefined;
  /** Bytes in which no event ended. */
  #unended = 0;
  /** Undefined: there are no secrets. */
  readonly #mask: ErrorMask | undefined;
  /** Made when something comes that says nothing. */
  #quiet: QuietLimit | undefined;

  /** `bounds` left out: no limits. */
  constructor(protocol: Codec, upstream: UpstreamContext, client: ClientContext, bounds?: Bounds) {
    super();
    this.#bounds = bounds;
    this.#mask = bounds?.secrets?.length ? new ErrorMask(bounds.secrets) : undefined;
    this.#most = bounds?.limits.frameBytes ?? Number.POSITIVE_INFINITY;
    this.#parser = new SseParser(bounds && { limit: new BoundedFrame(bounds) });
    this.#protocol = protocol;
    this.#client = client;
    this.#decoder = protocol.decodeStream(upstream);
    this.#notes = upstream.notes;
    this.#tail = new TailBuffer(protocol.terminalPrefixes);
  }

  push(chunk: Uint8Array): Output {
    if (this.failure !== undefined) return '';
    if (chunk.length === 0) {
      this.#hushed = true;
      this.failure = this.#quietLimit()?.timeError();
      return '';
    }
    // Only what comes alone, as in a silence: pieces of an answer are longer, and are not looked at.
    if (chunk.length <= MAX_SILENT && this.#isSilence(chunk)) {
      this.#hushed = true;
      this.#lasts(chunk.length);
      this.#noteSilence();
      return '';
    }
    if (this.#parser !== undefined) {
      const out = this.#look(this.#parser, chunk);
      return typeof out === 'string' || this.#mask === undefined
        ? out
        : this.#safe(this.#mask, out);
    }
    if ((this.#hushed || mayBeQuiet(chunk)) && this.#hears(chunk)) return '';
    this.#passed += chunk.length;
    if (this.#passed > this.#most && this.#isEndless(chunk)) return '';
    const safe = this.#mask === undefined ? chunk : this.#mask.push(chunk);
    return safe === undefined ? '' : this.#forward(safe);
  }

  /** Nothing but whole frames that clients trip over. */
  #isSilence(chunk: Uint8Array): boolean {
    if (this.#parser?.pending !== undefined || !this.allowsKeepAlive) return false;
    const parser = new SseParser();
    return parser.push(chunk).every(isSilent) && parser.pending === undefined;
  }

  #noteSilence(): void {
    this.#notes.addOnce('stream_mended', 'form');
  }

  #forward(chunk: Uint8Array): Output {
    this.#tail.push(chunk);
    if (this.empty) return '';
    this.#last = chunk;
    return endsWithBracket(chunk) ? this.#withoutDone(chunk) : chunk;
  }

  /**
   * An ending that follows an error which the client's protocol does not know would pass for success: what stands
   * before it.
   */
  #withoutDone(chunk: Uint8Array): Output {
    const bytes = asBuffer(chunk);
    const done = bytes.lastIndexOf(DONE);
    if (done < 0) return chunk;
    // Its line begins behind the last line feed.
    const at = bytes.lastIndexOf(LF, done) + 1;
    if (!this.unsaid) {
      const tail = asBuffer(this.#tail.bytes);
      if (containsAny(tail, FINISHED)) return chunk;
      const { error, unsaid } = this.#protocol.digestStream(this.#frames());
      if (unsaid !== true) return chunk;
      this.error ??= this.#masked(error);
      this.unsaid = true;
    }
    this.#last = chunk.subarray(0, at);
    return at === 0 ? '' : this.#last;
  }

  /** A chunk from before the answer, as it may go out. */
  #safe(mask: ErrorMask, chunk: Uint8Array): Output {
    this.error = this.#masked(this.error);
    const safe = mask.pushFirst(chunk);
    if (safe !== chunk) this.#last = safe ?? NO_BYTES;
    return safe ?? '';
  }

  #masked(error: GatewayError | undefined): GatewayError | undefined {
    return error && maskedError(error, this.#bounds?.secrets ?? []);
  }

  /** So much has gone by that it may be one event without end, which is looked for only from then on. */
  #isEndless(chunk: Uint8Array): boolean {
    const bytes = asBuffer(chunk);
    if (chunk[0] === LF || containsAny(bytes, BLANK_LINES)) {
      this.#passed = 0;
      this.#unended = 0;
      return false;
    }
    this.#unended += chunk.length;
    if (this.#bounds === undefined || this.#unended <= this.#most) return false;
    this.failure = longFrame(this.#bounds);
    return true;
  }

  /** After the answer has begun: true if there was no content for too long. */
  #hears(chunk: Uint8Array): boolean {
    const last = this.#last;
    const inside = this.#hushed && last !== undefined && endsInside(last);
    this.#hushed = isQuiet(chunk, inside);
    if (this.#hushed) this.#lasts(chunk.length);
    else this.#quiet?.contentCame();
    return this.failure !== undefined;
  }

  /** So many bytes came without content. */
  #lasts(bytes: number): void {
    const quiet = this.#quietLimit();
    this.failure = quiet?.bytesError(bytes) ?? quiet?.timeError();
  }

  #quietLimit(): QuietLimit | undefined {
    if (this.#bounds !== undefined) this.#quiet ??= new QuietLimit(this.#bounds);
    return this.#quiet;
  }

  /** Still waiting for an answer: the chunk, without what would end the stream, or cannot be read. */
  #look(parser: SseParser, chunk: Uint8Array): Output {
    const held = this.empty;
    // Where the frame under way ends, counted in the bytes of this chunk.
    let end = -(parser.pending?.length ?? 0);
    let cut = 0;
    let hasContent = false;
    let frames = 0;
    const silent: number[] = [];
    try {
      parser.pushUntil(chunk, (frame) => {
        frames++;
        const start = end;
        const before = this.empty;
        for (const event of this.#decoder.push(frame)) {
          this.observe(event);
          hasContent ||= isContent(event);
        }
        this.#remember(frame);
        end += frame.to - frame.from;
        if (start >= 0 && isSilent(frame)) silent.push(start, end);
        if (this.empty && !before) cut = start;
        return this.answered || this.error !== undefined;
      });
    } catch (thrown) {
      this.failure = asGatewayError(thrown);
    }
    if (hasContent) this.#quiet?.contentCame();
    else if (this.failure === undefined) this.#lasts(chunk.length + frames * PIECE_COST);
    if (this.answered || this.error !== undefined) {
      const { pending } = parser;
      if (pending !== undefined) this.#tail.push(pending);
      this.#parser = undefined;
    }
    if (this.empty) {
      this.#last = undefined;
      return held || cut <= 0 ? '' : withoutRanges(chunk, silent, cut);
    }
    if (this.failure !== undefined && end <= 0) return '';
    const shown = withoutRanges(chunk, silent, this.failure === undefined ? chunk.length : end);
    if (silent.length > 0) this.#noteSilence();
    if (shown.length === 0) return '';
    this.#last = shown;
    return endsWithBracket(shown) ? this.#withoutDone(shown) : shown;
  }

  /** Keeps what a frame says, not the chunk that it stood in; what is too much goes by like the rest. */
  #remember({ event, data, bytes, from, to }: SseFrame): void {
    if (data === undefined) return;
    if (this.#headChars >= HEAD_CHARS) this.#tail.push(bytes.subarray(from, to));
    else {
      this.#headChars += data.length + FRAME_COST;
      this.#head.push({ event, data, bytes: NO_BYTES, from: 0, to: 0 });
    }
  }

  end(): Output {
    // Read before the end where the client has left.
    this.#digest = undefined;
    if (this.failure !== undefined) return '';
    if (this.#parser !== undefined) {
      this.#isParsed = this.#parser.pending === undefined;
      const rest = this.#parser.end();
      const events = rest.flatMap((frame) => this.#decoder.push(frame));
      for (const frame of rest) this.#remember(frame);
      for (const event of [...events, ...this.#decoder.end()]) this.observe(event);
    }
    const rest = this.#mask?.end();
    if (rest !== undefined) this.#forward(rest);
    this.error ??= this.#masked(this.digest.error);
    this.unsaid ||= this.digest.unsaid === true;
    if (this.empty) return '';
    const said = this.unsaid && this.error !== undefined ? this.fail(this.error) : '';
    const last = said === '' && this.digest.complete && !this.#isFramed ? '\n\n' : said;
    if (last === '') return rest ?? '';
    return rest === undefined ? last : Buffer.concat([rest, Buffer.from(last)]);
  }

  /** The last frame has its blank line: clients lose it otherwise. */
  get #isFramed(): boolean {
    if (this.#parser !== undefined) return this.#isParsed;
    const { bytes } = this.#tail;
    return (
      bytes.length === 0 || /(?:\n|\r)\r?\n$|\r\r$/.test(asBuffer(bytes.subarray(-4)).toString())
    );
  }

  get endGiven(): boolean {
    return !this.empty && (this.ended || (this.#tail.marked && this.allowsKeepAlive));
  }

  get isWhole(): boolean {
    return !this.empty && this.error === undefined && this.allowsKeepAlive && this.digest.complete;
  }

  get isFinished(): boolean {
    // More may come: what is read now is not the digest of the end.
    this.#digest = undefined;
    const { isWhole } = this;
    this.#digest = undefined;
    return isWhole;
  }

  get allowsKeepAlive(): boolean {
    const last = this.#last;
    if (last === undefined) return true;
    const end = last.length - 1;
    // A blank line, LF or CRLF; a chunk that is too short counts as the middle of a frame.
    return (
      last[end] === LF && (last[end - 1] === LF || (last[end - 1] === CR && last[end - 2] === LF))
    );
  }

  get digest(): Digest {
    if (this.#digest === undefined) {
      const { semantic, answered } = this;
      const seen = this.#lastWords() ?? this.#protocol.digestStream(this.#frames());
      // The middle of a long stream is not among the frames: what the watch saw counts, too.
      this.#digest = { ...seen, semantic: semantic || seen.semantic, answered };
    }
    return this.#digest;
  }

  get terminalBytes(): number {
    const { terminalPrefixes } = this.#protocol;
    if (terminalPrefixes.length === 0) return 0;
    const bytes = asBuffer(this.#tail.bytes);
    let first = bytes.length;
    for (const prefix of terminalPrefixes) {
      const at = bytes.indexOf(prefix);
      if (at >= 0 && at < first) first = at;
    }
    return bytes.length - first;
  }

  /** The digest of the first and the last few frames, where those between can add nothing to it. */
  #lastWords(): Digest | undefined {
    if (!this.answered) return undefined;
    const { bytes } = this.#tail;
    const at = lastFrames(bytes, LAST_FRAMES);
    if (at <= 0) return undefined;
    const before = asBuffer(bytes).subarray(0, at);
    if (before.includes(FAILED)) return undefined;
    const uses = before.includes(USAGE);
    if (uses && containsAny(before, COUNTED)) return undefined;
    const frames = [...this.#head, ...parsed(bytes.subarray(at))];
    const digest = this.#protocol.digestStream(frames);
    const known = digest.usage !== undefined || !uses;
    return digest.complete && known ? digest : undefined;
  }

  #frames(): readonly SseFrame[] {
    const rest = parsed(this.#tail.bytes);
    // What begins in the middle of a frame begins with a broken one.
    return [...this.#head, ...(this.#tail.cut ? rest.slice(1) : rest)];
  }

  // Only interceptors ask for another hop.
  readonly continuation = undefined;
  inject = () => '';

  get finalAnswer(): FinalAnswer {
    return { kind: 'frames', frames: this.#frames() };
  }

  ping(): string {
    this.#pinger ??= this.#protocol.encodeStream(this.#client);
    this.#pinger.follow?.(this.#frames());
    return this.#pinger.ping();
  }

  fail(error: GatewayError): string {
    // A frame that was cut in the middle must not swallow the error event.
    const gap = this.allowsKeepAlive ? '' : '\n\n';
    const encoder = this.#protocol.encodeStream(this.#client);
    // The error carries the id of the answer that the client has seen begin.
    if (this.start !== undefined && this.#last !== undefined) encoder.event(this.start);
    encoder.follow?.(this.#frames());
    return gap + encoder.fail(error);
  }
}

function parsed(bytes: Uint8Array): readonly SseFrame[] {
  const parser = new SseParser({ raw: false });
  return [...parser.push(bytes), ...parser.end()];
}

/** The bytes up to `to`, without these ranges (start, end, start, end …); the same reference if that is all. */
function withoutRanges(bytes: Uint8Array, ranges: readonly number[], to: number): Uint8Array {
  if (ranges.length === 0) return to === bytes.length ? bytes : bytes.subarray(0, to);
  const left: Uint8Array[] = [];
  let from = 0;
  for (let i = 0; i < ranges.length && from < to; i += 2) {
    left.push(bytes.subarray(from, Math.min(ranges[i]!, to)));
    from = ranges[i + 1]!;
  }
  if (from < to) left.push(bytes.subarray(from, to));
  return Buffer.concat(left);
}

/** As `data: [DONE]` does, with its blank line: LF or CRLF, or none. */
function endsWithBracket(chunk: Uint8Array): boolean {
  const { length } = chunk;
  const last = chunk[length - 1];
  const before = last !== LF ? last : chunk[length - (chunk[length - 2] === CR ? 5 : 3)];
  return before === BRACKET;
}

/** Where the last `count` frames begin; 0 when there are fewer, or lines that do not end in LF. */
function lastFrames(bytes: Uint8Array, count: number): number {
  let left = count;
  // The blank line of the last frame itself is no beginning.
  for (let i = bytes.length - 3; i > 0; i--) {
    if (bytes[i] === LF && bytes[i - 1] === LF && --left === 0) return i + 1;
  }
  return 0;
}

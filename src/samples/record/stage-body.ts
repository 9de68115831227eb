/** The body of one stage on its way to disk: chunks wait unchanged and are masked when they are written. */

import type { GatewayError } from '../../conversation/errors.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { othersTurn, runInSlices } from '../../lib/loop/steps.ts';
import { cutWords } from '../../lib/text/printable-text.ts';
import { type BlankedContent, blankBodyInSteps } from '../mask/blank-body.ts';
import { BodyMask } from '../mask/body-mask.ts';
import type { Patch } from '../mask/split-mask.ts';
import type { SampleError, SampleStage } from '../sample.ts';
import { fileName } from '../store/sample-files.ts';

/** What is known of a stage beside its bytes; it goes into the meta file. */
export type StageFacts = {
  -readonly [Fact in keyof Omit<
    SampleStage,
    'stage' | 'file' | 'bytes' | 'masked'
  >]: SampleStage[Fact];
};

/** Headers and URL with credentials: they stay in memory and are never written. */
export interface UnmaskedFacts {
  readonly headers: ReadonlyHeaders;
  readonly url?: string;
}

/** What must not reach the disk. */
export interface Masking {
  readonly secrets: { readonly literals: readonly string[] };
  /** Content that is blanked; a body with such content is written only when it is complete. */
  readonly blanked: readonly BlankedContent[];
}

/** What is masked of a body and not written yet; masking keeps the length. */
export interface Drained {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  /** To be written over what is written by then, these pieces included. */
  readonly patches: readonly Patch[];
}

/** Bytes masked at a time, which takes a few hundred microseconds of the event loop. */
const SLICE = 65_536;
/** Masked without a turn for others: such a turn costs more than the mask of so many bytes. */
const AT_ONCE = 8192;
/** Bytes copied at a time. */
const COPIED = 2 ** 20;

export class StageBody {
  /** May change until the exchange is over: only then is it known which try counts. */
  stage: string;
  readonly sse: boolean;
  readonly facts: StageFacts;
  /** What must be masked before it becomes a fact. */
  raw: UnmaskedFacts | undefined;
  /** No more bytes will come. */
  over = false;
  /** Bytes received and bytes written; masking keeps the length. */
  bytes = 0;
  written = 0;
  /** The file that holds the body so far. */
  file: string | undefined;
  finished = false;
  /** When the chunks of a stream arrived. */
  readonly timings: ChunkTimings | undefined;
  #waiting: Uint8Array[] = [];
  /** Masked pieces that are not written yet, and their bytes. */
  #masked: Uint8Array[] = [];
  #maskedBytes = 0;
  /** Made with the first write: most exchanges are never written. */
  #mask: BodyMask | undefined;
  readonly #hidden: Masking;

  constructor(stage: string, sse: boolean, facts: StageFacts, hidden: Masking) {
    this.stage = stage;
    this.sse = sse;
    this.timings = sse ? new ChunkTimings() : undefined;
    this.facts = facts;
    this.#hidden = hidden;
  }

  get masked(): number {
    return this.#mask?.count ?? 0;
  }

  get dirty(): boolean {
    const waits = this.#waiting.length > 0 && (this.#hidden.blanked.length === 0 || this.over);
    return waits || (this.over && !this.finished);
  }

  /** Something is masked and not written. */
  get ready(): boolean {
    return this.#maskedBytes > 0;
  }

  name(id: string): string {
    return fileName(id, this.stage, this.sse);
  }

  push(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    this.#waiting.push(chunk);
  }

  /** Keeps at most so many bytes; what is cut is marked. Nothing may have been drained yet. */
  keepFirst(most: number): void {
    if (this.bytes <= most) return;
    let room = most;
    const kept: Uint8Array[] = [];
    for (const chunk of this.#waiting) {
      if (room === 0) break;
      // A copy: a view would keep the whole chunk in memory.
      const taken = chunk.length > room ? new Uint8Array(chunk.subarray(0, room)) : chunk;
      kept.push(taken);
      room -= taken.length;
    }
    this.#waiting = kept;
    this.bytes = most - room;
    this.facts.cut = true;
  }

  /** Copies chunks that are small parts of larger buffers, so that those are free. */
  compact(): void {
    // Several chunks may be parts of one.
    const buffers = new Set(this.#waiting.map(({ buffer }) => buffer));
    let whole = 0;
    for (const { byteLength } of buffers) whole += byteLength;
    const held = this.#waiting.reduce((sum, { length }) => sum + length, 0);
    if (whole <= 2 * held) return;
    // Not Buffer.concat: a small Buffer is itself a part of a larger one.
    const copy = new Uint8Array(held);
    let to = 0;
    for (const chunk of this.#waiting) {
      copy.set(chunk, to);
      to += chunk.length;
    }
    this.#waiting = [copy];
  }

  /** Drops what is not written. */
  release(): void {
    this.#waiting = [];
    this.#masked = [];
    this.#maskedBytes = 0;
  }

  /** A masked copy of what waits, for a reader; what waits stays as it is. Nothing may have been drained yet. */
  async peek(): Promise<Buffer> {
    const copy = new StageBody(this.stage, this.sse, {}, this.#hidden);
    for (const chunk of this.#waiting) copy.push(chunk);
    copy.over = this.over;
    const { pieces, patches } = await copy.drain();
    const whole = Buffer.concat(pieces);
    for (const { at, bytes } of patches) whole.set(bytes, at);
    return whole;
  }

  /**
   * Masks the waiting chunks and returns what is masked, where that is `least` bytes or the body is over; it stays in
   * memory otherwise. It yields to the event loop between pieces.
   */
  async drain(least = 0): Promise<Drained> {
    const { blanked } = this.#hidden;
    this.#mask ??= new BodyMask(() => this.#hidden.secrets.literals, this.sse);
    if (blanked.length > 0) {
      if (!this.over) return NOTHING;
      if (this.#waiting.length > 0) {
        const whole = await wholeOf(this.#waiting);
        this.#waiting = [(await runInSlices(blankBodyInSteps(whole, this.sse, blanked))) ?? whole];
      }
    }
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const chunk of joined(waiting)) {
        for (let at = 0; at < chunk.length; at += SLICE) {
          if (at > 0) await othersTurn();
          this.#take(this.#mask.push(chunk.subarray(at, at + SLICE)));
        }
        if (chunk.length > AT_ONCE) await othersTurn();
      }
    }
    if (this.over) {
      this.#take(this.#mask.end());
      this.finished = true;
    } else if (this.#maskedBytes < least) return NOTHING;
    const drained = {
      pieces: this.#masked,
      bytes: this.#maskedBytes,
      patches: this.#mask.takePatches(),
    };
    this.#masked = [];
    this.#maskedBytes = 0;
    return drained;
  }

  #take(piece: Uint8Array): void {
    if (piece.length === 0) return;
    // What stays for a while is copied where it is a small part of a larger buffer, which would stay with it.
    const small = !this.over && piece.buffer.byteLength > 2 * piece.length;
    this.#masked.push(small ? new Uint8Array(piece) : piece);
    this.#maskedBytes += piece.length;
  }
}

const NOTHING: Drained = { pieces: [], bytes: 0, patches: [] };

/** All chunks copied into one buffer, a megabyte at a time. */
async function wholeOf(chunks: readonly Uint8Array[]): Promise<Buffer> {
  const whole = Buffer.allocUnsafe(chunks.reduce((sum, { length }) => sum + length, 0));
  let to = 0;
  let rest = COPIED;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += COPIED) {
      const part = chunk.subarray(at, at + COPIED);
      whole.set(part, to);
      to += part.length;
      rest -= part.length;
      if (rest > 0) continue;
      rest = COPIED;
      await othersTurn();
    }
  }
  return whole;
}

/** Small chunks joined, up to a slice each. */
function* joined(waiting: readonly Uint8Array[]): Generator<Uint8Array> {
  for (let at = 0; at < waiting.length; ) {
    const from = at;
    let bytes = 0;
    while (at < waiting.length && (at === from || bytes + waiting[at]!.length <= SLICE)) {
      bytes += waiting[at++]!.length;
    }
    yield at === from + 1 ? waiting[from]! : Buffer.concat(waiting.slice(from, at));
  }
}

/** Times that are kept; at this number every second one is dropped and later ones are taken farther apart. */
const MAX = 400;

/** Times of one body; `add` is called for each chunk. */
export class ChunkTimings {
  #bytes: number[] = [];
  #times: number[] = [];
  #gap = 0;

  /** @param bytes received before this chunk @param ms since the exchange began */
  add(bytes: number, ms: number): void {
    const last = this.#times.at(-1);
    if (last !== undefined && ms - last < this.#gap) return;
    this.#bytes.push(bytes);
    this.#times.push(ms);
    if (this.#times.length < MAX) return;
    this.#bytes = this.#bytes.filter((_, i) => i % 2 === 0);
    this.#times = this.#times.filter((_, i) => i % 2 === 0);
    this.#gap = Math.max(1, this.#gap * 2);
  }

  /** `ms:byte` pairs separated by spaces: when the bytes from that offset on arrived. '' for a body in one piece. */
  get text(): string {
    if (this.#times.length < 2) return '';
    return this.#times.map((ms, i) => `${Math.round(ms)}:${this.#bytes[i]}`).join(' ');
  }
}

// The recorded body holds the whole text.
const MAX_ERROR_CHARACTERS = 16_384;

/** Milliseconds to two decimals. */
export const round = (ms: number) => Math.round(ms * 100) / 100;

/** An error as a meta file holds it; long texts are cut. */
export function sampleError(error: GatewayError): SampleError {
  const { kind, status, code } = error;
  const message = cutWords(error.message, MAX_ERROR_CHARACTERS);
  return {
    kind,
    message,
    status,
    ...(code !== undefined && { code: cutWords(code, MAX_ERROR_CHARACTERS) }),
  };
}

/** One body on its way to disk: chunks wait as they came, and are masked when they are written. */

import type { ProtocolName } from '../../conversation/types.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { type Blanked, blanking } from '../mask/blank-body.ts';
import { BodyMask } from '../mask/body-mask.ts';
import type { SampleError } from '../sample.ts';
import { fileName } from '../store/sample-files.ts';
import { inSlices } from '../store/steps.ts';
import { ChunkTimings } from './chunk-timings.ts';

/** What is known of an edge beside its bytes; ends up in the meta file. */
export interface EdgeFacts {
  hop?: number;
  try?: number;
  at?: number;
  connected?: number;
  until?: number;
  first?: number;
  pace?: string;
  protocol?: ProtocolName;
  target?: string;
  url?: string;
  headers?: Record<string, string>;
  status?: number;
  error?: SampleError;
  cut?: boolean;
  made?: boolean;
}

/** As the gateway told it, credentials included: only for memory. */
export interface RawFacts {
  readonly headers: ReadonlyHeaders;
  readonly url?: string;
}

/** What of an exchange does not go to disk. */
export interface Hidden {
  readonly secrets: { readonly literals: readonly string[] };
  /** Content that is blanked: such a body is written only once it is whole. */
  readonly blanked: readonly Blanked[];
}

/** Bytes masked at a time: a slice of the event loop of some hundred microseconds. */
const SLICE = 65_536;
/** Bytes copied at a time. */
const COPIED = 2 ** 20;

export class Edge {
  /** May change until the exchange is over: the try that counts is known only then. */
  stage: string;
  readonly sse: boolean;
  readonly facts: EdgeFacts;
  /** What still has to be masked before it is a fact. */
  raw: RawFacts | undefined;
  /** The body is complete (or will not be). */
  over = false;
  /** Taken in and written, before and behind the mask; both are of the same length. */
  bytes = 0;
  written = 0;
  /** The file it is in so far. */
  file: string | undefined;
  finished = false;
  /** When its chunks came, for a stream. */
  readonly pace: ChunkTimings | undefined;
  /** Credentials that were found only across several events. */
  splitMasked = 0;
  #waiting: Uint8Array[] = [];
  /** Once something is written: most exchanges are not. */
  #mask: BodyMask | undefined;
  readonly #hidden: Hidden;

  constructor(stage: string, sse: boolean, facts: EdgeFacts, hidden: Hidden) {
    this.stage = stage;
    this.sse = sse;
    this.pace = sse ? new ChunkTimings() : undefined;
    this.facts = facts;
    this.#hidden = hidden;
  }

  get masked(): number {
    return (this.#mask?.count ?? 0) + this.splitMasked;
  }

  get dirty(): boolean {
    const waits = this.#waiting.length > 0 && (this.#hidden.blanked.length === 0 || this.over);
    return waits || (this.over && !this.finished);
  }

  name(id: string): string {
    return fileName(id, this.stage, this.sse);
  }

  push(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    this.#waiting.push(chunk);
  }

  /** Lets go of what waits. */
  release(): void {
    this.#waiting = [];
  }

  /**
   * Masks what waits and hands it over in pieces, with how many bytes they were before: memory that is
   * free once the pieces are written. Between pieces the event loop gets its turn.
   */
  async drain(): Promise<{ readonly pieces: Uint8Array[]; readonly taken: number }> {
    const pieces: Uint8Array[] = [];
    let taken = 0;
    const { blanked } = this.#hidden;
    this.#mask ??= new BodyMask(() => this.#hidden.secrets.literals);
    if (blanked.length > 0) {
      if (!this.over) return { pieces, taken };
      if (this.#waiting.length > 0) {
        const whole = await wholeOf(this.#waiting);
        this.#waiting = [(await inSlices(blanking(whole, this.sse, blanked))) ?? whole];
      }
    }
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const chunk of joined(waiting)) {
        taken += chunk.length;
        for (let at = 0; at < chunk.length; at += SLICE) {
          if (at > 0) await new Promise((resolve) => setImmediate(resolve));
          const piece = this.#mask.push(chunk.subarray(at, at + SLICE));
          if (piece.length > 0) pieces.push(piece);
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    if (this.over) {
      pieces.push(this.#mask.end());
      this.finished = true;
    }
    return { pieces, taken };
  }
}

/** A copy of all of them as one: a megabyte at a time. */
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
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return whole;
}

/** Small chunks as one each, up to a slice. */
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

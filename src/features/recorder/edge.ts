/** One body on its way to disk: chunks wait as they came, and are masked when they are written. */

import type { SampleError } from '../../conversation/sample.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { HeaderFields } from '../../lib/header-list.ts';
import { type Blanked, blankBody } from './blank-body.ts';
import { BodyMask } from './body-mask.ts';
import { Pace } from './pace.ts';
import { fileName } from './sample-files.ts';

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
  readonly headers: HeaderFields;
  readonly url?: string;
}

/** Bytes masked at a time: a slice of the event loop of some hundred microseconds. */
const SLICE = 65_536;

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
  readonly pace: Pace | undefined;
  /** Credentials that were found only across several events. */
  splitMasked = 0;
  #waiting: Uint8Array[] = [];
  readonly #mask: BodyMask;
  readonly #blank: readonly Blanked[];

  /** @param blank content that is blanked: such a body is written only once it is whole */
  constructor(
    stage: string,
    sse: boolean,
    facts: EdgeFacts,
    literals: () => readonly string[],
    blank: readonly Blanked[] = [],
  ) {
    this.stage = stage;
    this.sse = sse;
    this.pace = sse ? new Pace() : undefined;
    this.facts = facts;
    this.#mask = new BodyMask(literals);
    this.#blank = blank;
  }

  get masked(): number {
    return this.#mask.count + this.splitMasked;
  }

  get dirty(): boolean {
    const waits = this.#waiting.length > 0 && (this.#blank.length === 0 || this.over);
    return waits || (this.over && !this.finished);
  }

  name(id: string): string {
    return fileName(id, this.stage, this.sse);
  }

  push(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    this.#waiting.push(chunk);
  }

  /** Lets go of what waits; how many bytes that were. */
  release(): number {
    const bytes = this.#waiting.reduce((sum, chunk) => sum + chunk.length, 0);
    this.#waiting = [];
    return bytes;
  }

  /**
   * Masks what waits and hands it over in pieces, `free` telling of the memory that each one gives
   * back. Between pieces the event loop gets its turn.
   */
  async drain(free: (bytes: number) => void): Promise<Uint8Array[]> {
    const out: Uint8Array[] = [];
    if (this.#blank.length > 0) {
      if (!this.over) return out;
      if (this.#waiting.length > 0) {
        this.#waiting = [blankBody(Buffer.concat(this.#waiting), this.sse, this.#blank)];
      }
    }
    while (this.#waiting.length > 0) {
      const chunk = joined(this.#waiting);
      free(chunk.length);
      for (let at = 0; at < chunk.length; at += SLICE) {
        if (at > 0) await new Promise((resolve) => setImmediate(resolve));
        const piece = this.#mask.push(chunk.subarray(at, at + SLICE));
        if (piece.length > 0) out.push(piece);
      }
    }
    if (this.over) {
      out.push(this.#mask.end());
      this.finished = true;
    }
    return out;
  }
}

/** Small chunks as one, up to a slice; they leave the list. */
function joined(waiting: Uint8Array[]): Uint8Array {
  let count = 0;
  let bytes = 0;
  while (count < waiting.length && (count === 0 || bytes + waiting[count]!.length <= SLICE)) {
    bytes += waiting[count++]!.length;
  }
  const taken = waiting.splice(0, count);
  return taken.length === 1 ? taken[0]! : Buffer.concat(taken);
}

/** Plain text recognised by its bytes: sent on at once, and told to whoever must know of it later. */

import type { TextFrame } from '../protocols/protocol.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ASCII = 0x80;
// So much text waits at most before it is told.
const ROOM = 512;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The steady part of a stream: frames that differ from each other in a text that stands for itself
 * in JSON, and that nobody minds. Each costs a comparison of its bytes; what it said is collected
 * and taken by {@link taken}. Does no I/O, keeps no chunk.
 */
export class PlainText {
  /** Of the frames that come in; a chunk that is one whole frame is looked at. */
  readonly from: TextFrame;
  /** Of the frames that go out; undefined: the chunk itself does. */
  readonly to: TextFrame | undefined;
  readonly minded: string;
  readonly #plain: Uint8Array;
  readonly #head: Uint8Array;
  readonly #foot: Uint8Array;
  readonly #outHead: Uint8Array;
  readonly #outFoot: Uint8Array;
  readonly #text = new Uint8Array(ROOM);
  #length = 0;

  /** @param minded characters that the text must not have */
  constructor(from: TextFrame, to: TextFrame | undefined, minded: string) {
    this.from = from;
    this.to = to;
    this.minded = minded;
    this.#plain = plainBytes(minded);
    this.#head = encoder.encode(from.head);
    this.#foot = encoder.encode(from.foot);
    this.#outHead = encoder.encode(to?.head ?? '');
    this.#outFoot = encoder.encode(to?.foot ?? '');
  }

  /** What goes out for this chunk; undefined: it is something else, or there is no room left. */
  push(chunk: Uint8Array): Uint8Array | undefined {
    const head = this.#head;
    const foot = this.#foot;
    const start = head.length;
    const end = chunk.length - foot.length;
    const length = this.#length + end - start;
    if (end <= start || length > ROOM) return undefined;
    // From the end of the head, which is where frames of one stream differ.
    for (let i = start - 1; i >= 0; i--) if (chunk[i] !== head[i]) return undefined;
    for (let i = 0; i < foot.length; i++) if (chunk[end + i] !== foot[i]) return undefined;
    const plain = this.#plain;
    const text = this.#text;
    let at = this.#length;
    let seen = 0;
    for (let i = start; i < end; i++) {
      const byte = chunk[i]!;
      if (plain[byte] === 0) return undefined;
      seen |= byte;
      text[at++] = byte;
    }
    if (chunk[end - 1] === 0x20) return undefined;
    if (seen >= ASCII && !whole(chunk.subarray(start, end))) return undefined;
    this.#length = length;
    return this.to === undefined ? chunk : this.#framed(chunk, start, end);
  }

  #framed(chunk: Uint8Array, start: number, end: number): Uint8Array {
    const head = this.#outHead;
    const foot = this.#outFoot;
    const out = new Uint8Array(head.length + end - start + foot.length);
    out.set(head);
    let at = head.length;
    for (let i = start; i < end; i++) out[at++] = chunk[i]!;
    out.set(foot, at);
    return out;
  }

  /** All that was said since the last time. */
  taken(): string {
    if (this.#length === 0) return '';
    const text = strict.decode(this.#text.subarray(0, this.#length));
    this.#length = 0;
    return text;
  }
}

/** Characters that are whole, the last of them no space. */
function whole(bytes: Uint8Array): boolean {
  try {
    return strict.decode(bytes).slice(-1).trim() !== '';
  } catch {
    return false;
  }
}

const known = new Map<string, Uint8Array>();

/** 1 for each byte that text may have which nobody minds, and which needs no escape in JSON. */
function plainBytes(minded: string): Uint8Array {
  let plain = known.get(minded);
  if (plain === undefined) {
    plain = new Uint8Array(256).fill(1, 0x20);
    plain[QUOTE] = 0;
    plain[BACKSLASH] = 0;
    // Of a character beyond ASCII all that begin as it does.
    for (const character of minded) plain[encoder.encode(character)[0]!] = 0;
    known.set(minded, plain);
  }
  return plain;
}

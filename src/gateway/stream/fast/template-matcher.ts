/** Recognises frames of plain text by their bytes, and collects the text. */

import type { TextTemplate } from '../../../conversation/fast-text.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ASCII = 0x80;
// Bytes of text that are collected at most.
const ROOM = 512;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The steady part of a stream: frames that differ from each other in a text that stands for itself
 * in JSON, and that no interceptor watches. Each costs a comparison of its bytes; its text is collected
 * and taken by {@link taken}. Does no I/O, keeps no chunk.
 */
export class TemplateMatcher {
  readonly #plain: Uint8Array;
  /** Head and foot of incoming frames, and the text behind them: one buffer, since each one costs a cache miss. */
  readonly #bytes: Uint8Array;
  readonly #headSize: number;
  /** Of head and foot: where the text begins. */
  readonly #frameSize: number;
  #length = 0;
  readonly #outHead: Uint8Array;
  readonly #outFoot: Uint8Array;

  /** @param watched characters that the text must not have */
  constructor(
    /** The form of incoming frames; only a chunk that is one whole frame is compared. */
    readonly from: TextTemplate,
    /** The form of outgoing frames; undefined: the chunk itself goes out. */
    readonly to: TextTemplate | undefined,
    readonly watched: string,
  ) {
    this.#plain = plainBytes(watched);
    const head = encoder.encode(from.head);
    const foot = encoder.encode(from.foot);
    this.#headSize = head.length;
    this.#frameSize = head.length + foot.length;
    this.#bytes = new Uint8Array(this.#frameSize + ROOM);
    this.#bytes.set(head);
    this.#bytes.set(foot, head.length);
    this.#outHead = sharedBytes(to?.head ?? '');
    this.#outFoot = sharedBytes(to?.foot ?? '');
  }

  /** What goes out for this chunk; undefined: it is something else, or there is no room left. */
  push(chunk: Uint8Array): Uint8Array | undefined {
    const bytes = this.#bytes;
    const start = this.#headSize;
    const behind = this.#frameSize;
    const end = chunk.length - behind + start;
    const length = this.#length + end - start;
    if (end <= start || length > ROOM) return undefined;
    // From the end of the head, which is where frames of one stream differ.
    for (let i = start - 1; i >= 0; i--) if (chunk[i] !== bytes[i]) return undefined;
    for (let i = start; i < behind; i++) {
      if (chunk[end + i - start] !== bytes[i]) return undefined;
    }
    const plain = this.#plain;
    let at = behind + this.#length;
    let seen = 0;
    for (let i = start; i < end; i++) {
      const byte = chunk[i]!;
      if (plain[byte] === 0) return undefined;
      seen |= byte;
      bytes[at++] = byte;
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

  /** The text since the last call. */
  taken(): string {
    if (this.#length === 0) return '';
    const from = this.#frameSize;
    const text = strict.decode(this.#bytes.subarray(from, from + this.#length));
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

// What holds no id of its stream is short, and the same for all.
const SHARED_CHARS = 128;
const MAX_SHARED = 64;
const shared = new Map<string, Uint8Array>();

/** The text's bytes: the very ones that another stream has, where that may be. */
function sharedBytes(text: string): Uint8Array {
  if (text.length > SHARED_CHARS) return encoder.encode(text);
  let bytes = shared.get(text);
  if (bytes === undefined) {
    bytes = encoder.encode(text);
    if (shared.size === MAX_SHARED) shared.clear();
    shared.set(text, bytes);
  }
  return bytes;
}

const known = new Map<string, Uint8Array>();

/** 1 for each byte of text that no interceptor watches and that needs no escape in JSON. */
function plainBytes(watched: string): Uint8Array {
  let plain = known.get(watched);
  if (plain === undefined) {
    plain = new Uint8Array(256).fill(1, 0x20);
    plain[QUOTE] = 0;
    plain[BACKSLASH] = 0;
    // Of a character beyond ASCII all that begin as it does.
    for (const character of watched) plain[encoder.encode(character)[0]!] = 0;
    known.set(watched, plain);
  }
  return plain;
}

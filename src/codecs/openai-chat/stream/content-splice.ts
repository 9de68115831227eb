/** Reads chunks that differ from an earlier one only in their content, without parsing them. */

import type { TextTemplate } from '../../../conversation/fast-text.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import { list, object } from '../wire.ts';

/** Members whose value is ignored. All others must be empty in a chunk that is learned. */
const CHUNK_NOISE: ReadonlySet<string> = new Set([
  'id',
  'created',
  'model',
  'system_fingerprint',
  'service_tier',
  'provider',
  'obfuscation',
  'p',
]);
const CHUNK_OBJECT = 'chat.completion.chunk';

/** Characters that are escaped in a JSON string. */
const SPECIAL = /["\\\p{Cc}]/u;
const PROBE = 'probe';
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
// After so many learned chunks that matched no other (random padding), learning stops.
const MOST_MISSES = 4;

/**
 * Vendors send the same JSON around every piece of text. The text before and after the content of one chunk
 * is stored. By the grammar of JSON, a chunk with the same text around a valid JSON string has the same value
 * except for that string.
 */
export class ContentSplice {
  #before = '';
  #behind = '';
  #event = '';
  #frame: TextTemplate | undefined;
  #misses = 0;
  #seen = false;

  /** The content of a chunk like the learned one; undefined if the chunk must be parsed. */
  read(data: string, event: string): string | undefined {
    const from = this.#before.length;
    const to = data.length - this.#behind.length;
    if (from === 0 || to < from || event !== this.#event) return undefined;
    if (!data.startsWith(this.#before) || !data.endsWith(this.#behind)) return undefined;
    const inner = data.slice(from, to);
    let content: string | undefined = inner;
    if (SPECIAL.test(inner)) {
      content = unescaped(inner);
      if (content === undefined) return undefined;
    }
    this.#misses = 0;
    return content;
  }

  /** The content of all frames from `at` on that are like the learned one; undefined if there are none. */
  readRun(
    frames: string,
    at: number,
  ): { readonly content: string; readonly to: number } | undefined {
    if (this.#frame === undefined) return undefined;
    const { head, foot } = this.#frame;
    let content = '';
    let to = at;
    while (frames.startsWith(head, to)) {
      const from = to + head.length;
      let end = plainEnd(frames, from);
      let piece: string | undefined;
      if (frames.startsWith(foot, end)) piece = frames.slice(from, end);
      else {
        end = frames.indexOf(foot, from);
        if (end >= 0) piece = unescaped(frames.slice(from, end));
      }
      if (piece === undefined) break;
      content += piece;
      to = end + foot.length;
    }
    return content === '' ? undefined : { content, to };
  }

  /** Learns a parsed chunk if it holds content and nothing else. */
  learn(data: string, event: string, chunk: JsonObject): void {
    if (this.#misses >= MOST_MISSES) return;
    const content = onlyContent(chunk);
    if (content === undefined || content === PROBE) return;
    if (!this.#seen) {
      // Not on the first chunk with content: passthrough reads no further than that chunk.
      this.#seen = true;
      return;
    }
    this.#misses++;
    const mark = data.includes('"content":"') ? '"content":"' : '"content": "';
    const at = data.indexOf(mark);
    if (at < 0) return;
    const from = at + mark.length;
    const to = closingQuote(data, from);
    if (to < 0) return;
    const before = data.slice(0, from);
    const behind = data.slice(to);
    // Another string at this position changes the content, so it is the content's position.
    if (onlyContent(parsed(before + PROBE + behind)) !== PROBE) return;
    this.#before = before;
    this.#behind = behind;
    this.#event = event;
    this.#frame = event === '' ? { head: `data: ${before}`, foot: `${behind}\n\n` } : undefined;
  }

  /** The text around the content in a frame; undefined if runs of frames are not read. */
  get frame(): TextTemplate | undefined {
    return this.#frame;
  }
}

/** The end of the unescaped characters of a JSON string: a quote, an escape or a control character. */
function plainEnd(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH || code < SPACE) break;
  }
  return at;
}

/** The value of a JSON string given without its quotes; undefined if it is not valid. */
function unescaped(inner: string): string | undefined {
  // A text in quotes parses only if it is one string.
  const value = parsed(`"${inner}"`);
  return typeof value === 'string' ? value : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function closingQuote(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const character = text[i];
    if (character === '\\') i++;
    else if (character === '"') return i;
  }
  return -1;
}

/** The content of a chunk that holds nothing else. */
function onlyContent(chunk: unknown): string | undefined {
  if (!isObject(chunk)) return undefined;
  const choices = list(chunk.choices);
  const choice = choices?.length === 1 ? object(choices[0]) : undefined;
  const delta = object(choice?.delta);
  if (choice === undefined || delta === undefined) return undefined;
  for (const key in chunk) {
    if (key === 'choices' || CHUNK_NOISE.has(key)) continue;
    if (key === 'object' ? chunk[key] !== CHUNK_OBJECT : Boolean(chunk[key])) return undefined;
  }
  for (const key in choice) if (key !== 'delta' && choice[key]) return undefined;
  for (const key in delta) {
    if (key !== 'content' && key !== 'role' && delta[key]) return undefined;
  }
  return typeof delta.content === 'string' ? delta.content : undefined;
}

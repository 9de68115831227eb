/** Reads chunks that differ from the one before in their content alone, without a parse. */

import type { TextTemplate } from '../../../conversation/fast-text.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { isObject } from '../../../lib/json/json.ts';
import { list, object } from '../wire.ts';

/** Members whose value means nothing here. Any other must be empty in a chunk that is learnt. */
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

/** Characters that cannot stand in a JSON string as they are. */
const SPECIAL = /["\\\p{Cc}]/u;
const PROBE = 'probe';
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
// Chunks that could have been learnt and yet never match (random padding): then it is not worth it.
const MOST_MISSES = 4;

/**
 * Vendors send the same JSON for every piece of text. What stands before and behind the content of
 * one chunk is remembered; the next chunk with the same text around a valid JSON string has, by the
 * grammar of JSON, the same value but for that string.
 */
export class ContentSplice {
  #before = '';
  #behind = '';
  #event = '';
  #frame: TextTemplate | undefined;
  #misses = 0;
  #seen = false;

  /** The content of a chunk like the learnt one; undefined: it has to be parsed. */
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

  /** All content of the frames from `at` on that are each like the learnt one; undefined: none is. */
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
      let said: string | undefined;
      if (frames.startsWith(foot, end)) said = frames.slice(from, end);
      else {
        end = frames.indexOf(foot, from);
        if (end >= 0) said = unescaped(frames.slice(from, end));
      }
      if (said === undefined) break;
      content += said;
      to = end + foot.length;
    }
    return content === '' ? undefined : { content, to };
  }

  /** Remembers a parsed chunk when it says content and nothing else. */
  learn(data: string, event: string, chunk: JsonObject): void {
    if (this.#misses >= MOST_MISSES) return;
    const content = onlyContent(chunk);
    if (content === undefined || content === PROBE) return;
    if (!this.#seen) {
      // Whoever reads no further than to the first word (the byte lane) has no use for it.
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
    // Another string in this place changes the content, and so this place is the content's.
    if (onlyContent(parsed(before + PROBE + behind)) !== PROBE) return;
    this.#before = before;
    this.#behind = behind;
    this.#event = event;
    this.#frame = event === '' ? { head: `data: ${before}`, foot: `${behind}\n\n` } : undefined;
  }

  /** What stands around the content in a frame; undefined where frames of a run are not looked for. */
  get frame(): TextTemplate | undefined {
    return this.#frame;
  }
}

/** Where a JSON string's characters that stand for themselves end: at a quote, an escape, a control character. */
function plainEnd(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === BACKSLASH || code < SPACE) break;
  }
  return at;
}

/** The value of a JSON string without its quotes; undefined when it is none. */
function unescaped(inner: string): string | undefined {
  // A text that begins and ends with quotes parses only when it is one string.
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

/** The content of a chunk that says nothing else. */
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

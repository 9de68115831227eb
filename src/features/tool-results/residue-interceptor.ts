/** Removes executed-tool records from a streamed answer. Holds text that may begin a record until that is decided. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Interceptor } from '../feature.ts';
import { ENVELOPE_MARK, RECORD_KEYS } from './envelope.ts';
import { isEscaped, ObjectScan, recordsIn } from './residue.ts';

// The first key of a record, with or without escaped quotes. A brace followed by anything else begins no record.
const FIRST_KEY = new RegExp(`\\{\\s{0,64}\\\\?"(?:${RECORD_KEYS.join('|')})\\\\?"`, 'y');
/** Maximum length of a record's head: a brace, white space, a key and its quotes. */
const MAX_HEAD = 80;

const isRecordHead = (text: string, at: number): boolean => {
  FIRST_KEY.lastIndex = at;
  return FIRST_KEY.test(text);
};

/** May the end of the text be the beginning of a head? */
function mayBeHead(text: string, at: number): boolean {
  if (text.length - at > MAX_HEAD) return false;
  const rest = text.slice(at + 1).trimStart();
  if (rest === '' || rest === '\\') return true;
  const name = /^\\?"([a-z]*)(\\?)$/.exec(rest)?.[1];
  return name !== undefined && RECORD_KEYS.some((key) => key.startsWith(name));
}

/** An object that is longer than this and has no mark is ordinary text. */
const MAX_UNMARKED = 16_384;
/** Maximum white space after an opening fence, or before a closing one. */
const MAX_SPACE = 200;

/** An interceptor for one answer. Events without a suspicious brace pass unchanged. */
export function residueInterceptor(notes: Notes): Interceptor {
  let index = -1;
  let text = new ResidueFilter(notes);

  const deltaOf = (clean: string): StreamEvent[] =>
    clean === '' ? [] : [{ type: 'delta', index, text: clean }];

  return {
    event(event) {
      switch (event.type) {
        case 'block-start':
          index = event.head.type === 'text' ? event.index : -1;
          text = new ResidueFilter(notes);
          return event;
        case 'delta': {
          if (event.index !== index || text.passes(event.text)) return event;
          const idle = text.idle;
          const clean = text.push(event.text);
          return idle && text.idle && clean === event.text ? event : deltaOf(clean);
        }
        case 'block-stop':
          return event.index !== index || text.idle ? event : [...deltaOf(text.end()), event];
        default:
          return event;
      }
    },
    // The stream was cut inside a text block: held text that is no record still goes out.
    end: () => (text.idle ? [] : deltaOf(text.end())),
    fast: {
      passesText: (event) => event.index !== index || text.passes(event.text),
      watchedCharacters: () => (text.idle ? '{`~' : undefined),
    },
  };
}

/** Filters records out of the text of one block. Reads each character at most twice, however the text is cut. */
class ResidueFilter {
  /** Text that may begin a fence or a record's head; always short. */
  #head = '';
  /** A possible record with the fence before it. It begins at `#brace`. */
  #held: string[] = [];
  #brace = 0;
  #size = 0;
  #scan: ObjectScan | undefined;
  #hasMark = false;
  /** The end of the held text, where the mark may be cut. */
  #tail = '';
  /** A fence was removed with its record, so the closing line is removed too. */
  #fenced = false;
  /** Inside a code fence that was sent out; the next fence closes it. */
  #inFence = false;
  #out: string[] = [];

  constructor(private readonly notes: Notes) {}

  /** Nothing is held. */
  get idle(): boolean {
    return this.#head === '' && this.#scan === undefined && !this.#fenced;
  }

  /** Nothing is held, and nothing in this text begins a record or closes a fence. */
  passes(text: string): boolean {
    return this.idle && !/[{`~]/.test(text);
  }

  /** Takes a piece of text and returns what can go out. */
  push(text: string): string {
    const buffer = this.#head + text;
    this.#head = '';
    this.#read(buffer, false);
    return this.#takeOutput();
  }

  /** The text has ended; returns the rest. */
  end(): string {
    const head = this.#head;
    this.#head = '';
    if (head !== '') this.#read(head, true);
    if (this.#scan !== undefined) this.#close();
    this.#fenced = false;
    return this.#takeOutput();
  }

  #takeOutput(): string {
    const out = this.#out.join('');
    this.#out = [];
    return out;
  }

  #emit(text: string): void {
    if (text === '') return;
    this.#out.push(text);
    for (let at = text.indexOf('```'); at >= 0; at = text.indexOf('```', at + 3)) {
      this.#inFence = !this.#inFence;
    }
  }

  #read(all: string, last: boolean): void {
    let buffer = all;
    let at = 0;
    while (at < buffer.length) {
      if (this.#scan !== undefined) {
        const end = this.#scan.feed(buffer, at);
        this.#hold(buffer.slice(at, end < 0 ? undefined : end));
        if (end >= 0) {
          at = end;
          this.#close();
          continue;
        }
        if (this.#hasMark || this.#size < MAX_UNMARKED) return;
        // A record would have its mark by now. Only one that has just begun may still follow.
        buffer = this.#expired();
        at = 0;
        continue;
      }
      if (this.#fenced) {
        const behind = fenceEnd(buffer, at, last);
        if (behind < 0) {
          this.#head = buffer.slice(at);
          return;
        }
        at = behind;
        this.#fenced = false;
        continue;
      }
      at = this.#seek(buffer, at, last);
    }
  }

  /** Goes to the next possible record and returns the index from which to read on. */
  #seek(buffer: string, from: number, last: boolean): number {
    for (
      let brace = buffer.indexOf('{', from);
      brace >= 0;
      brace = buffer.indexOf('{', brace + 1)
    ) {
      const isHead = isRecordHead(buffer, brace);
      if (!isHead && (last || !mayBeHead(buffer, brace))) continue;
      const fence = fenceBefore(buffer, from, brace);
      this.#emit(buffer.slice(from, fence));
      if (!isHead) {
        this.#head = buffer.slice(fence);
        return buffer.length;
      }
      this.#scan = new ObjectScan(isEscaped(buffer, brace));
      this.#held = [buffer.slice(fence, brace)];
      this.#brace = brace - fence;
      this.#size = 0;
      this.#tail = '';
      this.#hasMark = false;
      return brace;
    }
    const end = last ? buffer.length : this.#fenceAtEnd(buffer, from);
    this.#emit(buffer.slice(from, end));
    this.#head = buffer.slice(end);
    return buffer.length;
  }

  #hold(text: string): void {
    this.#held.push(text);
    this.#size += text.length;
    if (this.#hasMark) return;
    this.#hasMark = (this.#tail + text).includes(ENVELOPE_MARK);
    this.#tail = (this.#tail + text.slice(-ENVELOPE_MARK.length)).slice(-ENVELOPE_MARK.length);
  }

  #takeHeld(): string {
    const held = this.#held.join('');
    this.#held = [];
    this.#scan = undefined;
    return held;
  }

  /** The object has ended, or the text broke off inside it. */
  #close(): void {
    const brace = this.#brace;
    const held = this.#takeHeld();
    const records = this.#hasMark ? recordsIn(held) : [];
    let from = 0;
    for (const { start, end } of records) {
      this.notes.add('tool_residue_removed', 'response');
      const isAll = start === brace;
      this.#emit(isAll ? '' : held.slice(from, start));
      from = end;
      this.#fenced = isAll && brace > 0;
    }
    this.#emit(held.slice(from));
  }

  /** Emits what is no record and returns the rest, which may begin one. */
  #expired(): string {
    const brace = this.#brace;
    const held = this.#takeHeld();
    let at = held.lastIndexOf('{');
    while (at > brace && !isRecordHead(held, at) && !mayBeHead(held, at)) {
      at = held.lastIndexOf('{', at - 1);
    }
    const end = at > brace ? at : held.length;
    this.#emit(held.slice(0, end));
    return held.slice(end);
  }

  /** The index of a fence at the end of the text, perhaps cut off; the text's length if there is none. */
  #fenceAtEnd(buffer: string, from: number): number {
    const base = Math.max(from, buffer.length - MAX_SPACE);
    const found = /(`{1,3}|~{1,3})[a-zA-Z]*\s*$/.exec(buffer.slice(base));
    if (found === null || found[0].includes('\n\n')) return buffer.length;
    const at = base + found.index;
    // A closing fence begins no record.
    const before = buffer.slice(from, at).split('```').length - 1;
    const closes = this.#inFence !== (before % 2 === 1);
    return closes && found[1]!.length === 3 ? buffer.length : at;
  }
}

/** The index of the fence right before the brace, or of the brace if there is none. */
function fenceBefore(buffer: string, from: number, brace: number): number {
  const base = Math.max(from, brace - MAX_SPACE);
  const found = /(?:```|~~~)[a-zA-Z]*\s*$/.exec(buffer.slice(base, brace));
  return found === null ? brace : base + found.index;
}

/** The index after the line that closes a fence here; `at` if none does; -1 if more text is needed. */
function fenceEnd(buffer: string, at: number, last: boolean): number {
  const text = buffer.slice(at, at + MAX_SPACE);
  const close = /^\s*(?:```|~~~)[ \t]*\n?/.exec(text);
  if (close !== null) return at + close[0].length;
  return !last && text.length < MAX_SPACE && /^\s*[`~]{0,2}$/.test(text) ? -1 : at;
}

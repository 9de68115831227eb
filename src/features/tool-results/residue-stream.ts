/** Keeps executed-tool records out of a streamed answer: holds what may begin one until it is clear. */

import type { StreamEvent } from '../../conversation/events.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Interceptor } from '../feature.ts';
import { ENVELOPE_MARK } from './envelope.ts';
import { isEscaped, ObjectScan, recordsIn } from './residue.ts';

// A record's first key, with or without escaped quotes. Anything else behind a brace is let through.
const KEYS = ['version', 'tool', 'arguments', 'executed', 'result', 'meta'];
const FIRST_KEY = new RegExp(`\\{\\s{0,64}\\\\?"(?:${KEYS.join('|')})\\\\?"`, 'y');
/** Characters of the longest head: a brace, whitespace, a key and its quotes. */
const LONGEST_HEAD = 80;

const begins = (text: string, at: number): boolean => {
  FIRST_KEY.lastIndex = at;
  return FIRST_KEY.test(text);
};

/** The beginning of such a head at the end of the text, cut off anywhere. */
function mayBegin(text: string, at: number): boolean {
  if (text.length - at > LONGEST_HEAD) return false;
  const rest = text.slice(at + 1).trimStart();
  if (rest === '' || rest === '\\') return true;
  const name = /^\\?"([a-z]*)(\\?)$/.exec(rest)?.[1];
  return name !== undefined && KEYS.some((key) => key.startsWith(name));
}

/** Characters after which an object without the mark is taken for what the model meant to say. */
const PATIENCE = 16_384;
/** Whitespace behind a fence, or in front of the one that closes it. */
const MOST_SPACE = 200;

/** An interceptor for one answer; texts without a suspicious brace pass as the very events they were. */
export function residueInterceptor(notes: Notes): Interceptor {
  let index = -1;
  let text = new CleanText(notes);

  const give = (clean: string): StreamEvent[] =>
    clean === '' ? [] : [{ type: 'delta', index, text: clean }];

  return {
    event(event) {
      switch (event.type) {
        case 'block-start':
          index = event.head.type === 'text' ? event.index : -1;
          text = new CleanText(notes);
          return event;
        case 'delta': {
          if (event.index !== index || text.passes(event.text)) return event;
          const idle = text.idle;
          const clean = text.push(event.text);
          return idle && text.idle && clean === event.text ? event : give(clean);
        }
        case 'block-stop':
          return event.index !== index || text.idle ? event : [...give(text.end()), event];
        default:
          return event;
      }
    },
    // The stream was cut inside a text block: what is certain no record was still said.
    end: () => (text.idle ? [] : give(text.end())),
    fast: {
      passesText: (event) => event.index !== index || text.passes(event.text),
      watchedCharacters: () => (text.idle ? '{`~' : undefined),
    },
  };
}

/** The text of one block without records; each character is read once or twice, however it is cut. */
class CleanText {
  readonly #notes: Notes;
  /** Text that may be the beginning of a fence or of a record's head; short. */
  #head = '';
  /** What may be a record, with the fence in front of it; `brace`: where it begins. */
  #held: string[] = [];
  #brace = 0;
  #size = 0;
  #scan: ObjectScan | undefined;
  #hasMark = false;
  /** The end of what is held, where the mark may be cut. */
  #tail = '';
  /** A fence was swallowed with its record: so is the line that closes it. */
  #fenced = false;
  /** Inside a code fence that was given out: the next fence closes it. */
  #inFence = false;
  #out: string[] = [];

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  /** Nothing is held. */
  get idle(): boolean {
    return this.#head === '' && this.#scan === undefined && !this.#fenced;
  }

  /** Nothing is held, and nothing of this begins a record or closes a fence. */
  passes(text: string): boolean {
    return this.idle && !/[{`~]/.test(text);
  }

  /** What is certain so far. */
  push(text: string): string {
    const buffer = this.#head + text;
    this.#head = '';
    this.#read(buffer, false);
    return this.#take();
  }

  /** The text is over: the rest of it. */
  end(): string {
    const head = this.#head;
    this.#head = '';
    if (head !== '') this.#read(head, true);
    if (this.#scan !== undefined) this.#close();
    this.#fenced = false;
    return this.#take();
  }

  #take(): string {
    const out = this.#out.join('');
    this.#out = [];
    return out;
  }

  #say(text: string): void {
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
        if (this.#hasMark || this.#size < PATIENCE) return;
        // A record has its mark by now. Only what has just begun may still be one.
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

  /** Goes on to the next record that may begin; where it is read on. */
  #seek(buffer: string, from: number, last: boolean): number {
    for (
      let brace = buffer.indexOf('{', from);
      brace >= 0;
      brace = buffer.indexOf('{', brace + 1)
    ) {
      const isHead = begins(buffer, brace);
      if (!isHead && (last || !mayBegin(buffer, brace))) continue;
      const fence = fenceBefore(buffer, from, brace);
      this.#say(buffer.slice(from, fence));
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
    this.#say(buffer.slice(from, end));
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

  #letGo(): string {
    const held = this.#held.join('');
    this.#held = [];
    this.#scan = undefined;
    return held;
  }

  /** The object is over, or broken off where the text ends. */
  #close(): void {
    const brace = this.#brace;
    const held = this.#letGo();
    const records = this.#hasMark ? recordsIn(held) : [];
    let from = 0;
    for (const { start, end } of records) {
      this.#notes.add('tool_residue_removed', 'response');
      const isAll = start === brace;
      this.#say(isAll ? '' : held.slice(from, start));
      from = end;
      this.#fenced = isAll && brace > 0;
    }
    this.#say(held.slice(from));
  }

  /** Gives out what is no record; the rest may be the beginning of one. */
  #expired(): string {
    const brace = this.#brace;
    const held = this.#letGo();
    let at = held.lastIndexOf('{');
    while (at > brace && !begins(held, at) && !mayBegin(held, at)) {
      at = held.lastIndexOf('{', at - 1);
    }
    const end = at > brace ? at : held.length;
    this.#say(held.slice(0, end));
    return held.slice(end);
  }

  /** Where a fence begins with which the text ends, perhaps cut off; its length where there is none. */
  #fenceAtEnd(buffer: string, from: number): number {
    const base = Math.max(from, buffer.length - MOST_SPACE);
    const found = /(`{1,3}|~{1,3})[a-zA-Z]*\s*$/.exec(buffer.slice(base));
    if (found === null || found[0].includes('\n\n')) return buffer.length;
    const at = base + found.index;
    // A fence that closes another one begins nothing.
    const before = buffer.slice(from, at).split('```').length - 1;
    const closes = this.#inFence !== (before % 2 === 1);
    return closes && found[1]!.length === 3 ? buffer.length : at;
  }
}

/** Where the fence begins that stands right in front of the brace, else the brace. */
function fenceBefore(buffer: string, from: number, brace: number): number {
  const base = Math.max(from, brace - MOST_SPACE);
  const found = /(?:```|~~~)[a-zA-Z]*\s*$/.exec(buffer.slice(base, brace));
  return found === null ? brace : base + found.index;
}

/** The index behind the line that closes a fence here; the place itself where none does; -1: wait. */
function fenceEnd(buffer: string, at: number, last: boolean): number {
  const text = buffer.slice(at, at + MOST_SPACE);
  const close = /^\s*(?:```|~~~)[ \t]*\n?/.exec(text);
  if (close !== null) return at + close[0].length;
  return !last && text.length < MOST_SPACE && /^\s*[`~]{0,2}$/.test(text) ? -1 : at;
}

/** Finds leaks in one text block as it streams: what may pass as it came, what is held, what takes its place. */

import { Block, type BlockState, type Opener } from './block.ts';
import { CodeMask, LEAKY_CHARACTERS } from './code-mask.ts';
import type { Lexicon } from './grammar.ts';
import type { Lexeme } from './lex.ts';
import { type Found, type OpeningRules, openingAt } from './openings.ts';
import { buildCalls, type RecoveredCall } from './raw-call.ts';

export type Channel = 'text' | 'reasoning';

/** Text that takes the place of what was held. */
export interface Segment {
  readonly channel: Channel;
  readonly text: string;
}

export interface Leak {
  readonly family: string;
  /** left: given up, the markup stays in the text. */
  readonly outcome: 'recovered' | 'removed' | 'left';
  readonly calls: readonly RecoveredCall[];
  /** The reply broke off within it. */
  readonly truncated: boolean;
  /** The name that was called, where it is none of the request's tools. */
  readonly unknown?: string;
}

/**
 * `same`: everything that was held may pass as it came; `held`: it has to wait; `changed`: the segments
 * take its place.
 */
export type Verdict = 'same' | 'held' | 'changed';

export interface ScanRules extends OpeningRules {
  /** Every word of the families in force; `lexicon` holds those that may begin a leak. */
  readonly all: Lexicon;
  /** The block's text is thinking until `</think>`, whose opener stood in the prompt. */
  readonly unopened: boolean;
}

/** A reply with more false starts than this is about markup: no more is looked for. */
const MOST_FAILURES = 64;
/** More text than this does not wait for the whitespace at its end. */
const MOST_SPACE = 1000;

/** As it is at the beginning of every block; never pushed. */
const UNTOUCHED = new CodeMask();

export class TextScanner {
  /** To be emitted, oldest first; the caller empties it. */
  segments: Segment[] = [];
  /** Found, oldest first; the caller empties it. */
  leaks: Leak[] = [];

  readonly #rules: ScanRules;
  readonly #base: Channel;
  readonly #mask = new CodeMask();
  #channel: Channel;
  /** A tag of the text's own switched the channel. */
  #switched = false;
  #hasSwitched = false;
  #block: Block | undefined;
  #opener: Opener | undefined;
  /** The block's text as it came, should it turn out to be none. */
  #raw: string[] = [];
  /** Text from a place on where a leak may begin. */
  #pending = '';
  /** Text that is no leak and has not been let go. */
  #clear = '';
  /** What was held is no longer what came: segments take its place. */
  #dirty = false;
  /** Whitespace at the end of what was emitted in place of what came. */
  #space = '';
  #cut = false;
  /** Something was said before in the reply; in this channel of this block. */
  #spoken: boolean;
  #said = false;
  #behindBlock = false;
  #failures = 0;
  #unopened: boolean;

  /** @param first nothing was said before in this reply */
  constructor(channel: Channel, rules: ScanRules, first: boolean) {
    this.#rules = rules;
    this.#base = channel;
    this.#channel = channel;
    this.#spoken = !first || channel === 'reasoning';
    this.#unopened = rules.unopened && first && channel === 'text';
  }

  push(text: string): Verdict {
    const block = this.#block;
    if (block !== undefined) {
      this.#raw.push(text);
      const state = block.push(text);
      if (state === 'more') this.#release();
      else this.#settle(state);
      return this.#verdict();
    }
    if (this.#pending === '' && this.#clear === '' && !this.#dirty) {
      const at = this.#mask.advance(text, 0, false);
      if (at === text.length && !this.#holds(text)) {
        this.#spoken = true;
        this.#said = true;
        this.#behindBlock = false;
        return 'same';
      }
      if (at < text.length) this.#flow(text, at, false);
      else this.#approve(text);
      return this.#verdict();
    }
    const buffer = this.#pending + text;
    this.#pending = '';
    this.#flow(buffer, 0, false);
    return this.#verdict();
  }

  /**
   * Is nothing held, and would nothing of this text begin a leak, or wait for what comes behind it?
   * Whitespace at its end would, had it come by itself.
   */
  passes(text: string): boolean {
    if (this.#busy || text.slice(-1).trim() === '') return false;
    return this.#mask.isPlain(text);
  }

  /** Would this text pass as the whole of a block, unless all text is thinking until a tag says otherwise? */
  static isPlain(text: string): boolean {
    return text.slice(-1).trim() !== '' && UNTOUCHED.isPlain(text);
  }

  /** Text without these characters that does not end in whitespace passes, now and then again. */
  minds(): string | undefined {
    return this.#busy || this.#mask.mayBeHeader ? undefined : LEAKY_CHARACTERS;
  }

  get #busy(): boolean {
    if (this.#block !== undefined || this.#pending !== '' || this.#clear !== '') return true;
    return this.#dirty || this.#unopened;
  }

  /** The block ends here. */
  finish(): Verdict {
    while (this.#block !== undefined || this.#pending !== '') {
      if (this.#block !== undefined) {
        this.#settle(this.#block.finish(), true);
        continue;
      }
      const pending = this.#pending;
      this.#pending = '';
      if (this.#isTail(pending)) {
        this.#cutHere();
        this.#leak('removed', [], familyOf(pending), true);
      } else this.#flow(pending, 0, true, true);
    }
    if (!this.#dirty) return 'same';
    this.#emit();
    this.#space = '';
    return 'changed';
  }

  /** Whose text it is that passes. */
  get channel(): Channel {
    return this.#channel;
  }

  /** Reads text that is in no block; the mask has read up to `at`. `past`: nothing begins there. */
  #flow(buffer: string, at: number, past: boolean, final = false): void {
    let from = 0;
    let i = at;
    let skip = past;
    for (;;) {
      i = this.#mask.advance(buffer, i, skip);
      skip = false;
      const before = buffer.slice(from, i);
      if (i >= buffer.length) {
        this.#approve(before);
        return;
      }
      const found = this.#found(buffer, i, before);
      if (found === 'partial' && !final) {
        this.#approve(before);
        this.#pending = buffer.slice(i);
        return;
      }
      if (found === undefined || found === 'partial') skip = true;
      else if (found.type === 'quoted') {
        this.#mask.quoteLine();
        skip = true;
      } else if (found.type === 'opener') {
        this.#approve(before);
        this.#openBlock(found.opener, buffer, i);
        return;
      } else if (this.#closer(found.lexeme, before)) {
        from = found.lexeme.end;
        i = from;
        this.#mask.jump();
      } else skip = true;
    }
  }

  #found(buffer: string, at: number, before: string): Found {
    if (this.#failures > MOST_FAILURES) return undefined;
    const { previous, lineStart } = this.#mask;
    const start = !this.#spoken && this.#clear.trim() === '' && before.trim() === '';
    return openingAt(buffer, at, { start, previous, lineStart }, this.#rules);
  }

  #openBlock(opener: Opener, buffer: string, at: number): void {
    this.#opener = opener;
    this.#raw = [buffer.slice(at)];
    const block = new Block(
      opener,
      this.#rules.all,
      (name) => this.#rules.tools.resolve(name) !== undefined,
    );
    this.#block = block;
    const rest = buffer.slice(opener.type === 'tag' ? opener.lexeme.end : at);
    const state = block.push(rest);
    if (state === 'more') this.#release();
    else this.#settle(state);
  }

  /** The block is a leak, whatever comes of it: what stood before it may go. */
  #release(): void {
    if (!this.#block!.committed || this.#opener!.type !== 'tag') return;
    if (this.#clear.trim() === '' && !this.#dirty) return;
    this.#dirty = true;
    this.#emit();
  }

  #settle(state: BlockState, final = false): void {
    const block = this.#block!;
    const opener = this.#opener!;
    this.#block = undefined;
    const raw = this.#raw;
    this.#raw = [];
    if (state === 'fail') {
      if (final && !block.hasJunk && this.#isLoneOpener(opener, raw)) {
        this.#cutHere();
        this.#leak('removed', [], block.family, true);
        return;
      }
      this.#failures++;
      if (block.committed) this.#leak('left', [], block.family, false);
      this.#flow(raw.join(''), 0, true, final);
      return;
    }
    const calls = block.calls.flatMap((call) => buildCalls(call, this.#rules.tools));
    this.#cutHere();
    if (block.channel !== undefined) this.#switch(block.channel, true);
    else {
      if (this.#switched && this.#base === 'text') this.#switch('text', false);
      const unknown = block.calls.find(
        ({ name }) => name && !this.#rules.tools.resolve(name),
      )?.name;
      const outcome = calls.length > 0 ? 'recovered' : 'removed';
      this.#leak(outcome, calls, block.family, block.truncated, unknown);
    }
    this.#behindBlock = true;
    this.#mask.jump();
    if (block.rest !== '') this.#flow(block.rest, 0, false, final);
  }

  #leak(
    outcome: Leak['outcome'],
    calls: readonly RecoveredCall[],
    family: string,
    truncated: boolean,
    unknown?: string,
  ): void {
    this.leaks.push({ family, outcome, calls, truncated, ...(unknown ? { unknown } : {}) });
  }

  /** Nothing but the opener, where the reply ends: cut off, unless a sentence speaks of it. */
  #isLoneOpener(opener: Opener, raw: readonly string[]): boolean {
    if (opener.type !== 'tag') return false;
    const text = raw.join('');
    if (opener.lexeme.word.setting === 'bare') return text.includes('to=functions.');
    return opener.lexeme.word.setting !== 'plain' || opener.lineStart;
  }

  /** The beginning of an opener, where the reply ends. */
  #isTail(pending: string): boolean {
    if (!/^[<[\]]/.test(pending)) return false;
    if (/^<\/?[|｜]/.test(pending)) return pending.length >= 4 && !/^<[|｜](?:im|e)/.test(pending);
    return pending.length >= 7 && this.#mask.lineStart;
  }

  /** A closer without its opener: swallowed behind a block, or where only models write it. */
  #closer(lexeme: Lexeme, before: string): boolean {
    const { role, setting, family } = lexeme.word;
    const cut = () => {
      this.#approve(before);
      this.#cutHere();
      return true;
    };
    if (role === 'channel') return this.#channelCloser(before, cut);
    if (this.#switched && role === 'stop') {
      cut();
      this.#switch(this.#base, false);
      return true;
    }
    if (this.#behindBlock && before.trim() === '') return cut();
    if (role === 'stop' && this.#hasSwitched) return cut();
    if (role === 'stop' || setting === 'plain') return false;
    cut();
    this.#leak('removed', [], family, false);
    return true;
  }

  #channelCloser(before: string, cut: () => boolean): boolean {
    if (this.#switched) {
      cut();
      this.#switch(this.#base, false);
      return true;
    }
    if (this.#base === 'reasoning') return false;
    if (this.#behindBlock && before.trim() === '') return cut();
    // `a </think> b` and `<think>a</think>` within a text speak of the tag.
    if (this.#spoken) {
      if (!this.#mask.lineStart) return false;
      cut();
      this.#leak('removed', [], 'think-tags', false);
      return true;
    }
    const thought = this.#clear + before;
    if (this.#mask.previous === 0x20 || thought.includes('<think')) return false;
    // Everything so far was thinking whose opener stood in the prompt.
    this.#approve(before);
    this.#dirty = true;
    this.#channel = 'reasoning';
    this.#emit();
    this.#unopened = false;
    this.#cut = true;
    this.#switch('text', false);
    return true;
  }

  /** Another channel begins; the whitespace between the two is nobody's. */
  #switch(channel: Channel, byTag: boolean): void {
    this.#channel = channel;
    this.#switched = byTag;
    this.#hasSwitched ||= byTag;
    this.#space = '';
    this.#said = false;
  }

  #approve(text: string): void {
    if (text === '') return;
    this.#clear += text;
    if (this.#behindBlock && text.trim() !== '') this.#behindBlock = false;
  }

  /** Something was taken out here. */
  #cutHere(): void {
    this.#dirty = true;
    this.#emit();
    this.#cut = true;
  }

  #verdict(): Verdict {
    if (this.#dirty) {
      if (this.#block === undefined) {
        this.#emit();
        if (this.#pending === '' && this.#space === '' && !this.#cut) this.#dirty = false;
      }
      return 'changed';
    }
    if (this.#block !== undefined || this.#pending !== '' || this.#holds(this.#clear))
      return 'held';
    if (this.#clear !== '') {
      this.#spoken = true;
      this.#said = true;
      this.#clear = '';
    }
    return 'same';
  }

  /** Whitespace waits for what comes behind it: in front of a call it is dropped. */
  #holds(text: string): boolean {
    if (this.#unopened) return true;
    const last = text.charCodeAt(text.length - 1);
    if (last > 0x20 || text.length > MOST_SPACE) return false;
    return last === 0x0a || text.trim() === '';
  }

  /** Lets the clear text go in place of what came, its end's whitespace kept back. */
  #emit(): void {
    const text = this.#clear;
    this.#clear = '';
    const body = text.trim();
    if (body === '') {
      if (!this.#cut || this.#space === '') this.#space += text;
      return;
    }
    const end = text.trimEnd();
    const lead = text.slice(0, text.length - text.trimStart().length);
    const gap = this.#cut ? this.#space || lead : this.#space + lead;
    const lone = this.#cut && !this.#said;
    this.segments.push({ channel: this.#channel, text: (lone ? '' : gap) + end.trimStart() });
    this.#space = text.slice(end.length);
    this.#cut = false;
    this.#spoken = true;
    this.#said = true;
  }
}

function familyOf(pending: string): string {
  if (pending.includes('DSML')) return 'dsml';
  if (pending.startsWith(']')) return 'minimax-m3';
  if (pending.startsWith('[')) return 'mistral';
  return /[｜▁]/.test(pending) ? 'deepseek' : 'unknown';
}

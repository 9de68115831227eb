/** Finds leaks in one streamed text block, and decides which text passes, waits or is replaced. */

import { type BlockState, LeakBlock, type Opener } from '../block/block.ts';
import type { Lexeme } from '../block/lex.ts';
import {
  CallRun,
  isCall,
  type Leak,
  leakIn,
  leakOf,
  leftInText,
  MAX_HELD,
  type RunPiece,
} from './call-run.ts';
import { CodeMask, LEAKY_CHARACTERS } from './code-mask.ts';
import {
  beginsOpener,
  familyOf,
  isLoneOpener,
  type OpeningMatch,
  openingAt,
  type ScanRules,
  type ScanVerdict,
  standsAmongWords,
} from './openings.ts';
import { type Channel, endsInSpace, isBlank, TextOut, type TextSegment } from './text-out.ts';

/** A reply with more false starts is about markup, so the search stops. */
const MAX_FAILURES = 64;
/** Maximum characters of false starts that are read twice. */
const MAX_REREAD = 1024 * 1024;
/** What a place costs where a closer stands, and one where a block is read; any other costs 1. */
const CLOSER_WORK = 16;
const BLOCK_WORK = 128;
/** The state at the beginning of every block; never changed. */
const UNTOUCHED = new CodeMask();

/** Text to read next. `past`: no leak begins at its first character. */
interface UnreadText {
  readonly text: string;
  readonly past: boolean;
}

const THINK_OPENER = /<(?:mm:|ifm\|)?think|\[THINK/;

/**
 * The meaning of a closer without an opener. `text`: the text mentions it; `wait`: the next character decides; `piece`: it
 * belongs to the run of calls; `last`: it belongs to the run, and after it the block's own channel continues; `stray`:
 * only models write it; `cut`: it belongs to the block before it; `back`: it ends the channel that a tag began; `lone`:
 * the end of thinking on a separate line; `thinking`: everything so far was thinking.
 */
type CloserMeaning =
  | 'text'
  | 'wait'
  | 'piece'
  | 'last'
  | 'stray'
  | 'cut'
  | 'back'
  | 'lone'
  | 'thinking';

export class TextScanner {
  /** Leaks found, oldest first; the caller empties the list. */
  leaks: Leak[] = [];
  readonly #out: TextOut;
  readonly #base: Channel;
  readonly #first: boolean;
  #mask = new CodeMask();
  #channel: Channel;
  /** A tag in the text switched the channel. */
  #switched = false;
  #hasSwitched = false;
  #block: LeakBlock | undefined;
  #opener: Opener | undefined;
  /** The block is at a position where markup is shown, not used. */
  #amongWords = false;
  /** The block's raw text, in case it turns out to be no leak. */
  #raw: string[] = [];
  #rawSize = 0;
  #run: CallRun | undefined;
  /** Text from a position at which a leak may begin. */
  #pending = '';
  #behindBlock = false;
  #failures = 0;
  #reread = 0;
  #unopened: boolean;

  /** @param first the reply had no text before */
  constructor(
    channel: Channel,
    private readonly rules: ScanRules,
    first: boolean,
  ) {
    this.#base = channel;
    this.#channel = channel;
    this.#first = first && channel === 'text';
    this.#out = new TextOut(!first || channel === 'reasoning');
    this.#unopened = rules.unopened && first && channel === 'text';
  }

  /** Segments to emit, oldest first. */
  takeSegments(): readonly TextSegment[] {
    return this.#out.take();
  }

  push(text: string): ScanVerdict {
    const block = this.#block;
    if (block !== undefined) {
      this.#raw.push(text);
      this.#rawSize += text.length;
      const state = block.push(text);
      if (state === 'more' && this.#rawSize > MAX_HELD) this.#tooLong();
      else if (state === 'more') this.#release();
      else this.#settleAll(state, false);
      return this.#verdict();
    }
    if (
      this.#run === undefined &&
      this.#pending === '' &&
      this.#out.clear === '' &&
      !this.#out.dirty
    ) {
      const at = this.#mask.advance(text, 0, false);
      if (at === text.length && !this.#holds(text)) {
        this.#out.passed(text);
        this.#behindBlock = false;
        return 'same';
      }
      if (at < text.length) this.#flow(text, at, false, false);
      else this.#approve(text);
      return this.#verdict();
    }
    const buffer = this.#pending + text;
    this.#pending = '';
    this.#flow(buffer, 0, false, false);
    return this.#verdict();
  }

  /**
   * Is nothing held, and would all of this text pass at once? Trailing white space would have to wait if it
   * came alone.
   */
  passes(text: string): boolean {
    if (this.#busy || text.slice(-1).trim() === '') return false;
    return this.#mask.isPlain(text);
  }

  /** Would this text pass as a whole block? Not valid while all text counts as thinking. */
  static isPlain(text: string): boolean {
    return text.slice(-1).trim() !== '' && UNTOUCHED.isPlain(text);
  }

  /** Text without these characters passes, unless it ends in white space. */
  watchedCharacters(): string | undefined {
    return this.#busy || this.#mask.mayBeHeader ? undefined : LEAKY_CHARACTERS;
  }

  get #busy(): boolean {
    if (this.#block !== undefined || this.#run !== undefined) return true;
    return this.#pending !== '' || this.#out.clear !== '' || this.#out.dirty || this.#unopened;
  }

  /** There was text outside calls. */
  get hasWords(): boolean {
    return this.#out.said || !this.#out.isBlank;
  }

  /** The block ends here. `open`: {@link decide} must be called. */
  finish(): ScanVerdict {
    while (this.#block !== undefined || this.#pending !== '') {
      if (this.#block !== undefined) {
        this.#settleAll(this.#block.finish(), true);
        continue;
      }
      const pending = this.#pending;
      this.#pending = '';
      if (this.#isTail(pending)) {
        this.#add({ raw: pending, leak: leakOf(familyOf(pending), this.#channel, true) });
      } else this.#flow(pending, 0, true, true);
    }
    if (this.#run === undefined) return this.#end();
    if (this.#run.tail !== '' && !this.#run.waits) {
      this.#quote();
      return this.#end();
    }
    return 'open';
  }

  /**
   * Decides on the calls at the end of the text. `stand`: only calls follow them in the reply. Otherwise they
   * are a quotation and stay in the text.
   */
  decide(stand: boolean): ScanVerdict {
    const run = this.#run;
    if (run === undefined) return this.#end();
    if (!stand) this.#quote();
    else {
      const last = run.pieces.findLastIndex(
        ({ raw, leak }) => leak !== undefined && this.rules.isQuotation(raw),
      );
      if (last >= 0) this.#quote(last + 1);
      if (this.#run !== undefined) this.#take(this.#run);
    }
    return this.#end();
  }

  #end(): ScanVerdict {
    if (!this.#out.dirty) return 'same';
    this.#out.emit(this.#channel);
    this.#out.dropSpace();
    return 'changed';
  }

  /** The channel of the text that passes. */
  get channel(): Channel {
    return this.#channel;
  }

  /** Reads text outside blocks; the mask has read up to `at`. `past`: no leak begins there. */
  #flow(text: string, at: number, past: boolean, final: boolean): void {
    let buffer = text;
    /** Text before this index is approved. */
    let from = 0;
    let i = at;
    let skip = past;
    /** `blank` is known up to this index. */
    let looked = 0;
    let blank = true;
    for (;;) {
      i = this.rules.search.left < 0 ? buffer.length : this.#mask.advance(buffer, i, skip);
      skip = false;
      if (i >= buffer.length) {
        this.#approve(buffer.slice(from));
        return;
      }
      blank &&= isBlank(buffer, looked, i);
      looked = i;
      const found = this.#found(buffer, i, blank);
      skip = found === undefined || (found === 'partial' && final);
      if (found === undefined || skip) continue;
      if (found !== 'partial' && found.type === 'quoted') {
        this.#mask.quoteLine();
        skip = true;
        continue;
      }
      if (found !== 'partial' && found.type === 'closer') {
        this.rules.search.left -= CLOSER_WORK;
        const before = buffer.slice(from, i);
        const is = this.#closerIs(found.lexeme, buffer, before, blank, final);
        if (is === 'wait') {
          this.#approve(before);
          this.#pending = buffer.slice(i);
          return;
        }
        if (is === 'text') {
          skip = true;
          continue;
        }
        const { end } = found.lexeme;
        this.#closer(found.lexeme, before, buffer.slice(i, end), is);
        from = i = looked = end;
        blank = true;
        this.#mask.jump();
        continue;
      }
      // The text before it may end a run. Then the position is read again with the restored mask.
      const wasRun = this.#run !== undefined;
      this.#approve(buffer.slice(from, i));
      from = i;
      blank = true;
      if (wasRun && this.#run === undefined) continue;
      if (found === 'partial') {
        this.#pending = buffer.slice(i);
        return;
      }
      if (this.#run !== undefined && this.#run.tail !== '') {
        this.#quote();
        continue;
      }
      const rest = this.#openBlock(found.opener, buffer, i);
      if (rest === undefined) return;
      buffer = rest.text;
      from = i = looked = 0;
      skip = rest.past;
    }
  }

  #found(buffer: string, at: number, blank: boolean): OpeningMatch {
    if (this.#failures > MAX_FAILURES || this.#reread > MAX_REREAD) return undefined;
    this.rules.search.left--;
    const { previous, lineStart } = this.#mask;
    const start = !this.#out.spoken && this.#run === undefined && this.#out.isBlank && blank;
    return openingAt(buffer, at, { start, previous, lineStart }, this.rules);
  }

  /** Opens a block. Returns the text after it if it ends at once. */
  #openBlock(opener: Opener, buffer: string, at: number): UnreadText | undefined {
    this.#opener = opener;
    this.rules.search.left -= BLOCK_WORK;
    this.#amongWords = this.#run === undefined && standsAmongWords(this.#mask, this.#out);
    this.#raw = [buffer.slice(at)];
    this.#rawSize = buffer.length - at;
    const block = new LeakBlock(opener, this.rules.all, {
      isTool: (name) => this.rules.tools.resolve(name) !== undefined,
      repairs: this.rules.repairs,
      search: this.rules.search,
    });
    this.#block = block;
    const rest = buffer.slice(opener.type === 'tag' ? opener.lexeme.end : at);
    const state = block.push(rest);
    if (state !== 'more') return this.#settle(state, false);
    this.#release();
    return undefined;
  }

  /** The block is a leak in any case, so the text before it may be sent. */
  #release(): void {
    if (!this.#block!.reading.committed || this.#opener!.type !== 'tag') return;
    if (this.#amongWords || this.#run !== undefined) return;
    if (this.#out.isBlank && !this.#out.dirty) return;
    this.#out.dirty = true;
    this.#out.emit(this.#channel);
  }

  /** The block has exceeded the limit of held text: it is text. */
  #tooLong(): void {
    const { family } = this.#block!.reading;
    const raw = this.#raw.join('');
    this.#block = undefined;
    this.#raw = [];
    this.#failures = MAX_FAILURES + 1;
    if (this.#run !== undefined) this.#quote();
    this.#stay(raw);
    this.leaks.push(leftInText(leakOf(family, this.#channel), 'unreadable'));
  }

  #settleAll(state: BlockState, final: boolean): void {
    const rest = this.#settle(state, final);
    if (rest !== undefined) this.#flow(rest.text, 0, rest.past, final);
  }

  /** Handles the end of a block. Returns the text to read next. */
  #settle(state: BlockState, final: boolean): UnreadText | undefined {
    const block = this.#block!;
    const { family, committed, channel, junk } = block.reading;
    const opener = this.#opener!;
    const raw = this.#raw.join('');
    this.#block = undefined;
    this.#raw = [];
    if (state === 'fail') {
      if (final && junk === 0 && !this.#amongWords && isLoneOpener(opener, raw)) {
        this.#add({ raw, leak: leakOf(family, this.#channel, true) });
        return undefined;
      }
      this.#failures++;
      this.#reread += raw.length;
      if (committed) this.leaks.push(leftInText(leakOf(family, this.#channel)));
      if (this.#run !== undefined) this.#quote();
      return { text: raw, past: true };
    }
    // Some grammars read the white space after a call to find its end; it belongs to what follows.
    const markup = raw.slice(0, raw.length - block.reading.rest.length).trimEnd();
    const rest = raw.slice(markup.length);
    const next = rest === '' ? undefined : { text: rest, past: false };
    if (channel !== undefined) {
      if (this.#run !== undefined) this.#quote();
      if (this.#amongWords) {
        this.#stay(markup);
        return next;
      }
      this.#out.cut(this.#channel);
      this.#switch(channel, true);
      this.#behindBlock = true;
      this.#mask.jump();
      return next;
    }
    const { leak, unreadable } = leakIn(block, this.rules, this.#channel);
    const isPair = block.isEmpty && this.#run === undefined && !this.#mask.lineStart;
    if (this.#amongWords || unreadable || isPair) {
      if (this.#run !== undefined) this.#quote();
      this.#stay(markup);
      if (unreadable) this.#failures++;
      if (unreadable) this.leaks.push(leftInText(leak, 'unreadable'));
      else if (isCall(leak)) this.leaks.push(leftInText(leak, 'quoted'));
      return next;
    }
    this.#add({ raw: markup, leak });
    this.#behindBlock = true;
    return next;
  }

  /** Adds a piece to the run, or begins a run with it. */
  #add(piece: RunPiece): void {
    if (this.#run === undefined) {
      const begins = this.#first && !this.#out.said && this.#out.isBlank;
      this.#run = new CallRun(this.#mask.copy(), begins && this.#channel === 'text');
    }
    const fits = this.#run.add(piece);
    this.#mask.jump();
    if (!fits) this.#quote();
  }

  /** The run, up to the piece at `end`, is a quotation and stays in the text. Later pieces are read again. */
  #quote(end?: number): void {
    const run = this.#run!;
    this.#run = undefined;
    this.#mask = run.mask;
    const pieces = end === undefined ? run.pieces : run.pieces.slice(0, end);
    for (const { raw, leak, ends, gap } of pieces) {
      if (ends) {
        this.#out.cut(this.#channel);
        this.#mask.jump();
        this.#switch(this.#base, false);
        continue;
      }
      this.#stay(raw, gap);
      if (leak !== undefined && isCall(leak)) this.leaks.push(leftInText(leak, 'quoted'));
    }
    if (end !== undefined && end < run.pieces.length) {
      const left = run.pieces.slice(end);
      if (left.some(({ leak }) => leak !== undefined)) {
        for (const piece of left) this.#add(piece);
        this.#run!.tail = run.tail;
        return;
      }
      for (const { raw, gap } of left) this.#stay(raw, gap);
    }
    if (run.tail !== '') this.#stay(run.tail, true);
  }

  /** Leaves markup in the text; with `words`, text around markup. */
  #stay(text: string, words = false): void {
    // Fences and quotation marks inside markup do not count for the mask.
    if (words) this.#mask.read(text);
    else this.#mask.jump();
    this.#keep(text);
  }

  /** The run consists of calls: removes them from the text. */
  #take(run: CallRun): void {
    this.#run = undefined;
    this.#out.cut(this.#channel);
    for (const { leak } of run.pieces) if (leak !== undefined) this.leaks.push(leak);
    const ended = run.pieces.some(({ ends }) => ends);
    if (ended || (this.#switched && this.#base === 'text')) this.#switch(this.#base, false);
    if (run.tail === '') return;
    const { raw, gap } = run.pieces.at(-1)!;
    if (gap) this.#keep(raw);
    this.#keep(run.tail);
  }

  /** Applies a closer without an opener. `before`: the text between the last markup and it. */
  #closer(lexeme: Lexeme, before: string, raw: string, is: CloserMeaning): void {
    if (is === 'text' || is === 'wait') return;
    if (is === 'thinking') this.#channel = 'reasoning';
    this.#approve(before);
    if (is === 'piece' || is === 'last') this.#add(is === 'last' ? { raw, ends: true } : { raw });
    else if (is === 'stray') {
      // It counts at the end of the reply; if text follows, it is text.
      if (standsAmongWords(this.#mask, this.#out)) this.#stay(raw);
      else this.#add({ raw, leak: leakOf(lexeme.word.family, this.#channel) });
    } else this.#out.cut(this.#channel);
    if (is === 'back') this.#switch(this.#base, false);
    if (is === 'lone') this.leaks.push(leakOf('think-tags', this.#channel));
    if (is === 'thinking') {
      this.#unopened = false;
      this.#switch('text', false);
    }
  }

  /** The meaning of a closer without an opener. `blank`: only white space stands before it. */
  #closerIs(
    { word: { role, notation }, end }: Lexeme,
    text: string,
    before: string,
    blank: boolean,
    final: boolean,
  ): CloserMeaning {
    const run = this.#run;
    if (run !== undefined && blank && run.tail === '') {
      if (this.#switched && (role === 'channel' || role === 'stop')) return 'last';
      return role === 'channel' ? 'text' : 'piece';
    }
    if (this.#switched && (role === 'channel' || role === 'stop')) return 'back';
    const isChannel = role === 'channel';
    if (isChannel && (this.#base === 'reasoning' || run !== undefined)) return 'text';
    if (this.#behindBlock && blank) return 'cut';
    if (isChannel) return this.#channelCloser(text, end, before, final);
    if (role === 'stop' && this.#hasSwitched) return 'cut';
    if (role === 'stop' || notation === 'plain' || run !== undefined) return 'text';
    return 'stray';
  }

  /** `</think>` without its opener, and with text before it. */
  #channelCloser(text: string, end: number, before: string, final: boolean): CloserMeaning {
    const out = this.#out;
    // `a </think> b` and `<think>a</think>` inside a text mention the tag.
    if (out.spoken && !this.#mask.lineStart) return 'text';
    const atEnd = end === text.length;
    if (atEnd && !final) return 'wait';
    const next = text.charCodeAt(end);
    if (next === 0x20) return 'text';
    if (out.spoken) return !atEnd && next !== 0x0a && next !== 0x0d ? 'text' : 'lone';
    if (this.#mask.previous === 0x20) return 'text';
    out.namesThinking ||= THINK_OPENER.test(before) || THINK_OPENER.test(out.clear);
    // Otherwise everything so far was thinking whose opening tag was in the prompt.
    return out.namesThinking ? 'text' : 'thinking';
  }

  /** Another channel begins; white space between the two is dropped. */
  #switch(channel: Channel, byTag: boolean): void {
    this.#channel = channel;
    this.#switched = byTag;
    this.#hasSwitched ||= byTag;
    this.#out.begin();
  }

  /** Accepts text that the mask has read and that is no markup. */
  #approve(text: string): void {
    if (text === '') return;
    if (this.#run === undefined) this.#keep(text);
    else if (!this.#run.follow(text)) this.#quote();
  }

  /** Adds text to the output. */
  #keep(text: string): void {
    if (this.#out.keep(text)) this.#behindBlock = false;
  }

  #verdict(): ScanVerdict {
    if (this.#out.dirty) {
      if (this.#block === undefined) {
        this.#out.emit(this.#channel);
        const waits = this.#pending !== '' || this.#run !== undefined;
        if (!waits && this.#out.settled) this.#out.dirty = false;
      }
      return 'changed';
    }
    const waits = this.#block !== undefined || this.#run !== undefined || this.#pending !== '';
    if (waits || this.#holds(this.#out.clear)) return 'held';
    this.#out.passedAll();
    return 'same';
  }

  /** White space waits for what follows: before a call it is dropped. */
  #holds(text: string): boolean {
    if (this.#unopened) return true;
    return endsInSpace(text);
  }

  /** Is the end of the reply the beginning of an opener? */
  #isTail(pending: string): boolean {
    if (this.#run === undefined && standsAmongWords(this.#mask, this.#out)) return false;
    return beginsOpener(pending, this.#mask.lineStart);
  }
}

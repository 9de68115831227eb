/** The text of one block on its way out: what is clear and waits, and what takes the place of what came. */

import { type Channel, isBlank } from './call-run.ts';

/** Text that takes the place of what was held. */
export interface TextSegment {
  readonly channel: Channel;
  readonly text: string;
}

/** More text than this does not wait for the whitespace at its end. */
const MAX_SPACE = 1000;

/** Does the text end in whitespace that should wait for what comes behind it? */
export function endsInSpace(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  if (last > 0x20 || text.length > MAX_SPACE) return false;
  return last === 0x0a || text.trim() === '';
}

export class TextOut {
  /** Text that is no leak and has not been let go. */
  clear = '';
  /** There is nothing but whitespace in it. */
  isBlank = true;
  /** The last text that was no whitespace; '' behind markup that was taken out. */
  words = '';
  /** The text that is clear speaks of `<think>`. */
  namesThinking = false;
  /** What was held is no longer what came: segments take its place. */
  dirty = false;
  /** Something was said before in the reply; in this channel of this block. */
  spoken: boolean;
  said = false;
  /** Whitespace at the end of what was emitted in place of what came. */
  #space = '';
  #cut = false;
  #segments: TextSegment[] = [];

  constructor(spoken: boolean) {
    this.spoken = spoken;
  }

  /** What is to be emitted, oldest first. */
  take(): readonly TextSegment[] {
    const segments = this.#segments;
    this.#segments = [];
    return segments;
  }

  /** No whitespace and no cut waits for what comes behind it. */
  get settled(): boolean {
    return this.#space === '' && !this.#cut;
  }

  /** Text behind what is clear. True: there are words in it. */
  keep(text: string): boolean {
    this.clear += text;
    if (isBlank(text, 0, text.length)) return false;
    this.isBlank = false;
    this.words = text;
    return true;
  }

  /** This text went out as it came. */
  passed(text: string): void {
    this.spoken = true;
    this.said = true;
    this.words = text;
  }

  /** All that was clear goes out as it came. */
  passedAll(): void {
    if (this.clear === '') return;
    this.spoken = true;
    this.said = true;
    this.clear = '';
    this.isBlank = true;
  }

  /** Something was taken out here. */
  cut(channel: Channel): void {
    this.dirty = true;
    this.emit(channel);
    this.#cut = true;
    this.words = '';
  }

  /** Another channel begins; the whitespace between the two is nobody's. */
  begin(): void {
    this.#space = '';
    this.said = false;
  }

  /** The end: nobody waits for what comes behind the whitespace. */
  dropSpace(): void {
    this.#space = '';
  }

  /** Lets the clear text go in place of what came, its end's whitespace kept back. */
  emit(channel: Channel): void {
    const text = this.clear;
    this.clear = '';
    this.isBlank = true;
    const body = text.trim();
    if (body === '') {
      if (!this.#cut || this.#space === '') this.#space += text;
      return;
    }
    const end = text.trimEnd();
    const lead = text.slice(0, text.length - text.trimStart().length);
    const gap = this.#cut ? this.#space || lead : this.#space + lead;
    const lone = this.#cut && !this.said;
    this.#segments.push({ channel, text: (lone ? '' : gap) + end.trimStart() });
    this.#space = text.slice(end.length);
    this.#cut = false;
    this.spoken = true;
    this.said = true;
  }
}

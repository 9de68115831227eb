/** Output text of one block: text that waits, and segments that replace what came. */

export type Channel = 'text' | 'reasoning';

/** Text that replaces held text. */
export interface TextSegment {
  readonly channel: Channel;
  readonly text: string;
}

/** Longer text does not wait because of its trailing white space. */
const MAX_SPACE = 1000;

/** Is there only white space from `from` to `end`? */
export function isBlank(text: string, from: number, end: number): boolean {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x20 || (code >= 0x09 && code <= 0x0d)) continue;
    if (code < 0xa0 || text[at]!.trim() !== '') return false;
  }
  return true;
}

/** Does the text end in white space that has to wait for what follows? */
export function endsInSpace(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  if (last > 0x20 || text.length > MAX_SPACE) return false;
  return last === 0x0a || text.trim() === '';
}

export class TextOut {
  /** Text that is no leak and is not sent yet. */
  clear = '';
  /** `clear` is only white space. */
  isBlank = true;
  /** The last text that was not white space; '' after removed markup. */
  words = '';
  /** `clear` mentions an opening tag of thinking. */
  namesThinking = false;
  /** Held text was changed, so segments replace it. */
  dirty = false;
  said = false;
  /** White space at the end of the last segment. */
  #space = '';
  #cut = false;
  #segments: TextSegment[] = [];

  constructor(
    /** `spoken`: the reply had text before; `said`: this channel of this block had. */
    public spoken: boolean,
  ) {}

  /** Segments to emit, oldest first. */
  take(): readonly TextSegment[] {
    const segments = this.#segments;
    this.#segments = [];
    return segments;
  }

  /** Neither white space nor a cut waits for what follows. */
  get settled(): boolean {
    return this.#space === '' && !this.#cut;
  }

  /** Adds text to `clear`. True if it is not only white space. */
  keep(text: string): boolean {
    this.clear += text;
    if (isBlank(text, 0, text.length)) return false;
    this.isBlank = false;
    this.words = text;
    return true;
  }

  /** This text was sent unchanged. */
  passed(text: string): void {
    this.spoken = true;
    this.said = true;
    this.words = text;
  }

  /** All of `clear` is sent unchanged. */
  passedAll(): void {
    if (this.clear === '') return;
    this.spoken = true;
    this.said = true;
    this.clear = '';
    this.isBlank = true;
  }

  /** Markup was removed here. */
  cut(channel: Channel): void {
    this.dirty = true;
    this.emit(channel);
    this.#cut = true;
    this.words = '';
  }

  /** Another channel begins; white space between the two is dropped. */
  begin(): void {
    this.#space = '';
    this.said = false;
  }

  /** The end: trailing white space is dropped. */
  dropSpace(): void {
    this.#space = '';
  }

  /** Emits `clear` as a segment, without its trailing white space. */
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

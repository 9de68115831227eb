/** Shortcuts for plain streamed text: what a codec or an interceptor may offer so that most text is not read piece by piece. */

import { plainEnd } from '../lib/json/json-template.ts';
import type { DeltaEvent } from './events.ts';

/*
 * Nothing here changes what a stream says. A gateway that never looks at `fast` gives the same bytes
 * and the same events, only slower; a property test compares the two.
 */

/** Several frames of text read as one piece. */
export interface TextRun {
  readonly event: DeltaEvent;
  /** Where the last of the frames ends in the string that was searched. */
  readonly to: number;
}

/**
 * The form of a frame that holds one piece of the open text block: `head`, then the text, then `foot`
 * with the blank line. The text has at least one character and no quote, backslash or control character.
 */
export interface TextTemplate {
  readonly head: string;
  readonly foot: string;
}

/** A template of incoming frames; their text belongs to the block of this index. */
export interface DecodedTextTemplate extends TextTemplate {
  readonly index: number;
}

export interface FastDecoder {
  /**
   * The frames from `at` on that each hold one more piece of the open text block and nothing else,
   * as one piece. Undefined: no such frame is found without decoding it. Changes nothing in the decoder that
   * `push` of the same frames would not change in the same way.
   * @param frames whole frames with LF lines, blank lines included
   */
  textRun?(frames: string, at: number): TextRun | undefined;
  /**
   * A frame of this form holds one more piece of the open text block and nothing else. Undefined: no
   * form is known. Gives the same object for as long as the form is the same.
   */
  textTemplate?(): DecodedTextTemplate | undefined;
}

export interface FastEncoder {
  /** As `event`, for a piece of text that the client gets as the vendor's bytes: no text is made. */
  skipText(event: DeltaEvent): void;
  /**
   * The form of what `event` gives for every piece of the open text block, where it differs in the text
   * alone and `skipText` keeps the encoder's state. Undefined: there is none. Gives the same object for
   * as long as the form is the same.
   */
  textTemplate?(): TextTemplate | undefined;
}

export interface FastInterceptor {
  /**
   * Would `event` return every piece of this text as it is, however it is cut? Changes nothing. If true,
   * `event` gets the text as one piece. Left out: the text has to come piece by piece.
   */
  passesText?(event: DeltaEvent): boolean;
  /**
   * The characters that matter in the open text block. Text without them that does not end in whitespace
   * passes as {@link passesText} says, and `event` may get it later, joined. Undefined (or left out): all
   * characters matter.
   */
  watchedCharacters?(): string | undefined;
  /**
   * Asked before the events of a whole reply that holds nothing but these texts: would every event be
   * returned as it is, without any effect? Changes nothing. If true, the interceptor gets none of them.
   * Left out: it gets them.
   */
  ignoresTexts?(texts: readonly string[]): boolean;
}

/** For an interceptor that never acts on text. */
export const IGNORES_TEXT: FastInterceptor = {
  passesText: () => true,
  watchedCharacters: () => '',
  ignoresTexts: () => true,
};

/** A run, and the text of each of its frames. */
export interface PlainRun extends TextRun {
  readonly pieces: readonly string[];
}

/**
 * The frames from `at` on that have this form; undefined: there are none.
 * @param frames whole frames with LF lines, blank lines included
 */
export function plainRun(
  frames: string,
  at: number,
  { head, foot, index }: DecodedTextTemplate,
): PlainRun | undefined {
  const pieces: string[] = [];
  let to = at;
  while (frames.startsWith(head, to)) {
    const from = to + head.length;
    const end = plainEnd(frames, from);
    if (end === from || !frames.startsWith(foot, end)) break;
    pieces.push(frames.slice(from, end));
    to = end + foot.length;
  }
  if (pieces.length === 0) return undefined;
  return { event: { type: 'delta', index, text: pieces.join('') }, to, pieces };
}

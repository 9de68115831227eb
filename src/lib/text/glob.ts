/** Globs over names and texts: `*` is any text, `?` one character; with or without regard to case. */

/** A test for one pattern; case does not matter. Its work grows with the text, however many stars the pattern has. */
export function globTest(pattern: string): (text: string) => boolean {
  const wanted = pattern.toLowerCase();
  if (/^\*+$/.test(wanted)) return () => true;
  if (!isGlob(wanted)) return (text) => lowered(text) === wanted;
  const pieces = wanted.split('*').map(pieceOf);
  // One piece alone has no star: the text is as long as it is.
  if (pieces.length === 1) return (text) => isAt(pieces[0]!, lowered(text), 0, true);
  return (text) => matches(pieces, lowered(text));
}

/** A test for any of several patterns; case does not matter. */
export function anyGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map(globTest);
  return (text) => tests.some((test) => test(text));
}

/** A test for one pattern that tells upper and lower case apart; `?` is one code point. */
export function exactGlobTest(pattern: string): (text: string) => boolean {
  if (/^\*+$/.test(pattern)) return () => true;
  if (!isGlob(pattern)) return (text) => text === pattern;
  const stem = pattern.slice(0, -1);
  if (pattern.endsWith('*') && !isGlob(stem)) return (text) => text.startsWith(stem);
  const wanted = [...pattern];
  return (text) => walks(wanted, [...text]);
}

/** A test for any of several patterns as {@link exactGlobTest}. */
export function anyExactGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map(exactGlobTest);
  return (text) => tests.some((test) => test(text));
}

/** Walks both texts, and goes back to the last star only: its work is at most the product of their lengths. */
function walks(pattern: readonly string[], text: readonly string[]): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let i = 0; i < text.length; ) {
    if (pattern[at] === '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++resume;
    } else return false;
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}

export const isGlob = (name: string): boolean => /[*?]/.test(name);

// Many patterns are tested on one text: a long text is converted to lower case only once.
const LONG = 256;
let lastText = '';
let lastLowered = '';

function lowered(text: string): string {
  if (text.length < LONG) return text.toLowerCase();
  if (text !== lastText) {
    lastText = text;
    lastLowered = text.toLowerCase();
  }
  return lastLowered;
}

/** The part of a pattern between two stars. */
interface Piece {
  readonly text: string;
  /** Its longest part without `?`, which is searched for, and the offset of that; '' when there is none. */
  readonly anchor: string;
  readonly anchorAt: number;
}

function pieceOf(text: string): Piece {
  let anchor = '';
  let anchorAt = 0;
  let at = 0;
  for (const part of text.split('?')) {
    if (part.length > anchor.length) [anchor, anchorAt] = [part, at];
    at += part.length + 1;
  }
  return { text, anchor, anchorAt };
}

/** Whether a piece matches at this offset of the text; with `whole`, up to the end of the text. */
function isAt({ text: piece, anchor }: Piece, text: string, at: number, whole = false): boolean {
  if (at < 0 || at + piece.length > text.length) return false;
  if (whole && at + piece.length !== text.length) return false;
  if (anchor.length === piece.length) return text.startsWith(piece, at);
  for (let i = 0; i < piece.length; i++) {
    if (piece[i] !== '?' && piece[i] !== text[at + i]) return false;
  }
  return true;
}

/** The first offset from `from` on where a piece matches; -1 when there is none. */
function find(piece: Piece, text: string, from: number): number {
  const {
    anchor,
    anchorAt,
    text: { length },
  } = piece;
  if (anchor === '') return from + length <= text.length ? from : -1;
  let at = text.indexOf(anchor, from + anchorAt);
  while (at >= 0) {
    if (isAt(piece, text, at - anchorAt)) return at - anchorAt;
    at = text.indexOf(anchor, at + 1);
  }
  return -1;
}

// The first piece matches at the beginning and the last at the end; each one between as far left as possible.
function matches(pieces: readonly Piece[], text: string): boolean {
  const first = pieces[0]!;
  const last = pieces.at(-1)!;
  const end = text.length - last.text.length;
  if (end < first.text.length || !isAt(first, text, 0) || !isAt(last, text, end)) return false;
  let from = first.text.length;
  for (let i = 1; i < pieces.length - 1; i++) {
    const at = find(pieces[i]!, text, from);
    if (at < 0) return false;
    from = at + pieces[i]!.text.length;
  }
  return from <= end;
}

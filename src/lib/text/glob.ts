/** Globs over names and texts: `*` is any text, `?` one character (code point); with or without regard to case. */

/** A test for one pattern; case does not matter. Its work grows with the text, however many stars the pattern has. */
export const globTest = (pattern: string): ((text: string) => boolean) =>
  testOf(pattern.toLowerCase(), lowered);

/** @param cased what of a text is compared with the pattern */
function testOf(pattern: string, cased: (text: string) => string): (text: string) => boolean {
  if (/^\*+$/.test(pattern)) return () => true;
  if (!isGlob(pattern)) return (text) => cased(text) === pattern;
  const pieces = pattern.split('*').map(pieceOf);
  if (!pattern.includes('?')) return (text) => matches(pieces, cased(text));
  const wide = widened(pattern).replaceAll('\udc00*', '*').replaceAll('\udc00?', '??');
  const widePieces = wide.split('*').map(pieceOf);
  return (text) =>
    PAIR.test(text) ? matches(widePieces, widened(cased(text))) : matches(pieces, cased(text));
}

const PAIR = /[\ud800-\udfff]/;

/** Each character as two units, so that `?` is one character, and not half of one. No text begins inside of a character. */
const widened = (text: string): string =>
  Array.from(text, (character) => (character.length === 2 ? character : `\udc00${character}`)).join(
    '',
  );

/** A test for any of several patterns; case does not matter. */
export function anyGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map(globTest);
  return (text) => tests.some((test) => test(text));
}

/** A test for any of several patterns; upper and lower case differ. */
export function anyExactGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map((pattern) => testOf(pattern, (text) => text));
  return (text) => tests.some((test) => test(text));
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
  // One piece alone has no star: the text is as long as it is.
  if (pieces.length === 1) return isAt(first, text, 0, true);
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

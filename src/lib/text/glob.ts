/** Globs over names and texts: `*` is any text, `?` one character, case does not matter. */

/** A test for one pattern. Its work grows with the text, however many stars the pattern has. */
export function globTest(pattern: string): (text: string) => boolean {
  const wanted = pattern.toLowerCase();
  if (/^\*+$/.test(wanted)) return () => true;
  if (!isGlob(wanted)) return (text) => lowered(text) === wanted;
  const pieces = wanted.split('*').map(pieceOf);
  // One piece alone has no star: the text is as long as it is.
  if (pieces.length === 1) return (text) => isAt(pieces[0]!, lowered(text), 0, true);
  return (text) => matches(pieces, lowered(text));
}

/** A test for any of several patterns. */
export function anyGlob(patterns: readonly string[]): (text: string) => boolean {
  const tests = patterns.map(globTest);
  return (text) => tests.some((test) => test(text));
}

export const isGlob = (name: string): boolean => /[*?]/.test(name);

// Many patterns are held against one text: a long one is put in small letters once.
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

/** What stands between two stars. */
interface Piece {
  readonly text: string;
  /** Its longest part without `?`, which is searched for, and where that begins; '' where there is none. */
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

/** Whether a piece stands at this place of the text; with `whole`, up to the text's end. */
function isAt({ text: piece, anchor }: Piece, text: string, at: number, whole = false): boolean {
  if (at < 0 || at + piece.length > text.length) return false;
  if (whole && at + piece.length !== text.length) return false;
  if (anchor.length === piece.length) return text.startsWith(piece, at);
  for (let i = 0; i < piece.length; i++) {
    if (piece[i] !== '?' && piece[i] !== text[at + i]) return false;
  }
  return true;
}

/** The first place from `from` on where a piece stands; -1 when there is none. */
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

// The first piece begins the text and the last one ends it; each one between stands as far left as it can.
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

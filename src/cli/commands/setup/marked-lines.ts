/** Adds a marked block of lines to a text file and takes it out again; lines that it replaces become comments meanwhile. */

export const OPEN = '# >>> hopgate setup';
export const CLOSE = '# <<< hopgate setup';
/** Marks the user's lines that are disabled while the block is there; removing the block restores them. */
export const KEPT = '#~hopgate~ ';
/** At the end of the opening line: the line break before it belongs to the block. */
const BROKEN = ' (with the line break before)';

/** Whole lines of a text: offsets, the last line break included. */
export interface LineRange {
  readonly start: number;
  readonly end: number;
}

export interface MarkedBlock {
  /** Name of the client, for the words that say how to remove the block. */
  readonly client: string;
  readonly lines: readonly string[];
  /** Where it goes: the start of a line, or the end of the text. */
  readonly at: number;
  /** Lines that it replaces, in order and apart from each other. */
  readonly disabled: readonly LineRange[];
}

export const linesOf = (text: string): readonly string[] =>
  text === '' ? [] : text.split(/(?<=\n)/);

export const lineBreakOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

/** The lines as comments that {@link withoutBlock} restores. */
export const disabledLines = (text: string): string =>
  linesOf(text)
    .map((line) => KEPT + line)
    .join('');

/** The range of lines that holds the characters from `start` to before `end`. */
export function lineRange(text: string, start: number, end: number): LineRange {
  const last = text.indexOf('\n', Math.max(start, end - 1));
  return { start: text.lastIndexOf('\n', start - 1) + 1, end: last < 0 ? text.length : last + 1 };
}

/** The text (without a byte order mark) with the block. */
export function withBlock(text: string, { client, lines, at, disabled }: MarkedBlock): string {
  const eol = lineBreakOf(text);
  const part = (from: number, to: number) => {
    let out = '';
    let done = from;
    for (const { start, end } of disabled) {
      if (start < from || end > to) continue;
      out += text.slice(done, start) + disabledLines(text.slice(start, end));
      done = end;
    }
    return out + text.slice(done, to);
  };
  const before = part(0, at);
  const broken = before !== '' && !before.endsWith('\n');
  const title = `${OPEN}: "hopgate setup ${client} --revert" takes this away`;
  const block = [broken ? title + BROKEN : title, ...lines, CLOSE, ''].join(eol);
  return before + (broken ? eol : '') + block + part(at, text.length);
}

/** The text as it was before {@link withBlock}. @throws Error when a closing mark is missing */
export function withoutBlock(text: string): string {
  const out: string[] = [];
  let inside = false;
  let broken = false;
  for (const line of linesOf(text)) {
    if (line.startsWith(OPEN)) {
      inside = true;
      broken = line.trimEnd().endsWith(BROKEN);
    } else if (inside && line.startsWith(CLOSE)) inside = false;
    else if (!inside) {
      // With more behind the block, its line break is needed.
      broken = false;
      out.push(line.startsWith(KEPT) ? line.slice(KEPT.length) : line);
    }
  }
  if (inside) throw new Error(`the line "${CLOSE}" that ends the block of hopgate is missing`);
  const left = out.join('');
  return broken ? left.replace(/\r?\n$/, '') : left;
}

/** Applies an edit to a text without its byte order mark, which stays. */
export function pastMark(text: string, edit: (text: string) => string): string {
  return text.startsWith('\uFEFF') ? `\uFEFF${edit(text.slice(1))}` : edit(text);
}

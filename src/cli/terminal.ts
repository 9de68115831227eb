/** Prints text for people: colours, tables, wrapped lines, plurals. */

import { styleText } from 'node:util';
import { withoutControls } from '../lib/text/printable-text.ts';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export interface Terminal {
  /** Characters in a line of prose, at most 100. */
  readonly width: number;
  /** Characters in a line of the terminal; undefined for other outputs, where nothing needs to fit. */
  readonly columns: number | undefined;
  paint(style: Style, text: string): string;
  line(text?: string): void;
}

/** A terminal on an output. Without `colour` only plain text is written. */
export function createTerminal(
  write: (text: string) => void,
  options: { readonly colour: boolean; readonly columns?: number; readonly tty?: boolean },
): Terminal {
  return {
    width: Math.max(20, Math.min(options.columns ?? 100, 100)),
    columns: options.tty === true ? options.columns : undefined,
    paint: (style, text) =>
      options.colour ? styleText(style, text, { validateStream: false }) : text,
    line: (text = '') => write(`${obeyed(text, options.colour)}\n`),
  };
}

// What follows the escape in the styles above, which only `paint` writes, where there are colours.
const STYLE = /^\[(?:1|2|22|3[1236]|39)m/;

/**
 * A line as a terminal may get it: what others wrote can neither move its cursor nor turn text around. The escapes are
 * those of JSON, so that a line of JSON says the same.
 */
function obeyed(text: string, colour: boolean): string {
  if (!colour) return withoutControls(text);
  const [first = '', ...parts] = text.split('\u001b');
  const shown = parts.map(
    (part) => (STYLE.test(part) ? '\u001b' : '\\u001b') + withoutControls(part),
  );
  return withoutControls(first) + shown.join('');
}

/** Columns that a text takes; escapes take none, wide characters two. */
export const widthOf = (text: string) => Bun.stringWidth(text);

const gap = (text: string, width: number) => ' '.repeat(Math.max(0, width - widthOf(text)));
const pad = (text: string, width: number) => text + gap(text, width);
const padLeft = (text: string, width: number) => gap(text, width) + text;

/** A word, or a Chinese character, with the marks that stand before and behind it. */
const WRAPPED =
  /[（“]*(?:[\p{sc=Han}]|[^\s\p{sc=Han}（“，。；：、！？）”]+)?[，。；：、！？）”]*/gu;

/**
 * Wraps words into lines of at most `width` columns, indented by `indent` spaces; a longer word gets its own line.
 * Chinese is wrapped between its characters.
 */
export function wrap(text: string, width: number, indent = 0): string[] {
  const space = ' '.repeat(indent);
  const lines: string[] = [];
  let line = '';
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WRAPPED)) {
    if (word === '') continue;
    const gap = line !== '' && index > end ? ' ' : '';
    end = index + word.length;
    if (line !== '' && widthOf(line) + gap.length + widthOf(word) > width - indent) {
      lines.push(space + line);
      line = word;
    } else line += gap + word;
  }
  if (line !== '' || lines.length === 0) lines.push(space + line);
  return lines;
}

/**
 * Rows in columns two spaces apart, without trailing spaces; `head` is the first line.
 * @param right titles of columns whose cells stand on the right
 */
export function table(
  rows: readonly (readonly string[])[],
  head?: readonly string[],
  right: readonly string[] = [],
): string[] {
  const all = head === undefined ? rows : [head, ...rows];
  const widths: number[] = [];
  for (const row of all) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, widthOf(cell));
    });
  }
  return all.map((row) =>
    row
      .map((cell, i) => {
        const isRight = right.includes(head?.[i] ?? '');
        return isRight ? padLeft(cell, widths[i]!) : pad(cell, widths[i]!);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** How a table becomes narrower. */
export interface Narrowing {
  /** Columns that are left out, in this order, until the rest fits. */
  readonly spare: readonly string[];
  /** Columns whose cells are cut before another one is left out, and the characters that stay at least. */
  readonly cut?: Readonly<Record<string, number>>;
  /** Columns whose cells stand on the right: numbers. */
  readonly right?: readonly string[];
}

/**
 * A {@link table} that fits a terminal: cells are cut and columns left out until it fits; then lines are cut.
 * Without a terminal nothing is.
 */
export function fittingTable(
  rows: readonly (readonly string[])[],
  head: readonly string[],
  columns: number | undefined,
  { spare, cut = {}, right = [] }: Narrowing,
): string[] {
  if (columns === undefined) return table(rows, head, right);
  let shown = head.map((_, i) => i);
  for (const name of [undefined, ...spare]) {
    shown = shown.filter((i) => name === undefined || head[i] !== name);
    const of = (row: readonly string[]) => shown.map((i) => row[i] ?? '');
    const lines = cutTable(rows.map(of), of(head), columns, { cut, right });
    if (lines.every((line) => widthOf(line) <= columns)) return lines;
    if (name === spare.at(-1)) return lines.map((line) => cutWith(line, columns, '…'));
  }
  return [];
}

/** The columns of a table by their titles, with the cell of a row in each. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>;

/**
 * Prints a {@link fittingTable} under a bold head.
 * @param style of the line of a row; undefined: as it is
 * @param below what is printed below the line of a row
 */
export function printTable<Row>(
  out: Terminal,
  rows: readonly Row[],
  columns: Columns<Row>,
  narrowing: Narrowing,
  style: (row: Row) => Style | undefined = () => undefined,
  below: (row: Row) => void = () => {},
): void {
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)));
  const [first, ...lines] = fittingTable(cells, Object.keys(columns), out.columns, narrowing);
  out.line(out.paint('bold', first!));
  rows.forEach((row, at) => {
    const own = style(row);
    out.line(own === undefined ? lines[at]! : out.paint(own, lines[at]!));
    below(row);
  });
}

/** A {@link table} whose widest cells are cut, as far as it needs and `least` allows. */
function cutTable(
  rows: readonly (readonly string[])[],
  head: readonly string[],
  columns: number,
  { cut: least, right }: Required<Omit<Narrowing, 'spare'>>,
): string[] {
  const widths = head.map((title, i) =>
    Math.max(...[title, ...rows.map((row) => row[i] ?? '')].map(widthOf)),
  );
  const ends = head.map((title, i) => Math.max(widthOf(title), least[title] ?? widths[i]!));
  for (;;) {
    const over = widths.reduce((sum, width) => sum + width + 2, -2) - columns;
    const [widest, next] = widths
      .map((width, i) => ({ i, width }))
      .filter(({ i, width }) => width > ends[i]!)
      .toSorted((a, b) => b.width - a.width);
    if (over <= 0 || widest === undefined) break;
    const to = Math.max(ends[widest.i]!, widest.width - over, next?.width ?? 0);
    widths[widest.i] = Math.min(to, widest.width - 1);
  }
  return table(
    rows.map((row) => row.map((cell, i) => cutWith(cell, widths[i]!, '…'))),
    head,
    right,
  );
}

/** A text of at most so many columns; where it is cut, it ends with the mark. */
export const cutWith = (text: string, columns: number, mark: string): string =>
  widthOf(text) <= columns ? text : cutTo(text, Math.max(0, columns - widthOf(mark))) + mark;

/** Sentences as lines of a terminal; elsewhere each line stays whole. */
export const prose = (text: string, { columns, width }: Terminal): string[] =>
  text.split('\n').flatMap((line) => (columns === undefined ? [line] : wrap(line, width)));

function cutTo(text: string, columns: number): string {
  let out = '';
  for (const char of text) {
    if (widthOf(out + char) > columns) break;
    out += char;
  }
  return out;
}

/**
 * Terms with explanations beside them, wrapped to `width`. The explanation of a term wider than `termWidth` begins
 * on the next line.
 */
export function definitions(
  items: readonly (readonly [term: string, words: string])[],
  width: number,
  options: { readonly indent?: number; readonly termWidth?: number } = {},
): string[] {
  const { indent = 2, termWidth = 24 } = options;
  const longest = Math.max(0, ...items.map(([term]) => widthOf(term)));
  const column = Math.min(longest, termWidth) + indent + 2;
  return items.flatMap(([term, words]) => {
    const lines = wrap(words, width, column);
    const start = ' '.repeat(indent) + term;
    if (widthOf(start) > column - 2) return [start, ...lines];
    return [pad(start, column) + lines[0]!.trimStart(), ...lines.slice(1)];
  });
}

/** `1 model`, `3 models`. */
export const plural = (count: number, word: string): string =>
  `${count} ${count === 1 ? word : `${word.replace(/([^aeiou])y$/, '$1ie')}s`}`;

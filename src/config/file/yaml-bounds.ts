/** Refuses YAML text that would cost more to read than a configuration may; the checks take linear time. */

// A running gateway must go on whatever its file has become.

import {
  type CST,
  type Document,
  isAlias,
  isCollection,
  isNode,
  isPair,
  isScalar,
  Lexer,
  type LineCounter,
  type Node,
  Parser,
} from 'yaml';

/** Characters of a file; the largest of the examples has a few thousand. */
export const MAX_TEXT = 1024 * 1024;
/** Mappings and lists within each other; the configuration's own have ten. */
const MAX_LEVELS = 100;
/** Values; an alias counts as all the values that it stands for. */
const MAX_VALUES = 250_000;
/** The library searches all anchors for each alias. */
const MAX_ALIASES = 5000;
/**
 * Line breaks and characters that have a meaning in YAML; quotes count a quarter. The library takes about
 * ten microseconds for each. Ten thousand routes have a hundred thousand of them.
 */
const MAX_MARKS = 150_000;
const MARKS = /[\n:,[\]{}&*!|>%@`\\"']/g;

export interface Fault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
  readonly suggestion?: string;
  /** Where the first of two equal keys stands. */
  readonly first?: number;
}

export const TOO_LARGE = 'is larger than 1 MB: this is no configuration';
const TOO_MUCH =
  'holds more than 150000 lines, values and signs up to here: this is no configuration';

/**
 * The tokens of a text, or why they must not be composed into a document. The library's parser keeps
 * open levels on a stack of its own, but its composer is recursive and takes quadratic time in the levels.
 * @param lines learns where lines begin
 */
export function tokensOf(text: string, lines: LineCounter): readonly CST.Token[] | Fault {
  if (text.length > MAX_TEXT) return { offset: 0, message: TOO_LARGE };
  const marks = tooManyMarksAt(text);
  if (marks !== undefined) return { offset: marks, message: TOO_MUCH };
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const tokens: CST.Token[] = [];
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (!CONTROL_TOKENS.has(lexeme)) {
      offset += lexeme.length;
      if (offset >= text.length && isUnclosed(lexeme)) {
        const message = `a text that begins with ${lexeme[0]} has no ${lexeme[0]} at its end`;
        return { offset: offset - lexeme.length, message };
      }
    }
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > MAX_LEVELS) {
      return { offset: parser.offset, message: `is nested more than ${MAX_LEVELS} levels deep` };
    }
  }
  tokens.push(...parser.end());
  return tokens;
}

/** Tokens that the lexer adds to the pieces of the text. */
const CONTROL_TOKENS = new Set(['\u0002', '\u0018', '\u001f']);

/** Whether a token is a quoted text without its final quote. */
const isUnclosed = (lexeme: string) =>
  lexeme.startsWith('"')
    ? !/^"(?:[^"\\]|\\.)*"$/s.test(lexeme)
    : lexeme.startsWith("'") && !/^'(?:[^']|'')*'$/.test(lexeme);

/** Where a text exceeds the marks of a configuration; undefined when it does not. */
function tooManyMarksAt(text: string): number | undefined {
  let count = 0;
  MARKS.lastIndex = 0;
  for (let mark = MARKS.exec(text); mark !== null; mark = MARKS.exec(text)) {
    count += mark[0] === '"' || mark[0] === "'" ? 0.25 : 1;
    if (count > MAX_MARKS) return mark.index;
  }
  return undefined;
}

/** Why a document must not be turned into values: duplicate keys, aliases in circles, or too many. */
export function faultsOfDocument(document: Document): readonly Fault[] {
  const faults: Fault[] = [];
  const report = (node: Node, message: string, more: Partial<Fault> = {}) =>
    faults.push({ offset: node.range?.[0] ?? 0, message, ...more });
  const anchors = new Map<string, Node>();
  const sizes = new Map<Node, number>();
  const open = new Set<Node>();
  let aliases = 0;

  // In the order of the text: an alias means the latest anchor before it.
  const sizeOf = (node: unknown): number => {
    if (!isNode(node)) return 1;
    if (isAlias(node)) {
      aliases++;
      const target = anchors.get(node.source);
      if (target === undefined) {
        const message = `*${node.source} stands for something named &${node.source}, which is not there: put a glob in quotes`;
        report(node, message, { suggestion: `"*${node.source}"` });
        return 1;
      }
      if (open.has(target))
        report(node, `the alias *${node.source} stands within what it stands for`);
      return sizes.get(target) ?? 1;
    }
    if (node.anchor !== undefined) anchors.set(node.anchor, node);
    if (!isCollection(node)) return 1;
    open.add(node);
    const keys = new Map<unknown, number>();
    let size = 1;
    for (const item of node.items) {
      if (!isPair(item)) {
        size += sizeOf(item);
        continue;
      }
      if (isScalar(item.key)) {
        const { value } = item.key;
        const first = keys.get(value);
        if (first === undefined) keys.set(value, item.key.range?.[0] ?? 0);
        else report(item.key, `the key "${shortened(String(value))}" is there already`, { first });
      } else if (isCollection(item.key)) report(item.key, 'a list or a mapping is no key');
      size += sizeOf(item.key) + sizeOf(item.value);
    }
    open.delete(node);
    sizes.set(node, size);
    return size;
  };

  const size = sizeOf(document.contents);
  if (size > MAX_VALUES) {
    faults.push({ offset: 0, message: `holds more than ${MAX_VALUES} values, aliases filled in` });
  }
  if (aliases > MAX_ALIASES) {
    faults.push({ offset: 0, message: `holds more than ${MAX_ALIASES} aliases` });
  }
  return faults;
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** What keeps a text from costing more than a configuration may; everything here takes time in proportion to the text. */

// A file that is broken, or no configuration at all, must not stop a gateway that is at work.

import {
  type Document,
  isAlias,
  isCollection,
  isNode,
  isPair,
  isScalar,
  Lexer,
  type Node,
  Parser,
} from 'yaml';

/** Characters of a file; the largest of the examples has a few thousand. */
export const MOST_TEXT = 1024 * 1024;
/** Mappings and lists within each other; the configuration's own have ten. */
const MOST_LEVELS = 100;
/** Values, with those that aliases stand for counted each time. */
const MOST_VALUES = 250_000;
/** The library looks through all anchors for each alias. */
const MOST_ALIASES = 5000;
/**
 * Line breaks and characters that mean something to YAML; quotes count a quarter. The library takes about
 * ten microseconds for each, right or wrong. Ten thousand routes have a hundred thousand of them.
 */
const MOST_MARKS = 150_000;
const MARKS = /[\n:,[\]{}&*!|>%@`\\"']/g;

export interface Fault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
  readonly suggestion?: string;
  /** Where the other half of it stands, for a key that is there twice. */
  readonly first?: number;
}

export const TOO_LARGE = 'is larger than 1 MB: this is no configuration';
const TOO_MUCH =
  'holds more than 150000 lines, values and signs up to here: this is no configuration';

/**
 * Why a text is not even to be parsed; undefined when nothing speaks against it. The library's parser
 * takes one token at a time and keeps what is open on a stack of its own, while what it composes
 * afterwards calls itself for each level, in time that grows with the square of them.
 */
export function faultOfText(text: string): Fault | undefined {
  if (text.length > MOST_TEXT) return { offset: 0, message: TOO_LARGE };
  const marks = marksAt(text);
  if (marks !== undefined) return { offset: marks, message: TOO_MUCH };
  const parser = new Parser();
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (!INVISIBLE.has(lexeme)) {
      offset += lexeme.length;
      if (offset >= text.length && isOpen(lexeme)) {
        const message = `a text that begins with ${lexeme[0]} has no ${lexeme[0]} at its end`;
        return { offset: offset - lexeme.length, message };
      }
    }
    const steps = parser.next(lexeme);
    while (!steps.next().done);
    if (parser.stack.length > MOST_LEVELS) {
      return { offset: parser.offset, message: `is nested more than ${MOST_LEVELS} levels deep` };
    }
  }
  return undefined;
}

/** What the lexer says of its own, beside the pieces of the text. */
const INVISIBLE = new Set(['\u0002', '\u0018', '\u001f']);

/** A quoted text that the end of the file cut off. */
const isOpen = (lexeme: string) =>
  lexeme.startsWith('"')
    ? !/^"(?:[^"\\]|\\.)*"$/s.test(lexeme)
    : lexeme.startsWith("'") && !/^'(?:[^']|'')*'$/.test(lexeme);

/** Where a text has more marks than a configuration has; undefined when it has not. */
function marksAt(text: string): number | undefined {
  let count = 0;
  MARKS.lastIndex = 0;
  for (let mark = MARKS.exec(text); mark !== null; mark = MARKS.exec(text)) {
    count += mark[0] === '"' || mark[0] === "'" ? 0.25 : 1;
    if (count > MOST_MARKS) return mark.index;
  }
  return undefined;
}

/** Why a document is not to be made values of: keys that stand twice, aliases in circles or too many. */
export function faultsOfDocument(document: Document): readonly Fault[] {
  const faults: Fault[] = [];
  const say = (node: Node, message: string, more: Partial<Fault> = {}) =>
    faults.push({ offset: node.range?.[0] ?? 0, message, ...more });
  const anchors = new Map<string, Node>();
  const sizes = new Map<Node, number>();
  const open = new Set<Node>();
  let aliases = 0;

  // In the order of the text, so that an alias finds the latest anchor before it, as YAML wants.
  const sizeOf = (node: unknown): number => {
    if (!isNode(node)) return 1;
    if (isAlias(node)) {
      aliases++;
      const target = anchors.get(node.source);
      if (target === undefined) {
        const message = `*${node.source} stands for something named &${node.source}, which is not there: put a glob in quotes`;
        say(node, message, { suggestion: `"*${node.source}"` });
        return 1;
      }
      if (open.has(target)) say(node, `the alias *${node.source} stands within what it stands for`);
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
        else say(item.key, `the key "${shortened(String(value))}" is there already`, { first });
      }
      size += sizeOf(item.key) + sizeOf(item.value);
    }
    open.delete(node);
    sizes.set(node, size);
    return size;
  };

  const size = sizeOf(document.contents);
  if (size > MOST_VALUES) {
    faults.push({ offset: 0, message: `holds more than ${MOST_VALUES} values, aliases filled in` });
  }
  if (aliases > MOST_ALIASES) {
    faults.push({ offset: 0, message: `holds more than ${MOST_ALIASES} aliases` });
  }
  return faults;
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

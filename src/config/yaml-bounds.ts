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

export interface Fault {
  /** Where in the text. */
  readonly offset: number;
  readonly message: string;
}

export const TOO_LARGE = 'is larger than 1 MB: this is no configuration';

/**
 * Why a text is not even to be parsed; undefined when nothing speaks against it. The library's parser
 * takes one token at a time and keeps what is open on a stack of its own, while what it composes
 * afterwards calls itself for each level, in time that grows with the square of them.
 */
export function faultOfText(text: string): Fault | undefined {
  if (text.length > MOST_TEXT) return { offset: 0, message: TOO_LARGE };
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    const steps = parser.next(lexeme);
    while (!steps.next().done);
    if (parser.stack.length > MOST_LEVELS) {
      return { offset: parser.offset, message: `is nested more than ${MOST_LEVELS} levels deep` };
    }
  }
  return undefined;
}

/** Why a document is not to be made values of: keys that stand twice, aliases in circles or too many. */
export function faultsOfDocument(document: Document): readonly Fault[] {
  const faults: Fault[] = [];
  const say = (node: Node, message: string) =>
    faults.push({ offset: node.range?.[0] ?? 0, message });
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
      if (target === undefined) return 1;
      if (open.has(target)) say(node, `the alias *${node.source} stands within what it stands for`);
      return sizes.get(target) ?? 1;
    }
    if (node.anchor !== undefined) anchors.set(node.anchor, node);
    if (!isCollection(node)) return 1;
    open.add(node);
    const keys = new Set<unknown>();
    let size = 1;
    for (const item of node.items) {
      if (!isPair(item)) {
        size += sizeOf(item);
        continue;
      }
      if (isScalar(item.key)) {
        if (keys.has(item.key.value)) say(item.key, 'Map keys must be unique');
        keys.add(item.key.value);
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

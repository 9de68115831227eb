/** Edits JSON files that people write by hand: comments, order and layout stay as they are. */

import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import type { Json } from '../../../lib/json/json.ts';

/** The object of a file with comments and trailing commas. @throws SyntaxError that names the line */
function parse(text: string): Node {
  const errors: ParseError[] = [];
  // A byte order mark is no JSON.
  const root = parseTree(text.replace(/^\uFEFF/, ' '), errors, { allowTrailingComma: true });
  const [problem] = errors;
  if (problem !== undefined) {
    const line = text.slice(0, problem.offset).split('\n').length;
    const what = printParseErrorCode(problem.error)
      .replace(/\B[A-Z]/g, ' $&')
      .toLowerCase();
    throw new SyntaxError(`line ${line}: ${what}`);
  }
  if (root?.type !== 'object') throw new SyntaxError('an object is expected');
  return root;
}

/** The key and the value. Of a key that stands twice, the last one counts. */
const memberOf = (node: Node | undefined, key: string | undefined): Node | undefined =>
  node?.type === 'object'
    ? node.children!.findLast(({ children }) => children![0]!.value === key)
    : undefined;

const at = (node: Node | undefined, key: string): Node | undefined =>
  memberOf(node, key)?.children?.[1];

const endOf = ({ offset, length }: Node) => offset + length;

function jsonOf({ type, children = [], value }: Node): Json {
  if (type === 'array') return children.map(jsonOf);
  if (type !== 'object') return value as Json;
  return Object.fromEntries(
    children.map(({ children: [key, inner] = [] }) => [key!.value as string, jsonOf(inner!)]),
  );
}

/** The value at a path, or undefined. @throws SyntaxError */
export function getAt(text: string, path: readonly string[]): Json | undefined {
  const node = path.reduce(at, parse(text) as Node | undefined);
  return node && jsonOf(node);
}

/**
 * The text with `value` at `path`; objects on the way are made when missing, everything else keeps
 * its bytes. @throws SyntaxError; Error when the path leads through something that is not an object
 */
export function setAt(text: string, path: readonly string[], value: Json): string {
  let node = parse(text);
  for (const [depth, key] of path.entries()) {
    if (node.type !== 'object') {
      throw new Error(`"${path.slice(0, depth).join('.')}" is not an object`);
    }
    const inner = at(node, key);
    if (inner === undefined) {
      const rest = path.slice(depth + 1).reduceRight<Json>((inner, k) => ({ [k]: inner }), value);
      return insert(text, node, key, rest);
    }
    node = inner;
  }
  return (
    text.slice(0, node.offset) +
    written(text, value, indentAt(text, node.offset)) +
    text.slice(endOf(node))
  );
}

/** The text without the member at `path`; the very text when it is not there. @throws SyntaxError */
export function removeAt(text: string, path: readonly string[]): string {
  const parent = path.slice(0, -1).reduce(at, parse(text) as Node | undefined);
  const gone = memberOf(parent, path.at(-1));
  if (parent === undefined || gone === undefined) return text;
  const members = parent.children!;
  const index = members.indexOf(gone);
  const before = members[index - 1];
  const after = members[index + 1];
  if (before !== undefined) return text.slice(0, endOf(before)) + text.slice(endOf(gone));
  if (after !== undefined) return text.slice(0, gone.offset) + text.slice(after.offset);
  const tail = text.slice(endOf(gone), endOf(parent)).replace(/^\s*,/, '');
  return text.slice(0, gone.offset).trimEnd() + tail.trimStart() + text.slice(endOf(parent));
}

const lineBreak = (text: string) => (text.includes('\r\n') ? '\r\n' : '\n');
const unit = (text: string) => /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';

/** The indentation of the line that holds `at`. */
function indentAt(text: string, at: number): string {
  const line = text.lastIndexOf('\n', at - 1) + 1;
  return /^[ \t]*/.exec(text.slice(line))![0];
}

function written(text: string, value: Json, indent: string): string {
  return JSON.stringify(value, null, unit(text)).replaceAll('\n', lineBreak(text) + indent);
}

function insert(text: string, parent: Node, key: string, value: Json): string {
  const final = parent.children!.at(-1);
  const name = `${JSON.stringify(key)}: `;
  if (final === undefined) {
    const outer = indentAt(text, parent.offset);
    const inner = outer + unit(text);
    const open = text.slice(0, parent.offset + 1);
    const rest = text.slice(parent.offset + 1);
    const blank = /^\s*\}/.exec(rest);
    const close = blank === null ? rest : lineBreak(text) + outer + rest.slice(blank[0].length - 1);
    return open + lineBreak(text) + inner + name + written(text, value, inner) + close;
  }
  const end = endOf(final);
  const indent = indentAt(text, final.offset);
  const ownLine = text.slice(text.lastIndexOf('\n', final.offset) + 1, final.offset).trim() === '';
  const gap = ownLine ? lineBreak(text) + indent : ' ';
  return `${text.slice(0, end)},${gap}${name}${written(text, value, indent)}${text.slice(end)}`;
}

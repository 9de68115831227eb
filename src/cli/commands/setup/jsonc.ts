/** Edits JSON files that people write by hand: comments, order and layout stay as they are. */

import type { Json } from '../../../lib/json/json.ts';

interface Node {
  readonly start: number;
  readonly end: number;
  readonly value: Json;
  /** Of objects. */
  readonly members?: readonly Member[];
}

interface Member {
  readonly key: string;
  readonly start: number;
  readonly node: Node;
}

/** Reads JSON with comments and trailing commas. @throws SyntaxError that names the line */
function parse(text: string): Node {
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  const fail = (what: string): never => {
    const line = text.slice(0, at).split('\n').length;
    throw new SyntaxError(`line ${line}: ${what}`);
  };
  const space = () => {
    for (;;) {
      while (/\s/.test(text[at] ?? '')) at++;
      if (text.startsWith('//', at)) {
        const end = text.indexOf('\n', at);
        at = end < 0 ? text.length : end;
      } else if (text.startsWith('/*', at)) {
        const end = text.indexOf('*/', at + 2);
        if (end < 0) fail('a comment does not end');
        at = end + 2;
      } else return;
    }
  };
  const scalar = (): Json => {
    const match = /"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/y;
    match.lastIndex = at;
    const word = match.exec(text)?.[0] ?? fail('a value is expected here');
    try {
      const value = JSON.parse(word) as Json;
      at += word.length;
      return value;
    } catch {
      return fail(`not a JSON value: ${word}`);
    }
  };
  const list = (close: string, item: () => void) => {
    at++;
    for (;;) {
      space();
      if (text[at] === close) break;
      item();
      space();
      if (text[at] === ',') at++;
      else if (text[at] !== close) fail(`"," or "${close}" is expected here`);
    }
    at++;
  };
  const node = (): Node => {
    space();
    const start = at;
    if (text[at] === '{') {
      const members: Member[] = [];
      list('}', () => {
        const keyStart = at;
        const key = scalar();
        if (typeof key !== 'string') fail('a key in quotes is expected here');
        space();
        if (text[at] !== ':') fail('":" is expected here');
        at++;
        members.push({ key: String(key), start: keyStart, node: node() });
      });
      const value = Object.fromEntries(members.map((m) => [m.key, m.node.value]));
      return { start, end: at, value, members };
    }
    if (text[at] === '[') {
      const items: Json[] = [];
      list(']', () => items.push(node().value));
      return { start, end: at, value: items };
    }
    return { value: scalar(), start, end: at };
  };
  const root = node();
  space();
  if (at < text.length) fail('nothing is expected behind the end');
  if (root.members === undefined) fail('an object is expected');
  return root;
}

const last = (node: Node, key: string): Member | undefined =>
  node.members?.findLast((member) => member.key === key);

function nodeAt(root: Node, path: readonly string[]): Node | undefined {
  let node: Node | undefined = root;
  for (const key of path) node = node && last(node, key)?.node;
  return node;
}

/** The value at a path, or undefined. @throws SyntaxError */
export function getAt(text: string, path: readonly string[]): Json | undefined {
  return nodeAt(parse(text), path)?.value;
}

/**
 * The text with `value` at `path`; objects on the way are made when missing, everything else keeps
 * its bytes. @throws SyntaxError; Error when the path leads through something that is not an object
 */
export function setAt(text: string, path: readonly string[], value: Json): string {
  const root = parse(text);
  let node = root;
  for (const [depth, key] of path.entries()) {
    if (node.members === undefined) {
      throw new Error(`"${path.slice(0, depth).join('.')}" is not an object`);
    }
    const member = last(node, key);
    if (member === undefined) {
      const rest = path.slice(depth + 1).reduceRight<Json>((inner, k) => ({ [k]: inner }), value);
      return insert(text, node, key, rest);
    }
    node = member.node;
  }
  return (
    text.slice(0, node.start) +
    written(text, value, indentAt(text, node.start)) +
    text.slice(node.end)
  );
}

/** The text without the member at `path`; the very text when it is not there. @throws SyntaxError */
export function removeAt(text: string, path: readonly string[]): string {
  const key = path.at(-1);
  const parent = nodeAt(parse(text), path.slice(0, -1));
  const members = parent?.members ?? [];
  const index = members.findLastIndex((member) => member.key === key);
  const member = members[index];
  if (parent === undefined || member === undefined) return text;
  const before = members[index - 1];
  const after = members[index + 1];
  if (before !== undefined) return text.slice(0, before.node.end) + text.slice(member.node.end);
  if (after !== undefined) return text.slice(0, member.start) + text.slice(after.start);
  const tail = text.slice(member.node.end, parent.end).replace(/^\s*,/, '');
  return text.slice(0, member.start).trimEnd() + tail.trimStart() + text.slice(parent.end);
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
  const final = parent.members!.at(-1);
  const name = `${JSON.stringify(key)}: `;
  if (final === undefined) {
    const outer = indentAt(text, parent.start);
    const inner = outer + unit(text);
    const open = text.slice(0, parent.start + 1);
    const rest = text.slice(parent.start + 1);
    const blank = /^\s*\}/.exec(rest);
    const close = blank === null ? rest : lineBreak(text) + outer + rest.slice(blank[0].length - 1);
    return open + lineBreak(text) + inner + name + written(text, value, inner) + close;
  }
  const { end } = final.node;
  const indent = indentAt(text, final.start);
  const ownLine = text.slice(text.lastIndexOf('\n', final.start) + 1, final.start).trim() === '';
  const gap = ownLine ? lineBreak(text) + indent : ' ';
  return `${text.slice(0, end)},${gap}${name}${written(text, value, indent)}${text.slice(end)}`;
}

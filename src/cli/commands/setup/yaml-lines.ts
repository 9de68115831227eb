/** Edits YAML files that people write by hand, as text: a marked block of lines, and everything else keeps its bytes. */

import { isMap, isScalar, isSeq, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type LineRange, lineRange, pastMark, withBlock, withoutBlock } from './marked-lines.ts';

/** A YAML scalar; JSON's strings are all legal there. */
export const yamlText = (text: string): string => JSON.stringify(text);

const UNSAFE = 'the file is written in a way that cannot be edited safely';

/** The root of the document; undefined for an empty one. @throws Error */
function rootOf(text: string): YAMLMap | undefined {
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem !== undefined) throw new Error(problem.message.split('\n')[0]!);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return undefined;
  if (!isMap(contents) || contents.flow === true) throw new Error(UNSAFE);
  return contents;
}

function membersOf(text: string): JsonObject {
  const value = parseDocument(text).toJS() as Json;
  return isObject(value) ? value : {};
}

const pairOf = (root: YAMLMap | undefined, key: string): Pair | undefined =>
  root?.items.find((pair) => isScalar(pair.key) && pair.key.value === key);

function linesOfPair(text: string, pair: Pair): LineRange {
  const key = rangeOf(pair.key);
  const value = rangeOf(pair.value);
  if (key === undefined) throw new Error(UNSAFE);
  return lineRange(text, key[0]!, Math.max(key[1]!, value?.[1] ?? 0));
}

const rangeOf = (node: unknown): readonly number[] | undefined =>
  (node as { range?: readonly number[] | null } | null)?.range ?? undefined;

/** @throws Error when the result is not what it should be */
function checked(result: string, expected: JsonObject): string {
  rootOf(result);
  if (!Bun.deepEquals(membersOf(result), expected, true)) throw new Error(UNSAFE);
  return result;
}

/**
 * The text with these members at its top level, in place of what they were. @throws Error when it is no YAML, or cannot
 * be edited safely
 */
export function putMembers(
  original: string,
  client: string,
  members: Readonly<Record<string, string>>,
): string {
  return pastMark(original, (marked) => {
    const text = withoutBlock(marked);
    const root = rootOf(text);
    const disabled = Object.keys(members).flatMap((key) => {
      const pair = pairOf(root, key);
      return pair === undefined ? [] : [linesOfPair(text, pair)];
    });
    const lines = Object.entries(members).map(([key, value]) => `${key}: ${yamlText(value)}`);
    const block = {
      client,
      lines,
      at: text.length,
      disabled: disabled.sort((a, b) => a.start - b.start),
    };
    return checked(withBlock(text, block), { ...membersOf(text), ...members });
  });
}

/**
 * The text with these items at the end of the list `key`, which is made where it is missing or empty. @throws Error as
 * {@link putMembers}
 */
export function putItems(
  original: string,
  client: string,
  key: string,
  items: readonly JsonObject[],
): string {
  return pastMark(original, (marked) => {
    const text = withoutBlock(marked);
    const before = membersOf(text);
    const pair = pairOf(rootOf(text), key);
    const list = pair?.value;
    const last = isSeq(list) ? list.items.at(-1) : undefined;
    const old = before[key] ?? [];
    if (!Array.isArray(old)) throw new Error(`"${key}" is not a list`);
    const expected = { ...before, [key]: [...old, ...items] };
    if (last === undefined) {
      const disabled = pair === undefined ? [] : [linesOfPair(text, pair)];
      const lines = [`${key}:`, ...items.flatMap((item) => itemLines(item, '  '))];
      return checked(withBlock(text, { client, lines, at: text.length, disabled }), expected);
    }
    const first = rangeOf((list as { items: unknown[] }).items[0]);
    const end = rangeOf(last);
    if (first === undefined || end === undefined || (list as { flow?: boolean }).flow === true) {
      throw new Error(UNSAFE);
    }
    const indent = dashIndent(text, first[0]!);
    if (indent === undefined) throw new Error(UNSAFE);
    const { end: at } = lineRange(text, end[0]!, end[1]!);
    const lines = items.flatMap((item) => itemLines(item, indent));
    return checked(withBlock(text, { client, lines, at, disabled: [] }), expected);
  });
}

/** The blanks before the dash of a list's item; it may stand in a line above the item, alone or with an anchor. */
function dashIndent(text: string, item: number): string | undefined {
  for (let end = item; end > 0; ) {
    const start = text.lastIndexOf('\n', end - 1) + 1;
    const dash = /^( *)-(?:\s|$)/.exec(text.slice(start, start + MAX_INDENT));
    if (dash !== null) return dash[1];
    // Blank lines and comments may stand between.
    const between = text.slice(start, end).trim();
    if (end !== item && between !== '' && !between.startsWith('#')) return undefined;
    end = start - 1;
  }
  return undefined;
}

const MAX_INDENT = 200;

/** An item of a list: a member a line, its values as JSON, which is YAML. */
const itemLines = (item: JsonObject, indent: string): readonly string[] =>
  Object.entries(item).map(
    ([key, value], index) =>
      `${indent}${index === 0 ? '- ' : '  '}${key}: ${JSON.stringify(value)}`,
  );

/** The text without what {@link putMembers} or {@link putItems} added. */
export const takeLines = (text: string): string => pastMark(text, withoutBlock);

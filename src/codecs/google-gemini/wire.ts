/** Helpers for Gemini JSON: the protocol's name, wire values of nodes, typed reads in both spellings of a field. */

import { wireNodes } from '../../conversation/edit.ts';
import { type GatewayError, invalid } from '../../conversation/errors.ts';
import { type ToolName, toolNames } from '../../conversation/tools/tool-names.ts';
import type { Tool } from '../../conversation/types.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import { prefixedId } from '../../lib/text/ids.ts';

export { compact, flag, list, object, objects, text } from '../../lib/json/typed-reads.ts';

export const PROTOCOL = 'google-gemini';

export const { wireOf, ownWire, ownResidue, isOwn } = wireNodes(PROTOCOL);

const spellings = new Map<string, string>();

/** The snake_case spelling of a camelCase name, which Google's JSON parser takes as well. */
export function snakeCase(name: string): string {
  let snake = spellings.get(name);
  if (snake === undefined) {
    snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    // Only names from this codec's sources come here, so the map stays small.
    spellings.set(name, snake);
  }
  return snake;
}

/** The names in both spellings. */
export const inBothSpellings = (names: readonly string[]): ReadonlySet<string> =>
  new Set([...names, ...names.map(snakeCase)]);

/** A field under its camelCase name or, if that is absent, under its snake_case name. */
export function field(value: JsonObject, name: string): Json | undefined {
  return value[name] ?? value[snakeCase(name)];
}

/** The spelling in which an object has a field; camelCase if it has none. */
export function spellingIn(value: JsonObject, name: string): string {
  const snake = snakeCase(name);
  return value[name] === undefined && value[snake] !== undefined ? snake : name;
}

/** A number; also one written as a string, as proto3 JSON writes and takes 64-bit integers. */
export function number(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || !/^-?\d{1,15}$/.test(value)) return undefined;
  return Number(value);
}

/** The object without these keys, in both spellings. */
export function without(value: JsonObject, names: Iterable<string>): JsonObject {
  const copy: Record<string, Json | undefined> = { ...value };
  for (const name of names) {
    delete copy[name];
    delete copy[snakeCase(name)];
  }
  return copy;
}

/** An id for a call that has none: `call_…`. */
export const newCallId = (): string => prefixedId('call_');

/** Google's words for a field of the wrong type. */
export function wrongValue(field: string, expected: string, given: Json | undefined): GatewayError {
  return invalid(
    `Invalid value at '${field}': expected ${expected}, but got ${kindOf(given)}.`,
    field,
  );
}

function kindOf(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Google: "Must start with a letter or an underscore … maximum length of 64"; one character is for that start. */
const NAME_LIMIT = 63;
const START = /^[a-zA-Z_]/;

interface GeminiNames {
  /** The name on the wire, for a declaration, a choice, a call or a result. */
  flat(name: string, namespace?: string): string;
  /** The declared tool behind a name that the model called; an undeclared name stands for itself. */
  original(flat: string): ToolName;
}

const cache = new WeakMap<readonly Tool[], GeminiNames>();

/** The names of these tools; the same object for the same list. */
export function geminiNames(tools: readonly Tool[]): GeminiNames {
  const known = cache.get(tools);
  if (known !== undefined) return known;
  const names = toolNames(tools, NAME_LIMIT);
  const declared = new Set<string>();
  const flat = (name: string, namespace?: string) => {
    const plain = names.flat(name, namespace);
    return START.test(plain) ? plain : `_${plain}`;
  };
  // A tool of this protocol keeps its name, which may hold dots and colons.
  for (const tool of tools) declared.add(tool.name);
  const made: GeminiNames = {
    flat,
    original: (name) => {
      if (declared.has(name)) return names.original(name);
      const bare = name.startsWith('_') && !START.test(name.slice(1)) ? name.slice(1) : name;
      return names.original(bare);
    },
  };
  cache.set(tools, made);
  return made;
}

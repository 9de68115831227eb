/** JSON pointers (RFC 6901): writes and reads them, and finds the value that one points to. */

import type { Steps } from '../loop/steps.ts';
import { isObject, type Json } from './json.ts';

export type Path = readonly (string | number)[];

/** `/messages/17/content`; '' is the whole. */
export function pointerOf(path: Path): string {
  return path
    .map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

/** The parts of a pointer, all as text. */
export function partsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The value that a pointer points to; undefined when there is none. */
export function valueAt(root: Json, pointer: string): Json | undefined {
  let value: unknown = root;
  for (const part of partsOf(pointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value as Json;
}

/** The value at a pointer as people read it: a text as it is, else JSON with the name of its member; items have none. */
export function shownAt(root: Json, pointer: string): string {
  const value = valueAt(root, pointer);
  if (typeof value === 'string') return value;
  const name = partsOf(pointer).at(-1) ?? '';
  return `${/^\d*$/.test(name) ? '' : `"${name}": `}${JSON.stringify(value, null, 2)}`;
}

/** The value with `to` at a path; null removes the member. */
export function withValueAt(value: Json, [key, ...rest]: readonly string[], to: Json): Json {
  if (key === undefined) return to;
  if (Array.isArray(value)) {
    return value.map((item: Json, i) => (String(i) === key ? withValueAt(item, rest, to) : item));
  }
  const object = isObject(value) ? value : {};
  const members = new Map(Object.entries(object));
  if (rest.length === 0 && to === null) members.delete(key);
  else members.set(key, withValueAt(object[key] ?? {}, rest, to));
  return Object.fromEntries(members);
}

/** As programmers write it: `messages[17].content`. */
export function dotted(pointer: string): string {
  return partsOf(pointer)
    .map((part, i) => (/^\d+$/.test(part) ? `[${part}]` : i === 0 ? part : `.${part}`))
    .join('');
}

/** The pointer of each object and list of a value, down to `deepest` levels. */
export function* pointersIn(root: Json, deepest: number): Steps<ReadonlyMap<unknown, string>> {
  const places = new Map<unknown, string>();
  // What is left to visit, the next one last.
  const open: [value: object, at: string, depth: number][] = [];
  const put = (value: unknown, at: string, depth: number) => {
    if (typeof value === 'object' && value !== null && depth <= deepest) {
      open.push([value, at, depth]);
    }
  };
  put(root, '', 0);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, at, depth] = next;
    places.set(value, at);
    if (places.size % OBJECTS_A_STEP === 0) yield;
    for (const [key, item] of Object.entries(value)) put(item, at + pointerOf([key]), depth + 1);
  }
  return places;
}

const OBJECTS_A_STEP = 500;

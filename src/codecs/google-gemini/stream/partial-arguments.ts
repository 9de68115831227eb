/** Collects the arguments of a call that come in pieces with their paths (Vertex, `streamFunctionCallArguments`). */

import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { put } from '../../../lib/json/json-members.ts';
import { field, objects, text } from '../wire.ts';

/** Arguments are not nested deeper; a deeper path is left out. */
const MAX_DEPTH = 32;

type Tree = Record<string, unknown> | unknown[];

export class PartialArguments {
  readonly #root: Record<string, unknown> = {};
  /** Pieces of the strings that are under way, by path. */
  readonly #strings = new Map<string, string[]>();

  push(call: JsonObject): void {
    for (const piece of objects(field(call, 'partialArgs'))) {
      const path = text(field(piece, 'jsonPath'));
      if (path === undefined) continue;
      const string = text(field(piece, 'stringValue'));
      if (string !== undefined) {
        const pieces = this.#strings.get(path);
        if (pieces === undefined) this.#strings.set(path, [string]);
        else pieces.push(string);
        continue;
      }
      const value = field(piece, 'numberValue') ?? field(piece, 'boolValue');
      const isNull = field(piece, 'nullValue') !== undefined || 'nullValue' in piece;
      if (value !== undefined) this.#set(path, value);
      else if (isNull) this.#set(path, null);
    }
  }

  /** The arguments as JSON text. */
  get json(): string {
    for (const [path, pieces] of this.#strings) this.#set(path, pieces.join(''));
    this.#strings.clear();
    return JSON.stringify(this.#root);
  }

  #set(path: string, value: Json): void {
    const keys = keysOf(path);
    if (keys === undefined) return;
    let at: Tree | undefined = this.#root;
    for (let i = 0; i < keys.length - 1 && at !== undefined; i++) {
      at = child(at, keys[i]!, typeof keys[i + 1] === 'number');
    }
    const last = keys.at(-1)!;
    if (at === undefined) return;
    if (!Array.isArray(at)) put(at, String(last), value);
    else if (isNext(at, last)) at[Number(last)] = value;
  }
}

/** A list grows by one: an index far behind its end would cost memory that was not sent. */
const isNext = (at: readonly unknown[], key: string | number): boolean =>
  typeof key === 'number' && key <= at.length;

function child(at: Tree, key: string | number, list: boolean): Tree | undefined {
  if (Array.isArray(at) && !isNext(at, key)) return undefined;
  const known = Array.isArray(at)
    ? at[Number(key)]
    : Object.hasOwn(at, String(key))
      ? at[String(key)]
      : undefined;
  if (typeof known === 'object' && known !== null) return known as Tree;
  const made: Tree = list ? [] : {};
  if (Array.isArray(at)) at[Number(key)] = made;
  else put(at, String(key), made);
  return made;
}

/** `$.a.b[0]['c d']` as keys; undefined for a path that is none. */
function keysOf(path: string): readonly (string | number)[] | undefined {
  const keys: (string | number)[] = [];
  for (const [, name, index, quoted] of path.matchAll(
    /\.([^.[\]]+)|\[(\d{1,5})\]|\['([^']*)'\]/g,
  )) {
    if (index !== undefined) keys.push(Number(index));
    else keys.push(name ?? quoted ?? '');
    if (keys.length > MAX_DEPTH) return undefined;
  }
  return keys.length > 0 && typeof keys[0] === 'string' ? keys : undefined;
}

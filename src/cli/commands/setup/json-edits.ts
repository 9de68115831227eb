/** Several edits of one JSON file, and how to undo them. */

import type { Json } from '../../../lib/json/json.ts';
import type { EditUndo, FileChange } from './client.ts';
import { getAt, removeAt, setAt } from './jsonc.ts';

/** A value for a path, or an item for the end of the list there. */
export type JsonEdit = readonly [path: readonly string[], value: Json, kind?: 'item'];

const same = (a: Json | undefined, b: Json | undefined) => Bun.deepEquals(a, b, true);

/** Sets every path; a member that has the value already keeps its bytes. @throws SyntaxError, Error */
export function applyEdits(text: string | undefined, edits: readonly JsonEdit[]): FileChange {
  let out = text === undefined || text.trim() === '' ? '{}\n' : text;
  const undo: EditUndo[] = [];
  for (const [path, value, kind] of edits) {
    for (let depth = 1; depth < path.length; depth++) {
      const parent = path.slice(0, depth);
      if (getAt(out, parent) === undefined) {
        undo.push({ path: parent, after: {} });
        out = setAt(out, parent, {});
      }
    }
    const before = getAt(out, path);
    if (kind === 'item') {
      const list = before ?? [];
      if (!Array.isArray(list)) throw new Error(`"${path.join('.')}" is not a list`);
      if (list.some((item) => same(item, value))) continue;
      undo.push({ path, item: true, after: value });
      out = setAt(out, path, [...list, value]);
      continue;
    }
    undo.push(before === undefined ? { path, after: value } : { path, before, after: value });
    if (!same(before, value)) out = setAt(out, path, value);
  }
  return { text: out, undo };
}

/** Undoes edits, the last first. A value that was changed since stays: it is the user's. */
export function stripEdits(text: string, undo: readonly EditUndo[]): string {
  let out = text;
  for (const { path, before, after, item } of undo.toReversed()) {
    if (item === true) {
      const list = getAt(out, path);
      if (!Array.isArray(list)) continue;
      const left = list.filter((one) => !same(one, after));
      if (left.length < list.length) out = setAt(out, path, left);
      continue;
    }
    if (!same(getAt(out, path), after)) continue;
    out = before === undefined ? removeAt(out, path) : setAt(out, path, before);
  }
  return out;
}

/** Several edits of one JSON file, and how to undo them. */

import type { Json } from '../../../lib/json/json.ts';
import type { EditUndo, FileChange } from './client.ts';
import { getAt, removeAt, setAt } from './jsonc.ts';

export type JsonEdit = readonly [path: readonly string[], value: Json];

const same = (a: Json | undefined, b: Json | undefined) => Bun.deepEquals(a, b, true);

/** Sets every path; a member that has the value already keeps its bytes. @throws SyntaxError, Error */
export function applyEdits(text: string | undefined, edits: readonly JsonEdit[]): FileChange {
  let out = text === undefined || text.trim() === '' ? '{}\n' : text;
  const undo: EditUndo[] = [];
  for (const [path, value] of edits) {
    for (let depth = 1; depth < path.length; depth++) {
      const parent = path.slice(0, depth);
      if (getAt(out, parent) === undefined) {
        undo.push({ path: parent, after: {} });
        out = setAt(out, parent, {});
      }
    }
    const before = getAt(out, path);
    undo.push(before === undefined ? { path, after: value } : { path, before, after: value });
    if (!same(before, value)) out = setAt(out, path, value);
  }
  return { text: out, undo };
}

/** Undoes edits, the last first. A value that was changed since stays: it is the user's. */
export function stripEdits(text: string, undo: readonly EditUndo[]): string {
  let out = text;
  for (const { path, before, after } of undo.toReversed()) {
    if (!same(getAt(out, path), after)) continue;
    out = before === undefined ? removeAt(out, path) : setAt(out, path, before);
  }
  return out;
}

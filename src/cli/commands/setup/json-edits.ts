/** Several edits of one JSON file, with what is needed to take them back. */

import type { Json } from '../../../lib/json/json.ts';
import type { Change, Undo } from './client.ts';
import { getAt, removeAt, setAt } from './jsonc.ts';

export type JsonEdit = readonly [path: readonly string[], value: Json];

const same = (a: Json | undefined, b: Json | undefined) => Bun.deepEquals(a, b, true);

/** Sets every path; what holds the value already keeps its bytes. @throws SyntaxError, Error */
export function applyEdits(text: string | undefined, edits: readonly JsonEdit[]): Change {
  let out = text === undefined || text.trim() === '' ? '{}\n' : text;
  const undo: Undo[] = [];
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

/** Takes edits back, the last first. A value that was changed since is the user's: it stays. */
export function stripEdits(text: string, undo: readonly Undo[]): string {
  let out = text;
  for (const { path, before, after } of undo.toReversed()) {
    if (!same(getAt(out, path), after)) continue;
    out = before === undefined ? removeAt(out, path) : setAt(out, path, before);
  }
  return out;
}

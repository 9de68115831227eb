/** `Headers` for responses: one that was made for the same names is used again. */

import type { FlatHeaders } from './headers.ts';

// Made anew, each name is looked up and each value copied; of one that is there a `Response` takes a copy
// for half of that. The answers of a vendor have the same names, and differ in a few values.
const MOST_KEPT = 8;

interface Kept {
  readonly names: readonly string[];
  readonly values: string[];
  readonly native: Headers;
}

const kept: Kept[] = [];
let oldest = 0;

/** To be given to a `Response` at once: the next call may fill the same object with other values. */
export function nativeHeaders(list: FlatHeaders): Headers {
  for (const one of kept) {
    if (hasNames(list, one.names)) return filled(list, one);
  }
  const names: string[] = [];
  const values: string[] = [];
  for (let i = 0; i < list.size; i++) {
    names.push(list.name(i));
    values.push(list.value(i));
  }
  const native = new Headers(list.record());
  kept[oldest] = { names, values, native };
  oldest = (oldest + 1) % MOST_KEPT;
  return native;
}

function hasNames(list: FlatHeaders, names: readonly string[]): boolean {
  if (list.size !== names.length) return false;
  for (let i = 0; i < names.length; i++) if (list.name(i) !== names[i]) return false;
  return true;
}

function filled(list: FlatHeaders, { names, values, native }: Kept): Headers {
  for (let i = 0; i < names.length; i++) {
    const value = list.value(i);
    if (value === values[i]) continue;
    native.set(names[i]!, value);
    values[i] = value;
  }
  return native;
}

/** Builds `Headers` for responses, and reuses one that has the same names. */

import type { FlatHeaders } from './headers.ts';

// A new `Headers` looks up each name and copies each value; copying an existing one costs half as much. The answers
// of a vendor have the same names and differ in a few values.
const MAX_CACHED = 8;

interface CachedHeaders {
  readonly names: readonly string[];
  readonly values: string[];
  readonly native: Headers;
}

const cache: CachedHeaders[] = [];
let oldest = 0;

/** Pass the result to a `Response` at once: the next call may fill the same object with other values. */
export function nativeHeaders(list: FlatHeaders): Headers {
  for (const one of cache) {
    if (hasNames(list, one.names)) return filled(list, one);
  }
  const names: string[] = [];
  const values: string[] = [];
  for (let i = 0; i < list.size; i++) {
    names.push(list.name(i));
    values.push(list.value(i));
  }
  const native = new Headers(list.record());
  cache[oldest] = { names, values, native };
  oldest = (oldest + 1) % MAX_CACHED;
  return native;
}

function hasNames(list: FlatHeaders, names: readonly string[]): boolean {
  if (list.size !== names.length) return false;
  for (let i = 0; i < names.length; i++) if (list.name(i) !== names[i]) return false;
  return true;
}

function filled(list: FlatHeaders, { names, values, native }: CachedHeaders): Headers {
  for (let i = 0; i < names.length; i++) {
    const value = list.value(i);
    if (value === values[i]) continue;
    native.set(names[i]!, value);
    values[i] = value;
  }
  return native;
}

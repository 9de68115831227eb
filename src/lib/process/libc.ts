/** Calls functions of the system's C library that the runtime has no API for (Linux). */

import { dlopen, type FFIFunction, type Library } from 'bun:ffi';

const MUSL = { x64: 'libc.musl-x86_64.so.1', arm64: 'libc.musl-aarch64.so.1' } as Record<
  string,
  string
>;

/** The given functions; undefined outside Linux and where there is no such library. */
export function libc<const Symbols extends Record<string, FFIFunction>>(
  symbols: Symbols,
): Library<Symbols>['symbols'] | undefined {
  if (process.platform !== 'linux') return undefined;
  for (const name of ['libc.so.6', MUSL[process.arch]]) {
    if (name === undefined) continue;
    try {
      return dlopen(name, symbols).symbols;
    } catch {
      // Try the other C library.
    }
  }
  return undefined;
}

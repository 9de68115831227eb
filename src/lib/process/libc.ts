/** The system's C library, for the few calls that the runtime has no words for. */

import { dlopen, type FFIFunction, type Library } from 'bun:ffi';

const MUSL = { x64: 'libc.musl-x86_64.so.1', arm64: 'libc.musl-aarch64.so.1' } as Record<
  string,
  string
>;

/** These functions of it; undefined where this is not Linux or there is no such library. */
export function libc<const Symbols extends Record<string, FFIFunction>>(
  symbols: Symbols,
): Library<Symbols>['symbols'] | undefined {
  if (process.platform !== 'linux') return undefined;
  for (const name of ['libc.so.6', MUSL[process.arch]]) {
    if (name === undefined) continue;
    try {
      return dlopen(name, symbols).symbols;
    } catch {
      // The other C library, then.
    }
  }
  return undefined;
}

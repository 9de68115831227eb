/** Reads and sets members whose names come from outside: on the wire `__proto__` and `constructor` are ordinary keys. */

// Plain assignment and plain access would reach `Object.prototype` under such names.

/** The object's own member of that name; never an inherited one. */
export const memberOf = <T>(object: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Sets a member like an assignment, except that `__proto__` becomes a member and not the prototype. */
export function put<T>(out: Record<string, T>, name: string, value: T): void {
  if (name !== '__proto__') out[name] = value;
  else {
    const member = { value, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(out, name, member);
  }
}

/** The members with other names than these; undefined if there are none. */
export function membersBeside<T>(
  object: Readonly<Record<string, T>>,
  names: ReadonlySet<string>,
): Record<string, T> | undefined {
  let rest: Record<string, T> | undefined;
  for (const name in object) {
    if (names.has(name)) continue;
    rest ??= {};
    put(rest, name, object[name] as T);
  }
  return rest;
}

/** Sets every member of `from`, as `Object.assign` does. */
export function putAll<T>(out: Record<string, T>, from: Readonly<Record<string, T>>): void {
  for (const name of Object.keys(from)) put(out, name, from[name] as T);
}

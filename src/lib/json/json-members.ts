/** Members whose names come from outside: `__proto__` and `constructor` are keys like any other on the wire. */

// Plain assignment and plain look-ups find `Object.prototype` under such names.

/** What the object itself has under the name; nothing that it inherits. */
export const memberOf = <T>(object: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Sets a member: as assignment does, except that `__proto__` becomes one instead of the prototype. */
export function put<T>(out: Record<string, T>, name: string, value: T): void {
  if (name !== '__proto__') out[name] = value;
  else {
    const member = { value, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(out, name, member);
  }
}

/** Sets every member of `from`, as `Object.assign` does. */
export function putAll<T>(out: Record<string, T>, from: Readonly<Record<string, T>>): void {
  for (const name of Object.keys(from)) put(out, name, from[name] as T);
}

/** Objects that are created at their first use, so that the program starts before every store is open. */

export interface Lazy<T extends object> {
  /** A proxy for the object; the first access to a member creates it. */
  readonly value: T;
  /** Creates it now, if it does not exist yet. */
  create(): void;
  /** The object, if it exists. */
  readonly created: T | undefined;
}

/**
 * `create` is called once, by the first access to a member of `value`. It must not throw (a store that cannot be
 * opened logs that and works without its file), and the methods of the object must not use `this`.
 */
export function lazy<T extends object>(create: () => T): Lazy<T> {
  let made: T | undefined;
  const thing = (): T => {
    made ??= create();
    return made;
  };
  return {
    value: new Proxy({} as T, { get: (_, member) => Reflect.get(thing(), member) }),
    create: () => void thing(),
    get created() {
      return made;
    },
  };
}

/** Things that are made when they are first used, so that a program starts before everything is open. */

export interface Deferred<T extends object> {
  /** Stands for the thing: whatever is asked of it makes it. */
  readonly value: T;
  /** Makes it now, if it is not there yet. */
  make(): void;
  /** The thing, if something has made it. */
  readonly made: T | undefined;
}

/**
 * `make` is called once, by the first access to a member of `value`. It must not throw (a store that
 * cannot be opened says so and lives without its file), and its members must not need their `this`.
 */
export function lazy<T extends object>(make: () => T): Deferred<T> {
  let made: T | undefined;
  const thing = (): T => {
    made ??= make();
    return made;
  };
  return {
    value: new Proxy({} as T, { get: (_, member) => Reflect.get(thing(), member) }),
    make: () => void thing(),
    get made() {
      return made;
    },
  };
}

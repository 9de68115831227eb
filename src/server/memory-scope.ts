/** Which memory spaces a gateway key may use. */

export interface ScopedKey {
  readonly name: string;
  /** Globs over names of spaces, `*` and `?`, case told apart; every space when left out. */
  readonly spaces?: readonly string[];
}

/**
 * May the key of this name use this space? Without keys everybody may; with keys, a name that none of
 * them has may nothing. Where several keys share a name, all of them must allow it: who asked cannot be
 * told apart any more.
 * @param owner the name of the gateway key, '' without auth
 */
export function mayUse(keys: readonly ScopedKey[], owner: string, space: string): boolean {
  if (keys.length === 0) return true;
  const own = keys.filter(({ name }) => name === owner);
  return (
    own.length > 0 &&
    own.every(({ spaces }) => spaces === undefined || spaces.some((glob) => matches(glob, space)))
  );
}

/** Walks both texts once, going back to the last star: no pattern is slow. */
function matches(glob: string, name: string): boolean {
  const pattern = [...glob];
  const text = [...name];
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let i = 0; i < text.length; ) {
    if (pattern[at] === '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++resume;
    } else return false;
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}

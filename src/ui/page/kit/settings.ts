/** The reader's choices, kept in this browser: theme, language, density, columns, saved filters. */

const PREFIX = 'hopgate-';

/** The stored value; undefined where nothing is stored, or the browser keeps nothing. */
export function setting(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Stores a value; undefined removes it. */
export function keepSetting(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // The choice holds until the page is loaded again.
  }
}

/** A stored list of texts. */
export function listSetting(name: string): readonly string[] | undefined {
  const stored = setting(name);
  if (stored === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(stored);
    if (Array.isArray(value)) return value.filter((one) => typeof one === 'string');
  } catch {
    // Not ours.
  }
  return undefined;
}

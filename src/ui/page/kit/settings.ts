/** The reader's choices, kept in this browser: theme and language. */

const PREFIX = 'hopgate-';

/** The stored value; undefined where nothing is stored, or the browser keeps nothing. */
export function setting(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepSetting(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // The choice holds until the page is loaded again.
  }
}

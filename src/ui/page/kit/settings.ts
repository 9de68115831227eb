/** The reader's choices, kept in this browser: theme, language, density, columns, saved filters. */

import { type Json, tryParse } from '../../../lib/json/json.ts';

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

/** A stored list; undefined where there is none, or it is not ours. */
export function listSetting(name: string): readonly Json[] | undefined {
  const value = tryParse(setting(name) ?? '');
  return Array.isArray(value) ? value : undefined;
}

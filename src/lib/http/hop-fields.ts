/** Removes the header fields that are meant for the next hop only (RFC 9110 §7.6.1). */

import type { FlatHeaders, ReadonlyHeaders } from './headers.ts';

/**
 * The names in `Connection`, in lower case; undefined when it names only what happens to the connection, as in
 * nearly every message.
 */
export function hopFields(headers: ReadonlyHeaders): ReadonlySet<string> | undefined {
  const value = headers.get('connection');
  if (value === null || value === 'keep-alive' || value === 'close') return undefined;
  const names = new Set<string>();
  for (const part of value.split(',')) {
    const name = part.trim().toLowerCase();
    if (name !== '' && name !== 'keep-alive' && name !== 'close') names.add(name);
  }
  return names.size === 0 ? undefined : names;
}

/** The fields whose names the filter accepts, without those for this hop only. */
export function endToEnd(fields: FlatHeaders, stays: (name: string) => boolean): FlatHeaders {
  const hop = hopFields(fields);
  return fields.where(hop === undefined ? stays : (name) => stays(name) && !hop.has(name));
}

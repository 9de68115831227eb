/** The header fields that a message's sender meant for the next hop alone (RFC 9110 §7.6.1). */

import type { FlatHeaders, ReadonlyHeaders } from './headers.ts';

/**
 * The names in `Connection`, in lower case; undefined where it says nothing but what becomes of the
 * connection, as in nearly every message.
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

/** The fields whose names are to stay, without those that were meant for this hop. */
export function endToEnd(fields: FlatHeaders, stays: (name: string) => boolean): FlatHeaders {
  const hop = hopFields(fields);
  return fields.where(hop === undefined ? stays : (name) => stays(name) && !hop.has(name));
}

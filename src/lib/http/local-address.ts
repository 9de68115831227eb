/** Which host names and addresses mean this machine (loopback) or its own network. */

import { type AddressBytes, blocks, inBlock, parseAddress } from './public-address.ts';

// IPv4 addresses are also written as IPv6: ::ffff:127.0.0.1 (RFC 4291, section 2.5.5.2).
const LOOPBACK = blocks('127.0.0.0/8 ::1 ::ffff:127.0.0.0/104');
// RFC 1918, RFC 4193 (unique local) and link-local addresses.
const PRIVATE = blocks(`
  10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 ::ffff:10.0.0.0/104
  ::ffff:172.16.0.0/108 ::ffff:192.168.0.0/112 ::ffff:169.254.0.0/112 fc00::/7 fe80::/10
`);

const isIn = (address: AddressBytes, list: typeof LOOPBACK) =>
  list.some((block) => inBlock(address, block));

/** Lower case, without the brackets of an IPv6 address in a URL and without the final dot of a name. */
export const plainHost = (host: string) => host.replace(/^\[|\]$|\.$/g, '').toLowerCase();

/** A host as it stands in a URL. */
export const urlHostOf = (host: string) => (host.includes(':') ? `[${host}]` : host);

/**
 * Whether a host can only be this machine: 127.0.0.0/8, `::1`, `::ffff:127.x.x.x`, `localhost` and
 * every name below it (RFC 6761, section 6.3). No name is looked up.
 * @param host a name or an address without a port; an IPv6 address may stand in brackets
 */
export function isLoopback(host: string): boolean {
  if (host === '127.0.0.1' || host === 'localhost') return true;
  const name = plainHost(host);
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  const address = parseAddress(name);
  return address !== undefined && isIn(address, LOOPBACK);
}

/**
 * Whether a host is this machine or one of its own network: loopback, private and link-local
 * addresses, names without a dot, and names that end in .local, .lan or .internal. No name is looked up.
 * @param host as for {@link isLoopback}
 */
export function isLocalNetwork(host: string): boolean {
  if (isLoopback(host)) return true;
  const name = plainHost(host);
  const address = parseAddress(name);
  if (address !== undefined) return isIn(address, PRIVATE);
  if (name === '' || name.includes(':')) return false;
  return !name.includes('.') || /\.(local|lan|internal)$/.test(name);
}

/** Decides which network addresses are public, and where a URL from an untrusted source may lead: pure functions. */

import { withoutTrailing } from '../text/trim-end.ts';
import { words } from '../text/words.ts';

/** An address: 4 or 16 bytes. */
export type AddressBytes = readonly number[];

const bytes4 = (text: string): AddressBytes | undefined => {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  // Only decimal without leading zeros: "010" means 8 to some parsers and 10 to others.
  if (!parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return undefined;
  }
  return parts.map(Number);
};

const groups = (text: string): number[] | undefined => {
  if (text === '') return [];
  const out: number[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (part.includes('.')) {
      const tail = index === parts.length - 1 ? bytes4(part) : undefined;
      if (tail === undefined) return undefined;
      out.push(...tail);
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      const value = Number.parseInt(part, 16);
      out.push(value >> 8, value & 255);
    } else return undefined;
  }
  return out;
};

const bytes6 = (text: string): AddressBytes | undefined => {
  const cut = text.indexOf('::');
  if (cut < 0) {
    const all = groups(text);
    return all?.length === 16 ? all : undefined;
  }
  const tailText = text.slice(cut + 2);
  if (tailText.includes('::')) return undefined;
  const head = groups(text.slice(0, cut));
  const tail = groups(tailText);
  // An IPv4 tail may only be at the end, so never before "::".
  if (head === undefined || tail === undefined || text.slice(0, cut).includes('.')) {
    return undefined;
  }
  const gap = 16 - head.length - tail.length;
  return gap >= 2 ? [...head, ...new Array<number>(gap).fill(0), ...tail] : undefined;
};

/**
 * The bytes of an address in its plain spelling: dotted decimal, or IPv6 (with or without brackets,
 * with an IPv4 tail or not). Undefined for names, zones (`fe80::1%eth0`) and odd spellings.
 */
export function parseAddress(text: string): AddressBytes | undefined {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text;
  return bare.includes(':') ? bytes6(bare) : bytes4(bare);
}

/** A block of addresses, e.g. `10.0.0.0/8`. */
export interface AddressBlock {
  readonly bytes: AddressBytes;
  readonly bits: number;
}

/** An address, or a block written with a slash; undefined for anything else. */
export function parseBlock(text: string): AddressBlock | undefined {
  const slash = text.indexOf('/');
  const bytes = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (bytes === undefined) return undefined;
  if (slash < 0) return { bytes, bits: bytes.length * 8 };
  const bits = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > bytes.length * 8) return undefined;
  return { bytes, bits: Number(bits) };
}

/** Is the address in the block? An address of the other family is not. */
export function inBlock(bytes: AddressBytes, block: AddressBlock): boolean {
  if (bytes.length !== block.bytes.length) return false;
  for (let bit = 0; bit < block.bits; bit += 8) {
    const at = bit / 8;
    const mask = block.bits - bit >= 8 ? 255 : (255 << (8 - (block.bits - bit))) & 255;
    if (((bytes[at]! ^ block.bytes[at]!) & mask) !== 0) return false;
  }
  return true;
}

/** The blocks of addresses in a text. */
export const blocks = (text: string) => words(text).map((one) => parseBlock(one)!);

// https://www.iana.org/assignments/iana-ipv4-special-registry: everything not globally reachable, and
// multicast, the class behind it, and the address at which one cloud serves its machines' secrets.
const NOT_PUBLIC_4 = blocks(`
  0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16 169.254.0.0/16 172.16.0.0/12
  192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
`);
// https://www.iana.org/assignments/iana-ipv6-special-registry. Global unicast is 2000::/3; nothing
// outside is public but what stands for an IPv4 address.
const UNICAST_6 = blocks('2000::/3');
const NOT_PUBLIC_6 = blocks('2001::/23 2001:db8::/32 3fff::/20');
const MAPPED = parseBlock('::ffff:0:0/96')!;
const NAT64 = parseBlock('64:ff9b::/96')!;
const SIX_TO_FOUR = parseBlock('2002::/16')!;

/** The IPv4 address that an IPv6 address leads to, if any. */
function embedded4(bytes: AddressBytes): AddressBytes | undefined {
  if (inBlock(bytes, MAPPED) || inBlock(bytes, NAT64)) return bytes.slice(12);
  if (inBlock(bytes, SIX_TO_FOUR)) return bytes.slice(2, 6);
  // ISATAP (RFC 5214): the interface part 0000:5efe or 0200:5efe, then the IPv4 address.
  const isatap = (bytes[8]! & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e;
  return isatap && bytes[11] === 0xfe ? bytes.slice(12) : undefined;
}

/**
 * Can this address only be a machine on the public internet? False for private, loopback,
 * link-local, shared, multicast and reserved ranges, for IPv6 forms that lead to such an IPv4
 * address (mapped, NAT64, 6to4, ISATAP), and for whatever is not an address.
 */
export function isPublicAddress(text: string): boolean {
  const bytes = parseAddress(text);
  if (bytes === undefined) return false;
  if (bytes.length === 4) return !NOT_PUBLIC_4.some((block) => inBlock(bytes, block));
  const inner = embedded4(bytes);
  if (inner !== undefined && NOT_PUBLIC_4.some((block) => inBlock(inner, block))) return false;
  if (inBlock(bytes, MAPPED) || inBlock(bytes, NAT64)) return true;
  return (
    UNICAST_6.some((block) => inBlock(bytes, block)) &&
    !NOT_PUBLIC_6.some((block) => inBlock(bytes, block))
  );
}

/** The host and port of a URL: `host` without brackets and trailing dots, in lower case; `port` a number. */
export interface UrlHost {
  readonly url: URL;
  readonly host: string;
  readonly port: number;
}

/** A URL may not be fetched; the message for a model or a person says why. */
export class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress';
}

// https://fetch.spec.whatwg.org/#port-blocking, those above 1023; below, only the web's own pass.
const BLOCKED_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669,
  6679, 6697, 10080,
]);

/**
 * Reads a URL the way every browser does (which undoes decimal, octal, hexadecimal, percent-encoded
 * and full-width spellings of addresses).
 * @throws RefusedAddress for other schemes, credentials, and what is no URL
 */
export function urlHost(text: string, base?: string): UrlHost {
  if (text.length > 8192) throw new RefusedAddress('the URL is too long');
  if (!URL.canParse(text, base)) throw new RefusedAddress('this is not an absolute http(s) URL');
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new RefusedAddress(`only http and https URLs can be fetched, not ${url.protocol}`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new RefusedAddress('URLs with a user name or password are not fetched');
  }
  const host = withoutTrailing(url.hostname.replace(/^\[|\]$/g, ''), '.');
  if (host === '') throw new RefusedAddress('the URL names no host');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return { url, host, port };
}

/** Addresses that the operator allows although they are not public. */
export interface Exceptions {
  readonly blocks: readonly (AddressBlock & { readonly port?: number })[];
  readonly names: readonly { readonly name: string; readonly port?: number }[];
}

/**
 * Entries as an operator writes them: `10.1.0.0/16`, `127.0.0.1:8080`, `::1`, `[::1]:80`,
 * `wiki.internal`, `wiki.internal:8443`, `*.internal`.
 */
export function parseExceptions(entries: readonly string[]): Exceptions {
  const found: { blocks: Exceptions['blocks'][number][]; names: Exceptions['names'][number][] } = {
    blocks: [],
    names: [],
  };
  for (const entry of entries) {
    const text = entry.trim().toLowerCase();
    const whole = parseBlock(text);
    if (whole !== undefined) {
      found.blocks.push(whole);
      continue;
    }
    const parts = /^(.+?)(?::(\d{1,5}))?$/.exec(text);
    if (parts === null) continue;
    const port = parts[2] === undefined ? undefined : Number(parts[2]);
    const block = parseBlock(parts[1]!);
    if (block !== undefined) found.blocks.push({ ...block, port });
    else found.names.push({ name: withoutTrailing(parts[1]!, '.'), port });
  }
  return found;
}

/** Does the operator allow this host name (and port)? */
export function isListedName(place: UrlHost, { names }: Exceptions): boolean {
  return names.some(
    ({ name, port }) =>
      (port === undefined || port === place.port) &&
      (name.startsWith('*.') ? place.host.endsWith(name.slice(1)) : place.host === name),
  );
}

/**
 * Checks the addresses of a name: every one must be public or allowed, because a resolver may return any of them
 * next time. An allowed IPv4 address is not allowed in its IPv6 forms.
 * @throws RefusedAddress
 */
export function checkAddresses(
  place: UrlHost,
  addresses: readonly string[],
  exceptions: Exceptions,
): void {
  if (addresses.length === 0) throw new RefusedAddress(`${place.host} has no address`);
  const named = isListedName(place, exceptions);
  let listed = named;
  for (const address of addresses) {
    const bytes = parseAddress(address);
    const own =
      bytes !== undefined &&
      exceptions.blocks.some(
        (block) => inBlock(bytes, block) && (block.port === undefined || block.port === place.port),
      );
    listed ||= own;
    if (named || own || isPublicAddress(address)) continue;
    throw new RefusedAddress(
      `${place.host} is not on the public internet; the operator of this gateway can list it`,
    );
  }
  const web = place.port === 80 || place.port === 443;
  const open = place.port >= 1024 && !BLOCKED_PORTS.has(place.port);
  if (!web && !open && !listed) {
    throw new RefusedAddress(`port ${place.port} is not a port of the web`);
  }
}

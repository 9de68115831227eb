/** Where a request comes from: the client behind trusted proxies, and the address that it asked for. */

import type { ReadonlyHeaders } from './headers.ts';
import { isLoopback } from './local-address.ts';
import { type AddressBlock, inBlock, parseAddress, parseBlock } from './public-address.ts';

/** What the proxies in front of this server say of a request. */
export interface ClientOrigin {
  /** Address of the client, or of the last known proxy. */
  readonly address: string;
  readonly scheme?: 'http' | 'https' | undefined;
  /** `gateway.example.com` or with a port, as the client asked for it. */
  readonly host?: string | undefined;
}

export interface AddressSettings {
  readonly host: string;
  readonly trustedProxies?: readonly string[] | undefined;
}

/** The peer of the connection on which a request came. */
export interface Peers {
  /** Undefined once the connection is closed, and for a request that came on none. */
  peerOf(request: Request): string | undefined;
}

/**
 * Addresses of clients. Asking for that of a connection is a system call, so it is done only where the answer says
 * something: on an address that other machines reach, or behind proxies.
 */
export class ClientAddresses {
  #trusted: readonly AddressBlock[] = [];
  #asks = false;

  constructor(
    private readonly peers: Peers,
    settings: AddressSettings,
  ) {
    this.configure(settings);
  }

  configure({ host, trustedProxies = [] }: AddressSettings): void {
    this.#trusted = trustedProxies.flatMap((text) => parseBlock(text) ?? []);
    this.#asks = this.#trusted.length > 0 || !isLoopback(host);
  }

  /** No request can come through a proxy that is trusted. */
  get direct(): boolean {
    return this.#trusted.length === 0;
  }

  /** The client's address; undefined where it is not asked for, and when the connection is closed. */
  of(request: Request, headers: ReadonlyHeaders = request.headers): string | undefined {
    if (!this.#asks) return undefined;
    const peer = this.peers.peerOf(request);
    return peer === undefined ? undefined : this.#originOf(peer, headers).address;
  }

  /**
   * Gives a request the origin that its client asked for, where TLS or a trusted proxy hides it: what compares an
   * Origin with it, or makes a link, need not know of them.
   */
  restore(request: Request): void {
    const { url } = request;
    const secure = url.startsWith('https:');
    if (this.direct && !secure) return;
    const peer = this.direct ? undefined : this.peers.peerOf(request);
    const origin = peer === undefined ? undefined : this.#originOf(peer, request.headers);
    if (!secure && origin?.scheme === undefined && origin?.host === undefined) return;
    const scheme = origin?.scheme ?? (secure ? 'https' : 'http');
    setPublicOrigin(request, new URL(`${scheme}://${origin?.host ?? new URL(url).host}`).origin);
  }

  #originOf(peer: string, headers: ReadonlyHeaders): ClientOrigin {
    return this.direct
      ? { address: plainAddress(peer) }
      : clientOrigin(peer, headers, this.#trusted);
  }
}

/** One proxy's report of where it got the request from; the last in a list is that of the nearest proxy. */
interface Hop {
  readonly from: string;
  readonly scheme?: string | undefined;
  readonly host?: string | undefined;
}

/** Characters of a header; a longer one is not read. */
const MAX_LENGTH = 4096;

/**
 * The client behind the peer. `Forwarded` (RFC 7239) and `X-Forwarded-*` are believed only of a trusted peer. Both
 * are walked from the right for as long as the address is a trusted one; what a client wrote into them stands
 * further left. A proxy that sets one of the two may hand on the other as the client sent it, so where they disagree
 * neither is believed.
 */
export function clientOrigin(
  peer: string,
  headers: ReadonlyHeaders,
  trusted: readonly AddressBlock[],
): ClientOrigin {
  const address = plainAddress(peer);
  const own = { address };
  if (!isTrusted(address, trusted)) return own;
  const forwarded = headers.get('forwarded');
  const standard = forwarded === null ? undefined : forwardedHops(forwarded);
  const usual = xForwardedHops(headers);
  if (forwarded === null) return usual === undefined ? own : walk(address, usual, trusted);
  if (standard === undefined) return own;
  const walked = walk(address, standard, trusted);
  if (usual === undefined) return walked;
  const other = walk(address, usual, trusted);
  const agree =
    other.address === walked.address &&
    (other.scheme ?? walked.scheme) === (walked.scheme ?? other.scheme) &&
    (other.host ?? walked.host) === (walked.host ?? other.host);
  return agree ? { ...other, ...definedOf(walked) } : own;
}

const definedOf = (origin: ClientOrigin): ClientOrigin =>
  Object.fromEntries(
    Object.entries(origin).filter(([, value]) => value !== undefined),
  ) as unknown as ClientOrigin;

function walk(peer: string, hops: readonly Hop[], trusted: readonly AddressBlock[]): ClientOrigin {
  let address = peer;
  let told: Hop | undefined;
  for (let at = hops.length - 1; at >= 0 && isTrusted(address, trusted); at--) {
    told = hops[at]!;
    const next = addressIn(told.from);
    // "unknown", or a name that a proxy made up: the client is not known, the proxy is.
    if (next === undefined) break;
    address = next;
  }
  return { address, scheme: schemeIn(told?.scheme), host: hostIn(told?.host) };
}

function isTrusted(address: string, trusted: readonly AddressBlock[]): boolean {
  const bytes = parseAddress(address);
  return bytes !== undefined && trusted.some((block) => inBlock(bytes, block));
}

const MAPPED = /^::ffff:(?=\d+\.)/i;

/** An IPv4 address on a socket of IPv6 in its own form. */
const plainAddress = (address: string): string => address.replace(MAPPED, '');

/** `203.0.113.7`, `203.0.113.7:4711`, `2001:db8::17`, `[2001:db8::17]:4711` as an address. */
function addressIn(text: string): string | undefined {
  const bare = text.startsWith('[')
    ? /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1]
    : text.replace(/^([^:]*):\d{1,5}$/, '$1');
  return bare === undefined || parseAddress(bare) === undefined
    ? undefined
    : plainAddress(bare.toLowerCase());
}

function schemeIn(text: string | undefined): 'http' | 'https' | undefined {
  const scheme = text?.toLowerCase();
  // Some proxies name that of a WebSocket.
  if (scheme === 'https' || scheme === 'wss') return 'https';
  return scheme === 'http' || scheme === 'ws' ? 'http' : undefined;
}

/** A host as a Host header has it; undefined for what could mean more in a URL. */
const hostIn = (text: string | undefined): string | undefined =>
  text !== undefined && text.length <= 260 && HOST.test(text) ? text.toLowerCase() : undefined;

const HOST = /^(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Undefined: none of the headers is there, or one is too long. */
function xForwardedHops(headers: ReadonlyHeaders): readonly Hop[] | undefined {
  const lists = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'].map((name) =>
    listIn(headers.get(name)),
  );
  const [from, schemes, hosts] = lists as [List, List, List];
  if (lists.every((list) => list === undefined)) return undefined;
  const length = Math.max(1, from?.length ?? 0);
  return Array.from({ length }, (_, at) => ({
    from: from?.[at] ?? '',
    scheme: besides(schemes, at, length),
    host: besides(hosts, at, length),
  }));
}

type List = readonly string[] | undefined;

/** Proxies extend a list, or replace it by one value: then that value is about the client. */
const besides = (list: List, at: number, length: number): string | undefined =>
  list?.length === length ? list[at] : list?.at(-1);

function listIn(text: string | null): List {
  return text === null || text.length > MAX_LENGTH
    ? undefined
    : text.split(',').map((item) => item.trim());
}

/** `for=192.0.2.43;proto=https, for="[2001:db8::17]:4711"`; undefined for what does not follow RFC 7239. */
export function forwardedHops(text: string): readonly Hop[] | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const hops: Hop[] = [];
  for (const element of splitOutsideQuotes(text, ',') ?? [BROKEN]) {
    const pairs = new Map<string, string>();
    for (const pair of splitOutsideQuotes(element, ';') ?? [BROKEN]) {
      const at = pair.indexOf('=');
      const name = pair.slice(0, Math.max(at, 0)).trim().toLowerCase();
      if (at < 1 || pairs.has(name)) return undefined;
      pairs.set(name, unquoted(pair.slice(at + 1).trim()));
    }
    hops.push({
      from: pairs.get('for') ?? '',
      scheme: pairs.get('proto'),
      host: pairs.get('host'),
    });
  }
  return hops;
}

/** No pair, so that what holds it is refused. */
const BROKEN = '';

/** Undefined: a quote is not closed. */
function splitOutsideQuotes(text: string, separator: string): readonly string[] | undefined {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (quoted && character === '\\') at++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return quoted ? undefined : parts;
}

const unquoted = (text: string): string =>
  text.length >= 2 && text.startsWith('"') && text.endsWith('"')
    ? text.slice(1, -1).replace(/\\(.)/g, '$1')
    : text;

const ORIGINS = new WeakMap<Request, string>();

/**
 * Gives a request another URL and Host. The URL begins with `http://` whatever the origin: Elysia looks for the path
 * from the seventh character on, which for `https://` is a slash of the scheme.
 * @param origin `https://gateway.example.com`
 */
function setPublicOrigin(request: Request, origin: string): void {
  const { host } = new URL(origin);
  const { pathname, search } = new URL(request.url);
  ORIGINS.set(request, origin);
  if (request.headers.get('host') !== host) request.headers.set('host', host);
  Object.defineProperty(request, 'url', { value: `http://${host}${pathname}${search}` });
}

/** For links; of any other request that of its URL. */
export const publicOrigin = (request: Request): string =>
  ORIGINS.get(request) ?? new URL(request.url).origin;

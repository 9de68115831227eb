/** Access checks: gateway keys, the Host header, and requests from pages of other sites. */

import { timingSafeEqual } from 'node:crypto';
import { GatewayError } from '../conversation/errors.ts';
import { digestOfKey, hexOf, type KeyDirectory, type KeyLookup } from '../keys/directory.ts';
import type { Principal } from '../keys/principal.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { isLoopback } from '../lib/http/local-address.ts';
import { comesAround } from '../lib/http/loop-mark.ts';
import { printableLine } from '../lib/text/printable-text.ts';

/** What knows keys. */
export type Keys = Pick<KeyDirectory, 'find'>;

/** What knows the tokens of people. */
export interface Tokens {
  /** Is it a token, whatever it says? */
  isToken(presented: string): boolean;
  /**
   * The person; at once where the token was seen before.
   * @throws GatewayError authentication, overloaded
   */
  find(token: string, now: number): Principal | Promise<Principal>;
}

export interface AccessOptions {
  /** The address that the server is bound to. */
  readonly host: string;
  /** Who asks where no key is needed; undefined: a key is needed. */
  readonly withoutKey: Principal | undefined;
  readonly keys: Keys;
  readonly tokens?: Tokens | undefined;
  readonly admins: Admins;
  /** Origins whose pages may ask without a key; left out: those of this machine alone. */
  readonly origins?: readonly string[] | undefined;
}

/** Checks one request; who it came from. @throws GatewayError, or rejects with one */
export type Access = (headers: ReadonlyHeaders) => Principal | Promise<Principal>;

// What is compared is read before the next request writes its own.
const presentedDigest = new Uint8Array(32);

const IP_LITERAL = /^(\[[0-9a-f:.]+\]|\d{1,3}(\.\d{1,3}){3})$/i;

/**
 * Keys are held as SHA-256 digests (a configuration may hold `sha256:<hex>` itself). A digest is found in a map
 * and compared in constant time: what a digest's place tells in time says nothing of the key. Where no key is
 * needed, only loopback is served: a page that rebinds its own name to 127.0.0.1 shows in `Host`, one that posts
 * across sites in `Origin`.
 */
export function createAccess(options: AccessOptions): Access {
  const { withoutKey, keys, tokens, admins, host, origins } = options;
  if (withoutKey !== undefined) {
    return (headers) => {
      checkOneHost(headers);
      checkHost(headers, host);
      checkOrigin(headers, origins);
      return withoutKey;
    };
  }
  return (headers) => {
    checkOneHost(headers);
    const presented = presentedKey(headers);
    if (presented === undefined) throw missing();
    Bun.SHA256.hash(presented, presentedDigest);
    const now = Date.now();
    const found = keys.find(presented, presentedDigest, now);
    if (found instanceof Promise) return found.then(allowed);
    if (found !== 'unknown') return allowed(found);
    if (admins.find(presentedDigest) !== undefined) {
      throw refused('An admin key is for the admin API alone.', 'admin_key');
    }
    if (tokens?.isToken(presented) === true) return tokens.find(presented, now);
    throw refusalOf(found);
  };
}

function allowed(found: KeyLookup): Principal {
  if (typeof found === 'string') throw refusalOf(found);
  return found;
}

/** The admin keys of a configuration. */
export class Admins {
  readonly #digests: ReadonlyMap<string, Uint8Array>;

  constructor(keys: readonly { reveal(): string }[]) {
    const digests = keys.map((key) => digestOfKey(key.reveal()));
    this.#digests = new Map(digests.map((digest) => [hexOf(digest), digest]));
  }

  /** No admin key is configured: the admin API is off. */
  get none(): boolean {
    return this.#digests.size === 0;
  }

  /** A name for the audit that gives nothing away, `admin:key-1a2b3c`; undefined for another key. */
  find(digest: Uint8Array): string | undefined {
    const hex = hexOf(digest);
    const known = this.#digests.get(hex);
    return known !== undefined && timingSafeEqual(known, digest)
      ? `admin:key-${hex.slice(0, 6)}`
      : undefined;
  }

  /** Do the headers present an admin key? */
  has(headers: ReadonlyHeaders): boolean {
    const presented = this.none ? undefined : presentedKey(headers);
    if (presented === undefined) return false;
    Bun.SHA256.hash(presented, presentedDigest);
    return this.find(presentedDigest) !== undefined;
  }

  /**
   * Who asks the admin API.
   * @throws GatewayError not_found while it is off, authentication, permission for a key of clients
   */
  check(headers: ReadonlyHeaders, keys: Keys): string {
    if (this.none) {
      throw new GatewayError('not_found', 'The admin API is off: set auth.admin_keys.', {
        code: 'admin_off',
      });
    }
    const presented = presentedKey(headers);
    if (presented === undefined) throw missing();
    Bun.SHA256.hash(presented, presentedDigest);
    const actor = this.find(presentedDigest);
    if (actor !== undefined) return actor;
    // A client's key that is not known yet is no admin key either: nobody waits for the answer.
    const found = keys.find(presented, presentedDigest, Date.now());
    if (typeof found === 'string' || found instanceof Promise) throw refusalOf('unknown');
    throw new GatewayError('permission', 'This key is for model requests, not for the admin API.', {
      code: 'not_an_admin_key',
      retryable: false,
    });
  }
}

const refused = (message: string, code: string) =>
  new GatewayError('authentication', message, { code, retryable: false });

const missing = () =>
  refused(
    'This gateway wants a key: send it as "Authorization: Bearer …", "x-api-key: …" or "x-goog-api-key: …".',
    'missing_api_key',
  );

function refusalOf(why: Exclude<KeyLookup, Principal>): GatewayError {
  switch (why) {
    case 'expired':
      return refused('This API key has expired.', 'key_expired');
    case 'blocked':
      return refused('This API key is blocked.', 'key_blocked');
    case 'unreadable':
      return new GatewayError('overloaded', 'The keys of this gateway cannot be read now.', {
        code: 'keys_unreadable',
        retryAfter: 5,
      });
    default:
      return refused('Incorrect API key provided to this gateway.', 'invalid_api_key');
  }
}

/** Headers that hold a key and nothing else, as the vendors' SDKs send it. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'];

/** An empty one is no key, whatever the digest of nothing is. */
function presentedKey(headers: ReadonlyHeaders): string | undefined {
  const bearer = /^bearer\s+(\S+)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  for (const name of KEY_HEADERS) {
    const key = headers.get(name)?.trim();
    if (key !== undefined) return key === '' ? undefined : key;
  }
  return undefined;
}

/**
 * Servers and proxies do not agree on which of two counts: they are to be refused (RFC 9112, section 3.2). The
 * runtime joins them.
 * @throws GatewayError invalid_request
 */
export function checkOneHost(headers: Pick<ReadonlyHeaders, 'get'>): void {
  if (headers.get('host')?.includes(',') !== true) return;
  const options = { code: 'invalid_host', retryable: false } as const;
  throw new GatewayError('invalid_request', 'This request has more than one Host.', options);
}

function checkHost(headers: ReadonlyHeaders, bound: string): void {
  const host = (headers.get('host') ?? '').replace(/:\d+$/, '').toLowerCase();
  if (host === '' || isLoopback(host) || IP_LITERAL.test(host) || host === bound) return;
  throw new GatewayError(
    'permission',
    `Host '${printableLine(host, 100)}' is not served here without a key (protection against DNS rebinding).`,
    { code: 'host_not_allowed', retryable: false },
  );
}

// A scheme, a name of at most 253 characters, and a port.
const MAX_PER_ORIGIN = 512;

function checkOrigin(headers: ReadonlyHeaders, origins: readonly string[] = []): void {
  const origin = headers.get('origin');
  if (origin === null || origins.includes(origin)) return;
  const readable = origin.length <= MAX_PER_ORIGIN && URL.canParse(origin);
  const host = readable ? new URL(origin).hostname : '';
  if (isLoopback(host)) return;
  throw new GatewayError(
    'permission',
    'Pages of other sites may not use this gateway without a key, unless listen.cors names them.',
    { code: 'origin_not_allowed', retryable: false },
  );
}

/** @throws GatewayError for a request that the gateway of this id has sent itself */
export function refuseLoop(headers: ReadonlyHeaders, gatewayId: string | undefined): void {
  if (gatewayId === undefined || !comesAround(headers, gatewayId)) return;
  throw new GatewayError(
    'upstream',
    'This request has passed this gateway already: the base_url of a provider leads back to it.',
    { code: 'loop_detected', status: 508, retryable: false },
  );
}

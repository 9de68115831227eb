/** Who may ask: gateway keys, the Host header, and pages of other sites. */

import { timingSafeEqual } from 'node:crypto';
import { GatewayError } from '../conversation/errors.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { isLoopback } from '../lib/http/local-address.ts';
import { printableLine } from '../lib/text/printable-text.ts';

interface NamedKey {
  readonly name: string;
  readonly key: { reveal(): string };
}

export interface AccessOptions {
  readonly keys: readonly NamedKey[];
  /** The address that the server is bound to. */
  readonly host: string;
}

/** Checks one request; the name of the key it came with, '' where none is needed. */
export type Access = (headers: ReadonlyHeaders) => string;

// One native call; a hash object would cost every request three times as much.
const sha256 = (text: string) => Bun.SHA256.hash(text);
// What is compared is read before the next request writes its own.
const presentedDigest = new Uint8Array(32);
const HASHED = /^sha256:([0-9a-f]{64})$/i;

const IP_LITERAL = /^(\[[0-9a-f:.]+\]|\d{1,3}(\.\d{1,3}){3})$/i;

/**
 * Keys are held as SHA-256 digests (a configuration may hold `sha256:<hex>` itself) and compared in
 * constant time, each of them, so that timing tells nothing. Without keys, only loopback is served:
 * a page that rebinds its own name to 127.0.0.1 shows in `Host`, one that posts across sites in
 * `Origin`.
 */
export function createAccess(options: AccessOptions): Access {
  const digests = options.keys.map(({ name, key }) => {
    const text = key.reveal();
    const hashed = HASHED.exec(text)?.[1];
    return { name, digest: hashed === undefined ? sha256(text) : Buffer.from(hashed, 'hex') };
  });
  const open = digests.length === 0;
  return (headers) => {
    if (open) {
      checkHost(headers, options.host);
      checkOrigin(headers);
      return '';
    }
    const presented = presentedKey(headers);
    // An empty one is no key, whatever the digest of nothing is.
    if (presented === undefined || presented === '') {
      throw new GatewayError(
        'authentication',
        'This gateway wants a key: send it as "Authorization: Bearer …" or "x-api-key: …".',
        { code: 'missing_api_key', retryable: false },
      );
    }
    Bun.SHA256.hash(presented, presentedDigest);
    let found: string | undefined;
    for (const known of digests) {
      if (timingSafeEqual(known.digest, presentedDigest)) found ??= known.name;
    }
    if (found === undefined) {
      throw new GatewayError('authentication', 'Incorrect API key provided to this gateway.', {
        code: 'invalid_api_key',
        retryable: false,
      });
    }
    return found;
  };
}

/** Headers that hold a key and nothing else, as the vendors' SDKs send it. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key'];

function presentedKey(headers: ReadonlyHeaders): string | undefined {
  const bearer = /^bearer\s+(\S+)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1];
  for (const name of KEY_HEADERS) {
    const key = headers.get(name)?.trim();
    if (key !== undefined) return bearer ?? key;
  }
  return bearer;
}

/** Does it name this machine as its host, and come from no page of another site? */
export function isLocalRequest(headers: ReadonlyHeaders): boolean {
  try {
    checkHost(headers, 'localhost');
    checkOrigin(headers);
    return true;
  } catch {
    return false;
  }
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
const MOST_OF_ORIGIN = 512;

function checkOrigin(headers: ReadonlyHeaders): void {
  const origin = headers.get('origin');
  if (origin === null) return;
  const readable = origin.length <= MOST_OF_ORIGIN && URL.canParse(origin);
  const host = readable ? new URL(origin).hostname : '';
  if (isLoopback(host)) return;
  throw new GatewayError(
    'permission',
    'Pages of other sites may not use this gateway without a key.',
    { code: 'origin_not_allowed', retryable: false },
  );
}

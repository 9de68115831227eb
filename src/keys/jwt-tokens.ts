/** People with a token (JWT, RFC 7519) of an identity provider: verified once, then known by its digest. */

import type { JSONWebKeySet, JWTPayload } from 'jose';
import type { SharedBudget } from '../config/sections/keys/budgets.ts';
import { type JwtConfig, settingsOfPerson } from '../config/sections/keys/jwt.ts';
import type { Permissions } from '../config/sections/keys/settings.ts';
import { GatewayError } from '../conversation/errors.ts';
import { readUpTo } from '../lib/http/read-up-to.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../lib/json/json.ts';
import { valueAt } from '../lib/json/pointer.ts';
import { NewestMap } from '../lib/loop/newest-map.ts';
import { readNamedFile } from '../lib/text/named-file.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { hexOf, sha256 } from './directory.ts';
import { makePrincipal } from './make-principal.ts';
import type { Principal } from './principal.ts';

/** Loaded with the first token: most gateways have no people. */
const jose = () => import('jose');

const FORM = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Characters of a token. */
const MAX_CHARS = 16_384;
/** Tokens that are remembered, and for how long: a key that the issuer withdraws ends them no later. */
const MAX_TOKENS = 10_000;
const REMEMBERED_MS = 5 * 60_000;
/** One line of a subject or a label. */
const ONE_LINE = /^\P{Cc}{1,200}$/u;

interface KnownToken {
  readonly principal: Principal;
  /** Milliseconds since 1970. */
  readonly until: number;
}

interface InForce {
  readonly config: JwtConfig;
  readonly budgets: readonly SharedBudget[];
  readonly routes: ReadonlySet<string>;
  readonly keySet: JwksCache;
}

export class JwtTokens {
  readonly #known = new NewestMap<string, KnownToken>(MAX_TOKENS);
  #inForce: InForce | undefined;

  constructor(private readonly options: Omit<JwksCacheOptions, 'source'>) {}

  /** Puts a configuration in force; tokens are verified again, the key set of the same source stays. */
  configure(
    config: JwtConfig | undefined,
    budgets: readonly SharedBudget[],
    routes: ReadonlySet<string>,
  ): void {
    this.#known.clear();
    const last = this.#inForce;
    if (config === undefined) {
      this.#inForce = undefined;
      return;
    }
    const same = JSON.stringify(last?.config.jwks) === JSON.stringify(config.jwks);
    const keySet =
      last !== undefined && same
        ? last.keySet
        : new JwksCache({ ...this.options, source: config.jwks });
    this.#inForce = { config, budgets, routes, keySet };
  }

  isToken(presented: string): boolean {
    return presented.startsWith('eyJ') && presented.length <= MAX_CHARS && FORM.test(presented);
  }

  /**
   * The person; at once where the token was seen before.
   * @param now milliseconds since 1970
   * @throws GatewayError, or rejects with one: authentication, overloaded while there is no key set
   */
  find(token: string, now: number): Principal | Promise<Principal> {
    const digest = hexOf(sha256(token));
    const known = this.#known.get(digest);
    if (known !== undefined && now < known.until) return known.principal;
    return this.#verify(token, digest, now);
  }

  async #verify(token: string, digest: string, now: number): Promise<Principal> {
    const inForce = this.#inForce;
    if (inForce === undefined) throw invalidToken('Tokens are not accepted here.');
    const payload = await verified(token, inForce, now);
    const principal = personOf(payload, inForce);
    const until = Math.min(now + REMEMBERED_MS, principal.expires ?? now);
    // A reload in between has other rules.
    if (inForce === this.#inForce) this.#known.set(digest, { principal, until });
    return principal;
  }
}

const invalidToken = (message: string, code = 'invalid_token') =>
  new GatewayError('authentication', message, { code, retryable: false });

/** The claims of a token whose signature, issuer, audience and times are right. @throws GatewayError */
async function verified(
  token: string,
  { config, keySet }: InForce,
  now: number,
): Promise<JWTPayload> {
  const { createLocalJWKSet, errors, jwtVerify } = await jose();
  const verifyWith = async (keys: ReturnType<JwksCache['current']>) => {
    const set = await keys.catch((thrown: unknown) => {
      throw new GatewayError('overloaded', 'Tokens cannot be verified now.', {
        code: 'jwks_unavailable',
        retryAfter: 10,
        cause: thrown,
      });
    });
    const { payload } = await jwtVerify(token, createLocalJWKSet(set), {
      issuer: config.issuer,
      audience: [...config.audience],
      algorithms: [...config.algorithms],
      clockTolerance: config.clockSkewMs / 1000,
      currentDate: new Date(now),
      requiredClaims: ['exp', 'sub'],
    });
    return payload;
  };
  try {
    try {
      return await verifyWith(keySet.current());
    } catch (thrown) {
      // The issuer may have a new key since.
      if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
      return await verifyWith(keySet.anew());
    }
  } catch (thrown) {
    if (thrown instanceof GatewayError) throw thrown;
    if (thrown instanceof errors.JWTExpired) {
      throw invalidToken('This token has expired.', 'token_expired');
    }
    if (thrown instanceof errors.JWTClaimValidationFailed) {
      throw invalidToken(`The claim "${thrown.claim}" of this token is not accepted here.`);
    }
    throw invalidToken('This token is not valid here.');
  }
}

/** @throws GatewayError for a subject that can be no name */
function personOf(payload: JWTPayload, { config, budgets, routes }: InForce): Principal {
  const { claims, clockSkewMs } = config;
  const { sub, exp } = payload;
  if (typeof sub !== 'string' || !ONE_LINE.test(sub)) {
    throw invalidToken('The claim "sub" of this token is not accepted here.');
  }
  const id = `jwt:${sub}`;
  const name = textIn(claimOf(payload, claims.name ?? 'sub')) ?? sub;
  const labels: Record<string, string> = {};
  for (const [label, claim] of Object.entries(claims.labels)) {
    const value = textIn(claimOf(payload, claim));
    if (value !== undefined) labels[label] = value;
  }
  const { expires: ofAll, ...settings } = settingsOfPerson(config, id, name, routes);
  const expires = Math.min((exp ?? 0) * 1000 + clockSkewMs, ofAll ?? Number.POSITIVE_INFINITY);
  return makePrincipal(
    {
      id,
      name,
      sees: 'own',
      settings: [{ ...settings, expires }],
      narrowed: permissionsIn(payload, claims),
      labels,
    },
    budgets,
  );
}

/** The value of a claim by its name, or by a pointer into a nested one. */
const claimOf = (payload: JWTPayload, claim: string): Json | undefined => {
  const claims = payload as unknown as JsonObject;
  if (Object.hasOwn(claims, claim)) return claims[claim];
  return claim.startsWith('/') ? valueAt(claims, claim) : undefined;
};

/** A text, number or flag; a list of one is its item. Undefined for what has no single value. */
function textIn(value: Json | undefined): string | undefined {
  const single = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof single === 'number' || typeof single === 'boolean') return String(single);
  return typeof single === 'string' && ONE_LINE.test(single) ? single : undefined;
}

/** What claims allow. A claim that is configured and missing allows nothing: it is the issuer who grants. */
function permissionsIn(payload: JWTPayload, claims: JwtConfig['claims']): Permissions {
  const found: Record<string, readonly string[]> = {};
  for (const name of ['models', 'tools', 'routes', 'spaces'] as const) {
    const claim = claims[name];
    if (claim !== undefined) found[name] = listIn(claimOf(payload, claim));
  }
  return found;
}

const MAX_ENTRIES = 200;

/** A list of texts, or one text with spaces between the entries, as in `scope`. */
function listIn(value: Json | undefined): readonly string[] {
  const list = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return list
    .filter((entry): entry is string => typeof entry === 'string' && ONE_LINE.test(entry))
    .slice(0, MAX_ENTRIES);
}

export type JwksSource = { readonly url: string } | { readonly file: string };

/** A set of this age is fetched again, without any request waiting for it. */
const FRESH_MS = 10 * 60_000;
/** A set of this age is not used any more: a key may have been withdrawn long ago. */
const STALE_MS = 24 * 3_600_000;
/** Between two fetches for keys that the set does not have, and between two that fail. */
const PAUSE_MS = 30_000;
const FETCH_MS = 5000;
const MAX_BYTES = 1024 * 1024;

export interface JwksCacheOptions {
  readonly source: JwksSource;
  /** A fetch failed. */
  readonly onFailure: (message: string) => void;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export class JwksCache {
  #set: JSONWebKeySet | undefined;
  #text = '';
  #fetched = Number.NEGATIVE_INFINITY;
  #tried = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(private readonly options: JwksCacheOptions) {}

  /** The set; the same object until the keys change. @throws Error when there is none that may be used */
  async current(): Promise<JSONWebKeySet> {
    const age = this.options.now() - this.#fetched;
    if (this.#set !== undefined && age < STALE_MS) {
      if (age >= FRESH_MS) void this.#refresh();
      return this.#set;
    }
    this.#set = undefined;
    await this.#refresh();
    if (this.#set === undefined) throw new Error('the key set of the issuer cannot be had');
    return this.#set;
  }

  /** The set after another fetch, for a key that is not in it; fetches at most once in a while. */
  async anew(): Promise<JSONWebKeySet> {
    await this.#refresh();
    return this.current();
  }

  /** One at a time, and none soon after another. Never rejects. */
  #refresh(): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    const { now, onFailure } = this.options;
    if (now() - this.#tried < PAUSE_MS) return Promise.resolve();
    this.#tried = now();
    this.#running = this.#load()
      .catch((thrown) => onFailure(messageOf(thrown)))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async #load(): Promise<void> {
    const { source, now } = this.options;
    const text =
      'url' in source ? await this.#download(source.url) : readNamedFile(source.file, MAX_BYTES);
    const value = tryParse(text);
    if (!isObject(value) || !Array.isArray(value.keys) || !value.keys.every(isObject)) {
      throw new Error('what came is not a key set (JWKS)');
    }
    this.#fetched = now();
    if (text === this.#text && this.#set !== undefined) return;
    this.#text = text;
    this.#set = value as unknown as JSONWebKeySet;
  }

  async #download(url: string): Promise<string> {
    const response = await this.options.fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(FETCH_MS),
    });
    if (!response.ok) throw new Error(`the issuer answered ${response.status}`);
    const { bytes, truncated } = await readUpTo(response.body, MAX_BYTES);
    if (truncated) throw new Error(`the key set is larger than ${MAX_BYTES} bytes`);
    return new TextDecoder().decode(bytes);
  }
}

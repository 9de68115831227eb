/** The key set (JWKS) of an identity provider: fetched rarely, and used on while it cannot be fetched. */

import { readFile } from 'node:fs/promises';
import type { JSONWebKeySet } from 'jose';
import { readUpTo } from '../lib/http/read-up-to.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { messageOf } from '../lib/text/thrown.ts';

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
      'url' in source ? await this.#download(source.url) : await readFile(source.file, 'utf8');
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

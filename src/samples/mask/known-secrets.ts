/** Secrets of one exchange: those of the configuration, and values of its credential headers and URLs. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { percentDecoded } from '../../lib/text/printable-text.ts';
import { isSecretHeader, redactHeaders, redactText } from '../../lib/text/redact.ts';
import { spellings } from './body-mask.ts';

/** Query parameters that hold no secrets; any other may be a key. */
const PUBLIC_QUERY = new Set(['beta', 'api-version', 'alt', 'stream', 'version']);

const SCHEME = /^(?:Bearer|Basic|Token)\s+/i;

/** Most learned values of one exchange: each costs a search through all bodies. */
const MAX_LEARNED = 64;

/** Values that are masked wherever they occur: in bodies, error texts, notes. */
export class KnownSecrets {
  readonly #known: Set<string>;
  readonly #learned = new Set<string>();
  #literals: readonly string[] | undefined;

  /** @param known secrets known from the start, as of {@link spellings} */
  constructor(known: readonly string[] = []) {
    this.#known = new Set(known);
  }

  /** Longest first: masking a part would hide the rest. */
  get literals(): readonly string[] {
    this.#literals ??= [...this.#known].toSorted((a, b) => b.length - a.length);
    return this.#literals;
  }

  /** A client may choose this value, so spellings that could match JSON structure are left out. */
  learn(secret: string): void {
    if (this.#learned.has(secret) || this.#learned.size >= MAX_LEARNED) return;
    this.#learned.add(secret);
    for (const spelling of spellings(secret, false)) this.#known.add(spelling);
    this.#literals = undefined;
  }

  /** Learns the value of a credential header, and for `Basic` the decoded pair. */
  #learnHeader(value: string): void {
    const credential = value.replace(SCHEME, '');
    this.learn(credential);
    if (!/^basic\s/i.test(value)) return;
    const pair = Buffer.from(credential, 'base64').toString();
    this.learn(pair);
    this.learn(pair.slice(pair.indexOf(':') + 1));
  }

  /** Learns credentials from headers and returns the headers masked, with names in lower case. */
  headers(headers: ReadonlyHeaders): {
    readonly headers: Record<string, string>;
    readonly count: number;
  } {
    const pairs: [string, string][] = [];
    for (const [name, value] of headers) {
      if (isSecretHeader(name)) this.#learnHeader(value);
      pairs.push([name, value]);
    }
    const redacted = redactHeaders(pairs);
    return { headers: Object.fromEntries(redacted.headers), count: redacted.count };
  }

  /** A URL or query string with all values masked except those of known harmless parameters. */
  url(url: string): string {
    const at = url.indexOf('?');
    const base = redactText(at < 0 ? url : url.slice(0, at)).text;
    if (at < 0) return base;
    const query = url
      .slice(at + 1)
      .split('&')
      .map((pair) => {
        const equals = pair.indexOf('=');
        const name = equals < 0 ? pair : pair.slice(0, equals);
        if (equals < 0 || PUBLIC_QUERY.has(name.toLowerCase())) return redactText(pair).text;
        const value = pair.slice(equals + 1);
        this.learn(value);
        this.learn(percentDecoded(value));
        return `${name}=${'*'.repeat(value.length)}`;
      });
    return `${base}?${query.join('&')}`;
  }
}

/** Secrets that an exchange itself tells: whatever stands in its credential headers and URLs. */

import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isSecretHeader, redactHeaders, redactText } from '../../lib/text/redact.ts';
import { spellings } from './body-mask.ts';

/** Query parameters that are no secrets: everything else in an upstream's URL may be a key. */
const PUBLIC_QUERY = new Set(['beta', 'api-version', 'alt', 'stream', 'version']);

const SCHEME = /^(?:Bearer|Basic|Token)\s+/i;

/** So many values of one exchange are looked for in its bodies: each costs a search through all of them. */
const MOST_LEARNED = 64;

/** Values to be masked wherever they turn up: in bodies, error texts, notes. */
export class KnownSecrets {
  readonly #known: Set<string>;
  readonly #learned = new Set<string>();
  #literals: readonly string[] | undefined;

  /** @param known what is known from the start, as of {@link spellings} */
  constructor(known: readonly string[] = []) {
    this.#known = new Set(known);
  }

  /** Longer ones first: a part that was masked would hide the rest. */
  get literals(): readonly string[] {
    this.#literals ??= [...this.#known].toSorted((a, b) => b.length - a.length);
    return this.#literals;
  }

  /** A stranger may have chosen it: it must not pass for the structure of a JSON text. */
  learn(secret: string): void {
    if (this.#learned.has(secret) || this.#learned.size >= MOST_LEARNED) return;
    this.#learned.add(secret);
    for (const spelling of spellings(secret, false)) this.#known.add(spelling);
    this.#literals = undefined;
  }

  /** The value of a credential header, and of `Basic` what its base64 holds. */
  #learnHeader(value: string): void {
    const credential = value.replace(SCHEME, '');
    this.learn(credential);
    if (!/^basic\s/i.test(value)) return;
    const pair = Buffer.from(credential, 'base64').toString();
    this.learn(pair);
    this.learn(pair.slice(pair.indexOf(':') + 1));
  }

  /** The headers with credentials masked, which are remembered; names in lower case. */
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

  /** A URL or query string with every value masked that is not known to be harmless. */
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
        this.learn(plain(value));
        return `${name}=${'*'.repeat(value.length)}`;
      });
    return `${base}?${query.join('&')}`;
  }
}

function plain(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

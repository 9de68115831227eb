/** Secrets that an exchange itself tells: whatever stands in its credential headers and URLs. */

import type { HeaderFields } from '../../lib/header-list.ts';
import { isSecretHeader, redactHeaders, redactText } from '../../lib/redact.ts';
import { maskText, spellings } from './body-mask.ts';

/** Query parameters that are no secrets: everything else in an upstream's URL may be a key. */
const PUBLIC_QUERY = new Set(['beta', 'api-version', 'alt', 'stream', 'version']);

const SCHEME = /^(?:Bearer|Basic|Token)\s+/i;

/** Values to be masked wherever they turn up: in bodies, error texts, notes. */
export class KnownSecrets {
  readonly #literals: Set<string>;

  /** @param literals what is known from the start, as of {@link spellings} */
  constructor(literals: readonly string[] = []) {
    this.#literals = new Set(literals);
  }

  get literals(): readonly string[] {
    return [...this.#literals];
  }

  learn(secret: string): void {
    for (const spelling of spellings(secret)) this.#literals.add(spelling);
  }

  /** The headers with credentials masked, which are remembered; names in lower case. */
  headers(headers: HeaderFields): {
    readonly headers: Record<string, string>;
    readonly count: number;
  } {
    const pairs: [string, string][] = [];
    for (const [name, value] of headers) {
      if (isSecretHeader(name)) this.learn(value.replace(SCHEME, ''));
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

  /** Words of ours that may quote a vendor. */
  text(text: string): string {
    const latin1 = Buffer.from(text, 'utf8').toString('latin1');
    const masked = maskText(latin1, this.literals);
    return masked === latin1 ? text : Buffer.from(masked, 'latin1').toString('utf8');
  }
}

function plain(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Sources by number: what `[n]` in an answer means, over all searches of a conversation. */

import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { Source } from '../tool.ts';

/** A source with the number under which the model knows it. */
export interface NumberedSource extends Source {
  readonly n: number;
}

/** What every string minted here begins with; no vendor's, and no seal of another room. */
export const MINT = 'hopgate-hit1.';

/** Characters of a source's text that travel with a client. */
const CARRIED = 600;

/**
 * `encrypted_content` of a result that this gateway found: the source itself, so that a later request
 * brings the search back whoever answers it.
 */
export function mintSource(source: NumberedSource): string {
  const { n, text, published } = source;
  const value = {
    n,
    ...(text ? { s: text.slice(0, CARRIED) } : {}),
    ...(published ? { p: published } : {}),
  };
  return MINT + Buffer.from(JSON.stringify(value)).toString('base64url');
}

export const isMinted = (value: Json | undefined): value is string =>
  typeof value === 'string' && value.startsWith(MINT);

/** The source of a `web_search_result` (or a page of the like); undefined where it names no URL. */
export function readSource(value: JsonObject, fallback: number): NumberedSource | undefined {
  const { url, title, encrypted_content: minted, page_age: age } = value;
  if (typeof url !== 'string') return undefined;
  const kept = isMinted(minted)
    ? tryParse(Buffer.from(minted.slice(MINT.length), 'base64url').toString())
    : undefined;
  const { n, s, p } = isObject(kept) ? kept : {};
  const published = typeof p === 'string' ? p : typeof age === 'string' ? age : undefined;
  return {
    n: typeof n === 'number' ? n : fallback,
    url,
    title: typeof title === 'string' ? title : url,
    ...(typeof s === 'string' ? { text: s } : {}),
    ...(published === undefined ? {} : { published }),
  };
}

/** The sources of one exchange. */
export class Sources {
  readonly #byNumber = new Map<number, NumberedSource>();
  #next = 1;

  get size(): number {
    return this.#byNumber.size;
  }

  /** The number that the next new source will get. */
  get next(): number {
    return this.#next;
  }

  get(n: number): NumberedSource | undefined {
    return this.#byNumber.get(n);
  }

  /** All of them, by number, quotations cut to what a citation needs. */
  get all(): readonly NumberedSource[] {
    return [...this.#byNumber.values()].map(({ text, ...source }) =>
      text === undefined ? source : { ...source, text: text.slice(0, 150) },
    );
  }

  /** Numbers them through, in order. */
  add(sources: readonly Source[]): readonly NumberedSource[] {
    return sources.map((source) => {
      const numbered = { ...source, n: this.#next++ };
      this.#byNumber.set(numbered.n, numbered);
      return numbered;
    });
  }

  /** Takes over sources that an earlier exchange numbered; the latest of a number counts. */
  restore(sources: readonly NumberedSource[]): void {
    for (const source of sources) {
      this.#byNumber.set(source.n, source);
      if (source.n >= this.#next) this.#next = source.n + 1;
    }
  }
}

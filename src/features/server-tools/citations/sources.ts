/** Numbered sources: what `[n]` in an answer means, over all searches of a conversation. */

import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { CitableSource } from '../tool.ts';

export interface NumberedSource extends CitableSource {
  readonly n: number;
}

/** The prefix of every string minted here; no vendor and no other envelope uses it. */
export const MINT = 'hopgate-hit1.';

/** Characters of a source's text that the client carries. */
const MAX_SOURCE_TEXT = 600;

/**
 * `encrypted_content` of a result that this gateway found: the source itself, so that a later request
 * can restore the search for any upstream.
 */
export function mintSource(source: NumberedSource): string {
  const { n, text, published } = source;
  const value = {
    n,
    ...(text ? { s: text.slice(0, MAX_SOURCE_TEXT) } : {}),
    ...(published ? { p: published } : {}),
  };
  return MINT + Buffer.from(JSON.stringify(value)).toString('base64url');
}

export const isMinted = (value: Json | undefined): value is string =>
  typeof value === 'string' && value.startsWith(MINT);

/** The source of a `web_search_result` or a similar object; undefined without a URL. */
export function readSource(value: JsonObject, fallback: number): NumberedSource | undefined {
  const { url, title, encrypted_content: minted, page_age: age } = value;
  if (typeof url !== 'string') return undefined;
  const decoded = isMinted(minted)
    ? tryParse(Buffer.from(minted.slice(MINT.length), 'base64url').toString())
    : undefined;
  const { n, s, p } = isObject(decoded) ? decoded : {};
  const published = typeof p === 'string' ? p : typeof age === 'string' ? age : undefined;
  return {
    n: typeof n === 'number' ? n : fallback,
    url,
    title: typeof title === 'string' ? title : url,
    text: typeof s === 'string' ? s : undefined,
    published,
  };
}

/** The sources of one exchange. */
export class Sources {
  readonly #byNumber = new Map<number, NumberedSource>();
  #next = 1;

  get size(): number {
    return this.#byNumber.size;
  }

  /** The number of the next new source. */
  get next(): number {
    return this.#next;
  }

  get(n: number): NumberedSource | undefined {
    return this.#byNumber.get(n);
  }

  /** All sources in the order of their numbers, their texts cut to what a citation needs. */
  get all(): readonly NumberedSource[] {
    return [...this.#byNumber.values()].map(({ text, ...source }) =>
      text === undefined ? source : { ...source, text: text.slice(0, 150) },
    );
  }

  /** Numbers new sources in order. */
  add(sources: readonly CitableSource[]): readonly NumberedSource[] {
    return sources.map((source) => {
      const numbered = { ...source, n: this.#next++ };
      this.#byNumber.set(numbered.n, numbered);
      return numbered;
    });
  }

  /** Takes over sources with numbers from an earlier exchange; of one number the latest counts. */
  restore(sources: readonly NumberedSource[]): void {
    for (const source of sources) {
      this.#byNumber.set(source.n, source);
      if (source.n >= this.#next) this.#next = source.n + 1;
    }
  }
}

export interface RenderedSearch {
  readonly query: string;
  /** The engine's own answer. */
  readonly summary?: string;
  readonly sources: readonly NumberedSource[];
  /** The client reads citations: the model is asked to mark its sources. */
  readonly cite?: boolean;
}

/** JSON with numbered results; `[n]` in an answer cites result n. */
export function renderHits({ query, summary, sources, cite = false }: RenderedSearch): string {
  const results = sources.map(
    ({ n, title, url, text, published }): Json => ({
      n,
      title,
      url,
      ...(text ? { snippet: text } : {}),
      ...(published ? { published } : {}),
    }),
  );
  return JSON.stringify({
    query,
    ...(summary ? { summary } : {}),
    results,
    ...(cite ? { note: 'Cite a result as [n] after what it supports.' } : {}),
  });
}

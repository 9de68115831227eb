/** Search results as text for the model; the same results always give the same text. */

import type { Json } from '../../../lib/json/json.ts';
import type { NumberedSource } from './sources.ts';

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

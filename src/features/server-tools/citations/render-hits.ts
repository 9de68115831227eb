/** Search results as the model reads them; the same text whenever the same results are told again. */

import type { Json } from '../../../lib/json/json.ts';
import type { NumberedSource } from './sources.ts';

export interface Hits {
  readonly query: string;
  /** An answer that the engine itself gave. */
  readonly summary?: string;
  readonly sources: readonly NumberedSource[];
  /** The client reads citations: the model is asked to mark what it cites. */
  readonly cite?: boolean;
}

/** JSON with numbered results; what is cited as `[n]` means result n. */
export function renderHits({ query, summary, sources, cite = false }: Hits): string {
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
    ...(cite ? { note: 'Cite a result as [n] behind what it supports.' } : {}),
  });
}

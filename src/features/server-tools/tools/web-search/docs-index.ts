/** Full-text search over local pages, such as the manual, as a search engine. */

import { fullText, searchWords } from '../../../../lib/text/full-text.ts';
import type { SearchQuery, SearchResults } from './engine.ts';

export interface DocsPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** Anything that finds pages: the manual, {@link memoryIndex}, or a database. */
export interface DocsIndex {
  search(query: string, count: number): readonly DocsPage[] | Promise<readonly DocsPage[]>;
}

export async function searchDocs(
  index: DocsIndex,
  { query, count }: SearchQuery,
): Promise<SearchResults> {
  const words = searchWords(query);
  const found = await index.search(query, count);
  const hits = found.map(({ url, title, text }) => ({
    url,
    title,
    snippet: passage(text, words),
  }));
  return { hits };
}

/** An index in memory over a fixed set of pages. */
export const memoryIndex = (pages: readonly DocsPage[]): DocsIndex => fullText(pages);

const PASSAGE = 600;

/** The part of the text around the first word of the query that it contains. */
function passage(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const start = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 80);
  const piece = text.slice(start, start + PASSAGE).trim();
  return `${start > 0 ? '…' : ''}${piece}${start + PASSAGE < text.length ? '…' : ''}`;
}

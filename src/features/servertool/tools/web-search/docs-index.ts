/** Full-text search over pages that are at hand, such as the manual. */

import type { Found, SearchQuery } from './engine.ts';

export interface DocsPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** Anything that finds pages; the built-in one below, or a database. */
export interface DocsIndex {
  search(query: string, count: number): readonly DocsPage[];
}

export function searchDocs(index: DocsIndex, { query, count }: SearchQuery): Found {
  const words = tokens(query);
  const hits = index.search(query, count).map(({ url, title, text }) => ({
    url,
    title,
    snippet: passage(text, words),
  }));
  return { hits };
}

// Words of letters and digits; Han, which writes without blanks, by pairs of characters.
function tokens(text: string): readonly string[] {
  const out: string[] = [];
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}_]+/gu)) {
    if (!/\p{Script=Han}/u.test(word)) out.push(word);
    else if (word.length < 2) out.push(word);
    else for (let at = 0; at + 1 < word.length; at++) out.push(word.slice(at, at + 2));
  }
  return out;
}

// BM25 with the usual constants; a word of the title counts like three of the text.
const K = 1.2;
const B = 0.75;
const TITLE = 3;

/** An index in memory over a fixed set of pages. */
export function memoryIndex(pages: readonly DocsPage[]): DocsIndex {
  const counts = pages.map(({ title, text }) => {
    const found = new Map<string, number>();
    for (const word of tokens(title)) found.set(word, (found.get(word) ?? 0) + TITLE);
    for (const word of tokens(text)) found.set(word, (found.get(word) ?? 0) + 1);
    return found;
  });
  const lengths = counts.map((found) => [...found.values()].reduce((sum, n) => sum + n, 0));
  const mean = lengths.reduce((sum, n) => sum + n, 0) / Math.max(1, pages.length);
  return {
    search(query, count) {
      const scores = pages.map(() => 0);
      for (const word of new Set(tokens(query))) {
        const having = counts.filter((found) => found.has(word)).length;
        if (having === 0) continue;
        const rarity = Math.log(1 + (pages.length - having + 0.5) / (having + 0.5));
        counts.forEach((found, at) => {
          const often = found.get(word) ?? 0;
          const norm = K * (1 - B + (B * lengths[at]!) / mean);
          scores[at]! += (rarity * often * (K + 1)) / (often + norm);
        });
      }
      return pages
        .map((page, at) => ({ page, score: scores[at]! }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
        .slice(0, count)
        .map(({ page }) => page);
    },
  };
}

const PASSAGE = 600;

/** The piece of the text around its first word of the query. */
function passage(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const start = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 80);
  const piece = text.slice(start, start + PASSAGE).trim();
  return `${start > 0 ? '…' : ''}${piece}${start + PASSAGE < text.length ? '…' : ''}`;
}

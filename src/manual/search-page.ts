/** The page of search results: titles that link to sections, and an excerpt around the matches. */

import { searchWords, termOf } from '../lib/text/full-text.ts';
import { escapeHtml } from './escape.ts';
import type { Language } from './pages.ts';
import { meaning, searchManual, sectionPath, spelt } from './search.ts';

const HITS = 30;
/** The most characters of a query; every word costs a pass over the index. */
const MAX_LENGTH = 200;
const AROUND = 110;

const TEXTS = {
  en: {
    nothing: 'Nothing found',
    why: (shown: string) =>
      `No page of the manual contains “${shown}” or a similar word. Names of notes, events, keys and errors can be searched as they are.`,
    found: (shown: string) => `Found for “${shown}”`,
    instead: (shown: string) => `Nothing was found for “${shown}”.`,
    missing: 'There is no such page',
    noPage: (shown: string) => `The manual has no page ${shown}.`,
  },
  'zh-CN': {
    nothing: '没有找到',
    why: (shown: string) =>
      `手册中没有“${shown}”或相近的词。标记、日志事件、配置项和错误的名称可以直接搜索。`,
    found: (shown: string) => `“${shown}”的搜索结果`,
    instead: (shown: string) => `没有找到“${shown}”。`,
    missing: '没有这一页',
    noPage: (shown: string) => `手册中没有 ${shown} 这一页。`,
  },
} as const;

/** The body of the results page. @param root the path of the manual */
export function searchResults(text: string, root: string, language: Language): string {
  const texts = TEXTS[language];
  const typed = text.slice(0, MAX_LENGTH);
  const query = spelt(typed);
  const shown = escapeHtml(typed);
  const hits = searchManual(query, HITS, language);
  if (hits.length === 0) {
    return `<h1>${texts.nothing}</h1>\n<p>${texts.why(shown)}</p>`;
  }
  const words = searchWords(meaning(query)).map(termOf);
  const items = hits.map(
    (hit) =>
      `<li><a href="${escapeHtml(root + sectionPath(hit))}">${escapeHtml(hit.title)}</a><p>${excerpt(hit.text, words)}</p></li>`,
  );
  const instead = query === typed ? '' : `<p>${texts.instead(shown)}</p>\n`;
  return `<h1>${texts.found(escapeHtml(query))}</h1>\n${instead}<ol class="hits">\n${items.join('\n')}\n</ol>`;
}

/** The body of the page for a wrong address, with what a search for its words finds. @param name behind the root */
export function missingBody(name: string, root: string, language: Language): string {
  const texts = TEXTS[language];
  const shown = escapeHtml(`${root}/${name}`.slice(0, MAX_LENGTH));
  const head = `<h1>${texts.missing}</h1>\n<p>${texts.noPage(`<code>${shown}</code>`)}</p>`;
  const words = name.replace(/\.(?:zh-CN|md|html)\b/g, '').replace(/[^\p{L}\p{N}]+/gu, ' ');
  const found = searchResults(words.trim(), root, language);
  return found.includes('<ol') ? `${head}\n${found.replace(/(<\/?)h1>/g, '$1h2>')}` : head;
}

function excerpt(text: string, words: readonly string[]): string {
  const plain = text.replace(/\s+/g, ' ');
  const found = matchRanges(plain, words);
  const first = found[0]?.[0] ?? 0;
  const from = first <= AROUND ? 0 : atBlank(plain, first - AROUND, first);
  const to = first + 2 * AROUND >= plain.length ? plain.length : atBlank(plain, first + 2 * AROUND);
  let out = from === 0 ? '' : '… ';
  let at = from;
  for (const [start, end] of found) {
    if (start < at || end > to) continue;
    out += `${escapeHtml(plain.slice(at, start))}<mark>${escapeHtml(plain.slice(start, end))}</mark>`;
    at = end;
  }
  return `${out}${escapeHtml(plain.slice(at, to).trimEnd())}${to === plain.length ? '' : ' …'}`;
}

/** The offset after the next space, at most `last`. */
function atBlank(text: string, from: number, last = text.length): number {
  const blank = text.indexOf(' ', from) + 1;
  return blank === 0 || blank > last ? from : blank;
}

// A shorter term marks only words that are the same to the search: `rat`, of `rate`, does not mark `ratio`.
const BEGINNING = 5;

/**
 * The whole words that match in order, without overlaps. In Han a term matches anywhere.
 * @param words as terms
 */
function matchRanges(
  text: string,
  words: readonly string[],
): readonly (readonly [number, number])[] {
  // In a few scripts lower case changes the length of a text; then nothing is marked, as the offsets would be wrong.
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [];
  const found: (readonly [number, number])[] = [];
  for (const term of new Set(words)) {
    const latin = /[a-z0-9]/.test(term[0]!);
    // As the beginning of a word: `configuring` marks `configuration`, and the term of `key` is `kei`.
    const start = latin ? term.replace(/(?<=..)i$/, '') : term;
    for (let at = lower.indexOf(start); at >= 0; at = lower.indexOf(start, at + start.length)) {
      if (latin && /[a-z0-9]/.test(lower[at - 1] ?? '')) continue;
      const rest = latin ? /^[a-z0-9]*/.exec(lower.slice(at + start.length, at + 40))![0] : '';
      const word = start + rest;
      const same = word === term || start.length >= BEGINNING;
      if (same || searchWords(word).some((one) => termOf(one) === term)) {
        found.push([at, at + word.length]);
      }
    }
  }
  found.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let end = 0;
  return found.filter(([start, stop]) => {
    const fits = start >= end;
    if (fits) end = stop;
    return fits;
  });
}

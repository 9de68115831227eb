/** Full-text search over the sections of the manual; the first search builds the index, so that the start does not. */

import { editDistance } from '../lib/text/did-you-mean.ts';
import { type FullText, fullText, searchWords, termOf } from '../lib/text/full-text.ts';
import { counterpartOf, type Language, PAGES, type Page } from './pages.ts';
import { type Section, sectionsOf } from './sections.ts';
import { TOPICS } from './topics.ts';

interface Entry {
  readonly section: Section;
  readonly title: string;
  readonly text: string;
  /** The terms of its heading. */
  readonly heading: ReadonlySet<string>;
  /** The terms of each of its topics. */
  readonly topics: readonly ReadonlySet<string>[];
}

let index: FullText<Entry> | undefined;

/** Words that people type, and the words under which the manual describes the same; each finds the others. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['docker', 'container', 'compose', 'kubernetes', 'podman', '容器'],
  ['streaming', 'stream', 'sse', '流式'],
  ['logging', 'log', 'stderr', '日志'],
  ['session', 'conversation', '会话'],
  ['password', 'token', 'key', 'credential', '密钥'],
  ['cost', 'price', 'spend', 'billing', '费用'],
  ['quota', 'budget', 'limit', '限额'],
  ['rate', 'throttle', '429', 'rate_limit'],
  ['proxy', 'nginx', 'caddy', 'traefik', '代理'],
  ['https', 'tls', 'ssl', 'certificate'],
  ['retry', 'fallback', 'failover', '重试'],
  ['monitoring', 'metrics', 'prometheus', 'grafana', '监控'],
  ['tracing', 'opentelemetry', 'otel', 'traces'],
  ['debug', 'troubleshoot', 'diagnose', 'doctor'],
  ['setup', 'install', 'installation', '安装'],
  ['config', 'configuration', 'settings', 'yaml', '配置'],
  ['offline', 'local', 'ollama', 'vllm', 'lmstudio'],
  ['image', 'picture', 'vision', '图片'],
  ['error', 'failure', 'problem', '错误'],
  ['refused', 'rejected', 'denied', 'declined'],
  ['mask', 'redact', 'anonymize', '脱敏'],
  ['zhipu', 'bigmodel', 'zai', 'glm'],
  ['moonshot', 'kimi'],
  ['tongyi', 'dashscope', 'qwen'],
];

/** Words of questions, which every page holds and which say nothing about what is asked. */
const QUESTION = new Set(
  'a add an and are be can change create do does find for from get have how i in is it make my need not of on or see set should the there this to use was way what when where which why with work you your'.split(
    ' ',
  ),
);

const HAN = /\p{Script=Han}/u;

const terms = (text: string): ReadonlySet<string> => new Set(searchWords(text).map(termOf));

/** The language of the pages that a query asks for. */
export const languageOf = (query: string): Language => (HAN.test(query) ? 'zh-CN' : 'en');

/** A section and its counterpart in the other language are about the same topics. */
function entriesOf(page: Page): readonly Entry[] {
  const english = page.language === 'en' ? page : counterpartOf(page);
  const names = english === undefined ? [] : sectionsOf(english).map(sectionPath);
  return sectionsOf(page).map((section, at) => {
    const topics = page.name === 'zh-CN' ? undefined : TOPICS[names[at] ?? ''];
    const heading = terms(section.heading);
    // `tool_text_shortened` in a question is what the question is about.
    const name = section.heading.includes('_') && /^\w+$/.test(section.heading) ? [heading] : [];
    return {
      section,
      heading,
      title: topics === undefined ? section.title : `${section.title} ${topics}`,
      text: section.text,
      topics: [...name, ...(topics?.split(/,\s*/).map((topic) => terms(meaning(topic))) ?? [])],
    };
  });
}

const indexed = (): FullText<Entry> => (index ??= fullText(PAGES.flatMap(entriesOf)));

/** The words of a query without those of questions, as long as others are left. */
export function meaning(query: string): string {
  const words = query.toLowerCase().split(/\s+/);
  const kept = words.filter((word) => !QUESTION.has(word));
  return (kept.length === 0 ? words : kept).join(' ');
}

// More words than a query has; each unknown one is compared with every word of the manual.
const MAX_CORRECTED = 8;
const MIN_CORRECTED = 4;

/** The query, with the nearest words of the manual in place of Latin words that are not in it. */
export function spelt(query: string): string {
  const known = indexed().terms;
  let left = MAX_CORRECTED;
  return query.replace(/[a-z][a-z0-9_-]*/gi, (word) => {
    const parts = searchWords(word).map(termOf);
    const unknown = word.length >= MIN_CORRECTED && !parts.some((part) => known.has(part));
    return unknown && left-- > 0
      ? (written(nearest(termOf(word.toLowerCase()), known)) ?? word)
      : word;
  });
}

/** A word of the manual that has the term: `prometheus` for `prometheu`, whose last letter counted as a plural's. */
function written(term: string | undefined): string | undefined {
  if (term === undefined) return undefined;
  for (const { text } of PAGES) {
    const lower = text.toLowerCase();
    for (let at = lower.indexOf(term); at >= 0; at = lower.indexOf(term, at + 1)) {
      if (/[a-z]/.test(lower[at - 1] ?? '')) continue;
      const word = /^[a-z0-9]+/.exec(lower.slice(at, at + 40))?.[0] ?? term;
      if (searchWords(word).some((one) => termOf(one) === term)) return word;
    }
  }
  return term;
}

/** The term with the fewest mistakes (one in a short word, two in a long one); of several the most frequent. */
function nearest(term: string, known: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined;
  let limit = term.length < 8 ? 1 : 2;
  let most = 0;
  for (const [one, often] of known) {
    if (one[0] !== term[0] || Math.abs(one.length - term.length) > limit) continue;
    const distance = editDistance(term, one, limit);
    if (distance > limit || (distance === limit && best !== undefined && often <= most)) continue;
    best = one;
    limit = distance;
    most = often;
  }
  return best;
}

// A page about the query comes before a section of another page.
const HEADING = 0.9;

/**
 * How much a section is about the query as a whole, from 0 to 1: the share of a topic in the query, or of the query
 * in the heading.
 */
function aboutness(asked: ReadonlySet<string>, { section, heading, topics }: Entry): number {
  const within = topics.filter((topic) => topic.isSubsetOf(asked)).map(({ size }) => size);
  const topic = within.length === 0 ? 0 : Math.max(...within) / asked.size;
  const part = asked.isSubsetOf(heading) ? asked.size / heading.size : 0;
  return Math.max(topic, section.anchor === '' ? part : part * HEADING);
}

function related(query: string): string {
  const asked = terms(query);
  return SYNONYMS.filter((group) =>
    group.some((word) => asked.has(termOf(word)) || (HAN.test(word) && query.includes(word))),
  )
    .flat()
    .join(' ');
}

/**
 * The best `count` sections: those in the language first, and among them those that are about the query as a whole.
 * @param language by default that of the query
 */
export function searchManual(
  query: string,
  count: number,
  language = languageOf(query),
): readonly Section[] {
  const asked = spelt(meaning(query));
  const words = terms(asked);
  const names = new Set(PAGES.filter((page) => page.language === language).map(({ name }) => name));
  return indexed()
    .search(asked, Number.POSITIVE_INFINITY, related(asked))
    .map((entry) => ({
      section: entry.section,
      rank: aboutness(words, entry) + (names.has(entry.section.page) ? 2 : 0),
    }))
    .toSorted((a, b) => b.rank - a.rank)
    .slice(0, count)
    .map(({ section }) => section);
}

/** `/notes#parameter_dropped`: the path of a section below that of the manual. */
export const sectionPath = ({ page, anchor }: Section): string =>
  `/${page}${anchor === '' ? '' : `#${anchor}`}`;

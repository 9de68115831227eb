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
  /** The terms of each of its topics. */
  readonly topics: readonly ReadonlySet<string>[];
}

interface Index {
  readonly texts: FullText<Entry>;
  readonly terms: ReadonlySet<string>;
}

let index: Index | undefined;

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
    return {
      section,
      title: topics === undefined ? section.title : `${section.title} ${topics}`,
      text: section.text,
      topics:
        topics === undefined ? [] : topics.split(/,\s*/).map((topic) => terms(meaning(topic))),
    };
  });
}

function indexOf(): Index {
  const texts = fullText(PAGES.flatMap(entriesOf));
  return { texts, terms: new Set(texts.terms()) };
}

/** The words of a query without those of questions, as long as others are left. */
function meaning(query: string): string {
  const words = query.toLowerCase().split(/\s+/);
  const kept = words.filter((word) => !QUESTION.has(word));
  return (kept.length === 0 ? words : kept).join(' ');
}

// More words than a query has; each unknown one is compared with every word of the manual.
const MOST_CORRECTED = 8;
const SHORTEST_CORRECTED = 4;

/** A query whose unknown Latin words are replaced by the nearest ones of the manual, if one is near. */
function corrected(query: string, known: ReadonlySet<string>): string {
  let left = MOST_CORRECTED;
  return query.replace(/[a-z][a-z0-9_-]*/gi, (word) => {
    const parts = searchWords(word).map(termOf);
    const unknown = word.length >= SHORTEST_CORRECTED && !parts.some((part) => known.has(part));
    return unknown && left-- > 0 ? (nearest(termOf(word.toLowerCase()), known) ?? word) : word;
  });
}

/** A mistake in a short word, two in a long one. */
function nearest(term: string, known: ReadonlySet<string>): string | undefined {
  let best: string | undefined;
  let limit = term.length < 8 ? 1 : 2;
  for (const one of known) {
    if (one[0] !== term[0] || Math.abs(one.length - term.length) > limit) continue;
    const distance = editDistance(term, one, limit);
    if (distance > limit) continue;
    if (best === undefined || distance < limit) best = one;
    limit = distance;
  }
  return best;
}

// A page about the query comes before a section of another page.
const HEADING = 0.9;

/**
 * How much a section is about the query as a whole, from 0 to 1: the share of a topic in the query, or of the query
 * in the heading.
 */
function aboutness(asked: ReadonlySet<string>, { section, topics }: Entry): number {
  const { heading, anchor } = section;
  const words = terms(heading);
  // `tool_text_shortened` in a question is what the question is about.
  const names = heading.includes('_') && /^\w+$/.test(heading) ? [words] : [];
  const within = [...topics, ...names]
    .filter((topic) => topic.isSubsetOf(asked))
    .map(({ size }) => size);
  const topic = within.length === 0 ? 0 : Math.max(...within) / asked.size;
  const part = asked.isSubsetOf(words) ? asked.size / words.size : 0;
  return Math.max(topic, anchor === '' ? part : part * HEADING);
}

/** Other words for those of a query. */
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
  index ??= indexOf();
  const asked = corrected(meaning(query), index.terms);
  const words = terms(asked);
  const names = new Set(PAGES.filter((page) => page.language === language).map(({ name }) => name));
  return index.texts
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

/** Full-text search over the sections of the manual; the first search builds the index, so that the start does not. */

import { type FullText, fullText, searchWords, termOf } from '../lib/text/full-text.ts';
import { PAGES } from './pages.ts';
import { type Section, sectionsOf } from './sections.ts';

let index: FullText<Section> | undefined;

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
  'a an and are be can do does for from how i in is it my of on or the there this to use was what when where which why with you your 怎么 如何 什么'.split(
    ' ',
  ),
);

/** The words of a query without those of questions, as long as others are left. */
function meaning(query: string): string {
  const words = query.toLowerCase().split(/\s+/);
  const kept = words.filter((word) => !QUESTION.has(word));
  return (kept.length === 0 ? words : kept).join(' ');
}

/** Other words for those of a query. */
function related(query: string): readonly string[] {
  const asked = new Set(searchWords(query).map(termOf));
  return SYNONYMS.filter((group) =>
    group.some((word) => asked.has(termOf(word)) || (!/[a-z]/.test(word) && query.includes(word))),
  ).flat();
}

/**
 * The best `count` sections, best first: those that hold words of the query, then those that only hold other words for
 * them.
 */
export function searchManual(query: string, count: number): readonly Section[] {
  index ??= fullText(PAGES.flatMap((page) => sectionsOf(page)));
  const hits = index.search(meaning(query), count);
  if (hits.length >= count) return hits;
  const more = index.search(related(query).join(' '), count).filter((hit) => !hits.includes(hit));
  return [...hits, ...more].slice(0, count);
}

/** `/notes#parameter_dropped`: the path of a section below that of the manual. */
export const sectionPath = ({ page, anchor }: Section): string =>
  `/${page}${anchor === '' ? '' : `#${anchor}`}`;

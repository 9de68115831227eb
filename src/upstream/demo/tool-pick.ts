/** Which of the offered tools the question asks for. */

import { isObject } from '../../lib/json/json.ts';
import type { DemoTool } from './chat-request.ts';
import { asksForTwo, headOf, type Intent } from './intent.ts';

const PATH = /^(?:path|file|filename|file_?path|target_file|notebook_path|files|paths)$/i;
const CONTENT = /^(?:contents?|text|file_text|data|body)$/i;
const COMMAND = /^(?:commands?|cmd|script)$/i;

const propertyNames = (tool: DemoTool): readonly string[] =>
  isObject(tool.schema.properties) ? Object.keys(tool.schema.properties) : [];

/** The words of a name: `get_weatherReport` has get, weather and report. */
export function nameWords(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9\p{Script=Han}]+/u)
    .filter((word) => word !== '');
}

const named = (tool: DemoTool, ...words: string[]) =>
  nameWords(tool.name).some((word) => words.includes(word));
const takes = (tool: DemoTool, what: RegExp) => propertyNames(tool).some((name) => what.test(name));

const writes = (tool: DemoTool) =>
  named(tool, 'write', 'create', 'save', 'add') && takes(tool, PATH) && takes(tool, CONTENT);
const patches = (tool: DemoTool) => tool.kind === 'custom' && /apply_?patch/i.test(tool.name);
const runs = (tool: DemoTool) =>
  named(tool, 'bash', 'shell', 'exec', 'execute', 'command', 'commands', 'terminal', 'run') &&
  takes(tool, COMMAND);
const reads = (tool: DemoTool) => named(tool, 'read', 'view', 'cat', 'open') && takes(tool, PATH);

// Verbs and nouns that half of all tools are called by: alone they say nothing.
const COMMON = new Set(
  'get set list find search read write edit create update delete remove add run make show fetch query use tool tools task tasks agent file files data text input output user item items new name call open ask question send start stop report view goal skill code'.split(
    ' ',
  ),
);
const STOP = new Set(
  'the and for with you your are was this that from have has can could would should what when where which who how why not into about please tell give some any all one two will its let does did between using use'.split(
    ' ',
  ),
);

// What a Chinese question and an English tool name have in common.
const ZH_EN: readonly (readonly [string, string])[] = [
  ['天气', 'weather'],
  ['时间', 'time'],
  ['日期', 'date'],
  ['搜索', 'search'],
  ['查找', 'find'],
  ['翻译', 'translate'],
  ['计算', 'calculate'],
  ['邮件', 'email'],
  ['日历', 'calendar'],
  ['股票', 'stock'],
  ['地图', 'map'],
  ['图片', 'image'],
  ['新闻', 'news'],
  ['汇率', 'exchange'],
];

const stem = (word: string) => word.replace(/(?:ing|ed|es|s)$/, '');

function wordsIn(text: string): Set<string> {
  const lower = text.toLowerCase();
  const words = new Set<string>();
  for (const word of lower.match(/[a-z0-9]{3,}/g) ?? []) if (!STOP.has(word)) words.add(stem(word));
  for (const [zh, en] of ZH_EN) if (text.includes(zh)) words.add(stem(en));
  for (const run of lower.match(/\p{Script=Han}+/gu) ?? []) {
    for (let i = 0; i + 2 <= run.length; i++) words.add(run.slice(i, i + 2));
  }
  return words;
}

/** Two and more: the question is about what this tool does. */
function score(tool: DemoTool, text: string, asked: ReadonlySet<string>): number {
  const spelled = tool.name.toLowerCase();
  // Named outright; a name that is a plain word ("Write") must be spelled as it is.
  const outright = /[_\-\d]|[a-z][A-Z]/.test(tool.name) && text.toLowerCase().includes(spelled);
  if (outright || text.includes(`\`${tool.name}\``)) return 10;
  let points = 0;
  for (const word of nameWords(tool.name)) {
    if (word.length >= 3 && asked.has(stem(word))) points += COMMON.has(word) ? 1 : 2;
  }
  // Only its first sentence: agents' tools come with pages of advice that mention everything.
  const about = wordsIn(tool.description.slice(0, 160).split(/[.\n。]/)[0] ?? '');
  let shared = 0;
  for (const word of about) if (asked.has(word) && !COMMON.has(word)) shared++;
  return points + Math.min(shared, 3) * (points > 0 ? 1 : 0.7);
}

/**
 * The tools to call for this question, in order: none, one, or (where it asks for two) two, which may
 * be the same one twice.
 */
export function pickTools(
  tools: readonly DemoTool[],
  question: string,
  intent: Intent,
  forced: boolean,
  parallel: boolean,
): readonly DemoTool[] {
  const text = headOf(question);
  const first = (...tests: ((tool: DemoTool) => boolean)[]) => {
    for (const fits of tests) {
      const found = tools.find(fits);
      if (found) return [found];
    }
    return undefined;
  };
  let picked: readonly DemoTool[] | undefined;
  if (intent.kind === 'write') {
    picked = intent.shell ? first(runs, writes, patches) : first(writes, patches, runs);
  } else if (intent.kind === 'command') picked = first(runs);
  else if (intent.kind === 'read') picked = first(reads, runs);
  if (picked) return picked;
  if (!forced && (intent.kind === 'say' || intent.kind === 'count')) return [];
  const asked = wordsIn(text);
  const ranked = tools
    .map((tool) => ({ tool, points: score(tool, text, asked) }))
    .toSorted((a, b) => b.points - a.points);
  const good = ranked.filter(({ points }) => points >= 2).map(({ tool }) => tool);
  const chosen = good.length > 0 ? good : forced ? ranked.map(({ tool }) => tool) : [];
  if (chosen.length === 0) return [];
  if (!parallel || !asksForTwo(text)) return chosen.slice(0, 1);
  return [chosen[0]!, chosen[good.length > 1 ? 1 : 0]!];
}

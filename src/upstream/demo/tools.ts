/** The calls of the demo model: which of the offered tools the question asks for, and with what. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { shellQuoted } from '../../lib/text/quoted-words.ts';
import { fileIn, headOf, type Intent, readIntent } from './intent.ts';
import type { PlannedCall } from './reply.ts';
import type { DemoRequest, DemoTool } from './request.ts';
import { sampleOf } from './sample.ts';

/** “/demo tools” takes one tool a round. Everything else is one round, and a summary of its results. */
export function planCalls(request: DemoRequest): readonly PlannedCall[] {
  const { tools, choice, rounds, question } = request;
  if (choice === 'none') return [];
  const intent = readIntent(question);
  if (intent.kind === 'tour')
    return tools.slice(rounds, rounds + 1).map((tool) => call(tool, request, intent, 0));
  if (rounds > 0) return [];
  return pick(request, intent).map((tool, nth) => call(tool, request, intent, nth));
}

const propertiesOf = ({ schema }: DemoTool): readonly string[] =>
  isObject(schema.properties) ? Object.keys(schema.properties) : [];

const PATH = /^(?:path|file|filename|file_?path|target_file|notebook_path|files|paths)$/i;
const CONTENT = /^(?:contents?|text|file_text|data|body)$/i;
const COMMAND = /^(?:commands?|cmd|script)$/i;

/** The words of a name: `get_weatherReport` has get, weather and report. */
const nameWords = ({ name }: DemoTool): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');

const takes = (tool: DemoTool, ...names: RegExp[]) =>
  names.every((name) => propertiesOf(tool).some((one) => name.test(one)));
const named = (tool: DemoTool, words: RegExp) => nameWords(tool).some((word) => words.test(word));

const writes = (tool: DemoTool) =>
  named(tool, /^(?:write|create|save|add)$/) && takes(tool, PATH, CONTENT);
const patches = (tool: DemoTool) => tool.kind === 'custom' && /apply_?patch/i.test(tool.name);
const runs = (tool: DemoTool) =>
  named(tool, /^(?:bash|shell|exec|execute|commands?|terminal|run)$/) && takes(tool, COMMAND);
const reads = (tool: DemoTool) => named(tool, /^(?:read|view|cat|open)$/) && takes(tool, PATH);

// Words that half of all tools are called by: alone they say nothing.
const COMMON =
  /^(?:get|set|list|find|search|read|write|edit|create|update|delete|add|run|make|show|fetch|use|tools?|tasks?|agent|files?|data|text|name|call|new|ask|open|skill|code|bash|shell|the|and|for)$/;
/** What a Chinese question and an English tool name have in common. */
const ENGLISH: Readonly<Record<string, string>> = {
  天气: 'weather',
  时间: 'time',
  日期: 'date',
  翻译: 'translate',
  计算: 'calculate',
  邮件: 'email',
  新闻: 'news',
  网: 'web',
};
const stem = (word: string) => word.replace(/(?:ing|ed|es|s)$/, '');

/** How many words of the question the tool is called by; named outright counts most. */
function score(tool: DemoTool, text: string, asked: ReadonlySet<string>): number {
  const isSpelled =
    /[_\-\d]|[a-z][A-Z]/.test(tool.name) && text.toLowerCase().includes(tool.name.toLowerCase());
  if (isSpelled || text.includes(`\`${tool.name}\``)) return 10;
  const words = nameWords(tool).filter((word) => word.length >= 3 && !COMMON.test(word));
  return words.filter((word) => asked.has(stem(word))).length;
}

/** None, one, or (where it asks for two) two, which may be the same one twice. */
function pick(
  { tools, question, choice, parallel }: DemoRequest,
  intent: Intent,
): readonly DemoTool[] {
  const text = headOf(question);
  const ways =
    intent.kind === 'write'
      ? intent.shell
        ? [runs, writes, patches]
        : [writes, patches, runs]
      : intent.kind === 'command'
        ? [runs]
        : intent.kind === 'read'
          ? [reads, runs]
          : [];
  for (const way of ways) {
    const found = tools.find(way);
    if (found !== undefined) return [found];
  }
  const isForced = choice === 'forced';
  if (!isForced && (intent.kind === 'say' || intent.kind === 'count')) return [];
  const words = [
    ...(text.toLowerCase().match(/[a-z0-9]{3,}/g) ?? []),
    ...Object.keys(ENGLISH).flatMap((zh) => (text.includes(zh) ? [ENGLISH[zh]!] : [])),
  ];
  const asked = new Set(words.map(stem));
  const scored = tools.map((tool) => ({ tool, points: score(tool, text, asked) }));
  const good = scored.filter(({ points }) => points > 0).toSorted((a, b) => b.points - a.points);
  const [first, second] = [...good, ...(isForced ? scored : [])];
  if (first === undefined) return [];
  const isTwo =
    /\b(?:two|twice|both|parallel|simultaneously|at the same time)\b|两|同时|并行/i.test(text);
  if (!parallel || !isTwo) return [first.tool];
  return [first.tool, (good.length > 1 ? second! : first).tool];
}

/** JSON that fits the tool's schema, or the text of a freeform tool; `{}` where no value fits. */
function call(tool: DemoTool, request: DemoRequest, intent: Intent, nth: number): PlannedCall {
  const { kind, name, schema } = tool;
  if (kind === 'custom') return { kind, name, input: freeform(name, request.question, intent) };
  const value = sampleOf(schema, {
    wishes: (property, own, required) => wishes(property, own, required, request, intent, nth),
  });
  return { kind, name, input: JSON.stringify(value ?? {}) };
}

function commandFor(intent: Intent): string {
  if (intent.kind === 'command') return intent.command;
  if (intent.kind === 'read') return `cat ${shellQuoted(intent.path)}`;
  if (intent.kind !== 'write') return `echo 'hopgate demo'`;
  return `printf '%s\\n' ${shellQuoted(intent.content)} > ${shellQuoted(intent.path)}`;
}

function freeform(name: string, question: string, intent: Intent): string {
  if (!/patch/i.test(name)) return intent.kind === 'question' ? question : commandFor(intent);
  const { path, content } =
    intent.kind === 'write' ? intent : { path: 'hopgate-demo.txt', content: question };
  const lines = content.split('\n').map((line) => `+${line}`);
  return ['*** Begin Patch', `*** Add File: ${path}`, ...lines, '*** End Patch', ''].join('\n');
}

/** The places asked about: "weather in Paris and Rome" has two. */
function placesIn(text: string): readonly string[] {
  const found =
    /\b(?:in|at|for|near|of)\s+((?:\p{Lu}[\p{L}'.-]*[\s,]*(?:(?:and|or|&)\s+)?)+)/u.exec(text) ??
    /(?:^|[请查询问看下一\s]+)([\p{Script=Han}、和]{2,12}?)(?:现在|今天|明天)?的?天气/u.exec(text);
  return (found?.[1] ?? '')
    .split(/\s*(?:,|、|\band\b|\bor\b|&|和)\s*/)
    .map((part) => part.trim().replace(/[.,]$/, ''))
    .filter((part) => part !== '');
}

/** A relative path as the schema's words want it: absolute where they say so. */
function pathFor(path: string, schema: JsonObject, cwd: string | undefined): string {
  const wantsAbsolute = /absolute|must start with/i.test(String(schema.description ?? ''));
  if (path.startsWith('/') || path.startsWith('~') || !wantsAbsolute) return path;
  return `${(cwd ?? '/tmp').replace(/\/$/, '')}/${path.replace(/^\.\//, '')}`;
}

/** Values that the question has for a property of this name, best first. */
function wishes(
  name: string,
  schema: JsonObject,
  required: boolean,
  { question, cwd }: DemoRequest,
  intent: Intent,
  nth: number,
): readonly Json[] {
  const text = headOf(question);
  if (PATH.test(name)) {
    const path = 'path' in intent ? intent.path : fileIn(question);
    if (path === undefined) return [];
    const whole = pathFor(path, schema, cwd);
    return [whole, [whole]];
  }
  if (CONTENT.test(name) && intent.kind === 'write') return [intent.content];
  if (COMMAND.test(name) && (required || intent.kind !== 'question')) {
    const command = commandFor(intent);
    // A list called `command` is an argv; one called `commands` is a list of lines.
    return /s$/i.test(name) ? [[command], command] : [command, ['bash', '-lc', command]];
  }
  if (/^(?:ur[li]|link|href)$/i.test(name)) return text.match(/https?:\/\/[^\s)"'>]+/g) ?? [];
  if (/^(?:location|city|place|cities|locations|destination|region)$/i.test(name)) {
    const places = placesIn(text);
    const own = places[nth] ?? places[0];
    return own === undefined ? [] : [own, [...places]];
  }
  if (!required) return [];
  if (/^(?:query|q|search|question|prompt|text|message|input|keywords)$/i.test(name)) {
    return [question, [question]];
  }
  if (/^(?:expression|formula)$/i.test(name)) {
    return /[\d(][\d\s+\-*/().^%]*[\d)]/.exec(text)?.slice(0, 1) ?? [];
  }
  const all = text.match(/-?\d+(?:\.\d+)?/g)?.map(Number) ?? [];
  return all.slice(/^(?:b|y|second|rhs|right)$/i.test(name) ? 1 : nth).slice(0, 1);
}

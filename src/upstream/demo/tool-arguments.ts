/** Arguments for a tool call: its schema filled from what the question says. */

import type { Json, JsonObject } from '../../lib/json/json.ts';
import type { DemoTool } from './chat-request.ts';
import { fileIn, headOf, type Intent } from './intent.ts';
import { sampleSchema } from './schema-sampler.ts';

export interface Facts {
  readonly question: string;
  readonly intent: Intent;
  readonly cwd?: string;
  /** 0, 1, …: which of several calls this is; "Paris and Rome" gives each its own. */
  readonly position: number;
}

const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function commandFor({ intent }: Facts): string {
  switch (intent.kind) {
    case 'command':
      return intent.command;
    case 'write':
      return `printf '%s\\n' ${shellQuote(intent.content)} > ${shellQuote(intent.path)}`;
    case 'read':
      return `cat ${shellQuote(intent.path)}`;
    default:
      return `echo 'hopgate demo'`;
  }
}

function patchFor({ intent, question }: Facts): string {
  const path = intent.kind === 'write' ? intent.path : 'hopgate-demo.txt';
  const content = intent.kind === 'write' ? intent.content : question;
  const lines = content.split('\n').map((line) => `+${line}`);
  return ['*** Begin Patch', `*** Add File: ${path}`, ...lines, '*** End Patch', ''].join('\n');
}

/** The thing asked about, without the words around it: "weather in Paris and Rome" has two. */
function subjectsOf(text: string): readonly string[] {
  const place =
    /\b(?:in|at|for|near|of)\s+((?:\p{Lu}[\p{L}'.-]*[\s,]*(?:(?:and|or|&)\s+)?)+)/u.exec(
      text,
    )?.[1] ??
    /(?:^|[请查询问看下一\s]+)([\p{Script=Han}、和]{2,12}?)(?:现在|今天|明天)?的?天气/u.exec(
      text,
    )?.[1];
  if (place === undefined) return [];
  return place
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

const asked = (name: string, ...names: string[]) =>
  names.includes(name.replace(/[_-]/g, '').toLowerCase());

/** Values for a property of this name that the question gives, best first. */
function wishes(
  name: string,
  schema: JsonObject,
  required: boolean,
  facts: Facts,
): readonly Json[] {
  const { intent, cwd, position } = facts;
  const question = headOf(facts.question);
  if (
    asked(
      name,
      'path',
      'file',
      'filename',
      'filepath',
      'targetfile',
      'notebookpath',
      'paths',
      'files',
    )
  ) {
    const path = intent.kind === 'write' || intent.kind === 'read' ? intent.path : fileIn(question);
    if (path === undefined) return [];
    const whole = pathFor(path, schema, cwd);
    return [whole, [whole]];
  }
  if (asked(name, 'content', 'contents', 'filetext', 'data', 'body') && intent.kind === 'write') {
    return [intent.content];
  }
  if (
    asked(name, 'command', 'cmd', 'script', 'commands') &&
    (required || intent.kind !== 'question')
  ) {
    const command = commandFor(facts);
    // An array called `command` is an argv; one called `commands` is a list of lines.
    return asked(name, 'commands') ? [[command], command] : [command, ['bash', '-lc', command]];
  }
  if (asked(name, 'url', 'uri', 'link', 'href'))
    return question.match(/https?:\/\/[^\s)"'>]+/g) ?? [];
  if (asked(name, 'location', 'city', 'place', 'cities', 'locations', 'destination', 'region')) {
    const subjects = subjectsOf(question);
    const own = subjects[position] ?? subjects[0];
    return own === undefined ? [] : [own, [...subjects]];
  }
  if (!required) return [];
  if (
    asked(
      name,
      'query',
      'q',
      'search',
      'question',
      'prompt',
      'text',
      'message',
      'input',
      'keywords',
    )
  ) {
    return [facts.question, [facts.question]];
  }
  if (asked(name, 'expression', 'formula')) {
    const found = /[\d(][\d\s+\-*/().^%]*[\d)]/.exec(question)?.[0].trim();
    return found === undefined ? [] : [found];
  }
  const numbers = question.match(/-?\d+(?:\.\d+)?/g)?.map(Number) ?? [];
  return /^(?:a|x|first|lhs|left)$/i.test(name)
    ? numbers.slice(0, 1)
    : /^(?:b|y|second|rhs|right)$/i.test(name)
      ? numbers.slice(1, 2)
      : numbers.slice(position, position + 1);
}

/**
 * The raw input of a call: JSON that satisfies the tool's schema, or the text of a freeform tool.
 * Falls back to `{}` where no value satisfies the schema.
 */
export function callInput(tool: DemoTool, facts: Facts): string {
  if (tool.kind === 'custom') {
    return /patch/i.test(tool.name)
      ? patchFor(facts)
      : facts.intent.kind === 'question'
        ? facts.question
        : commandFor(facts);
  }
  const value = sampleSchema(tool.schema, {
    prefer: (name, schema, required) => wishes(name, schema, required, facts),
  });
  return JSON.stringify(value ?? {});
}

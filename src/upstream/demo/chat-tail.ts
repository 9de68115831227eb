/** The end of the conversation: the last question, and the tool calls and results since. */

import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';

export interface ToolOutcome {
  readonly name: string;
  readonly text: string;
}

export interface Tail {
  /** The last thing a person said, without what their agent wrapped around it. */
  readonly question: string;
  /** Media in the messages since that question, it included. */
  readonly images: number;
  readonly documents: number;
  readonly audio: number;
  /** Assistant messages with tool calls since the question. */
  readonly rounds: number;
  readonly results: readonly ToolOutcome[];
  /** The directory the agent works in, where its prompt tells. */
  readonly cwd?: string;
  /** Its role: the instructions. */
  readonly persona: string;
}

// Agents put reminders and surroundings beside what the person wrote, each in a tag of its own.
const WRAPPED = /^\s*<([a-z][\w-]*)(?:\s[^>]*)?>[\s\S]*<\/\1>\s*$/i;
const REMINDER = '<system-reminder>';
const REMINDER_END = '</system-reminder>';

/** The text without its reminders; one that does not end is text. */
function withoutReminders(text: string): string {
  let out = '';
  let from = 0;
  for (let at = text.indexOf(REMINDER); at >= 0; at = text.indexOf(REMINDER, from)) {
    const end = text.indexOf(REMINDER_END, at);
    if (end < 0) break;
    out += text.slice(from, at);
    from = end + REMINDER_END.length;
  }
  return from === 0 ? text : out + text.slice(from);
}

function textsOf(content: Json | undefined): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return (content as readonly Json[]).flatMap((part) =>
    isObject(part) && typeof part.text === 'string' ? [part.text] : [],
  );
}

/** What a person wrote in a message: '' when all of it is wrapping. */
function spoken(message: JsonObject): string {
  return textsOf(message.content)
    .map((text) => withoutReminders(text).trim())
    .filter((text) => text !== '' && !WRAPPED.test(text))
    .join('\n');
}

function countParts(messages: readonly JsonObject[], type: string): number {
  let count = 0;
  for (const { role, content } of messages) {
    if (role !== 'user' || !Array.isArray(content)) continue;
    for (const part of content as readonly Json[])
      if (isObject(part) && part.type === type) count++;
  }
  return count;
}

const FOLDER_TAG = /<cwd>([^<\n]{1,4096})<\/cwd>/;
const FOLDER_WORDS =
  /(?:working directory|in the directory|\bcwd)[^\w/]{1,4}(\/[^\s`"'<>]{1,4096})/i;

function workingFolder(messages: readonly JsonObject[]): string | undefined {
  for (const message of messages) {
    if (message.role === 'assistant' || message.role === 'tool') continue;
    for (const text of textsOf(message.content)) {
      const folder = FOLDER_TAG.exec(text)?.[1] ?? FOLDER_WORDS.exec(text)?.[1];
      if (folder !== undefined) return folder.trim().replace(/[.,;:]$/, '');
    }
  }
  return undefined;
}

/** Looks at the messages from the last question on. */
export function readTail(messages: readonly JsonObject[]): Tail {
  let from = messages.findLastIndex((m) => m.role === 'user' && spoken(m) !== '');
  let question = from < 0 ? '' : spoken(messages[from]!);
  if (from < 0) {
    // Nothing but wrapping: then that is what was said.
    from = messages.findLastIndex((m) => m.role === 'user');
    question = from < 0 ? '' : textsOf(messages[from]!.content).join('\n').trim();
  }
  const recent = messages.slice(Math.max(0, from));
  const names = new Map<string, string>();
  let rounds = 0;
  const results: ToolOutcome[] = [];
  for (const message of recent) {
    if (
      message.role === 'assistant' &&
      Array.isArray(message.tool_calls) &&
      message.tool_calls.length > 0
    ) {
      rounds++;
      for (const call of message.tool_calls as readonly Json[]) {
        const inner = isObject(call) ? (call.function ?? call.custom) : undefined;
        if (isObject(call) && isObject(inner)) names.set(String(call.id), String(inner.name));
      }
    } else if (message.role === 'tool') {
      const text = textsOf(message.content).join('\n').trim();
      results.push({ name: names.get(String(message.tool_call_id)) ?? 'tool', text });
    }
  }
  return {
    question,
    images: countParts(recent, 'image_url'),
    documents: countParts(recent, 'file'),
    audio: countParts(recent, 'input_audio'),
    rounds,
    results,
    cwd: workingFolder(messages),
    persona: messages
      .filter(({ role }) => role === 'system' || role === 'developer')
      .flatMap(({ content }) => textsOf(content))
      .join('\n'),
  };
}

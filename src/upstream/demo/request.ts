/** Reads a Chat Completions body into what the demo model looks at, or says what is wrong with it. */

import { ownWords } from '../../conversation/agent-parts.ts';
import { invalid, missing } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';
import { listOf, text as textOf } from '../../lib/json/typed-reads.ts';

export interface DemoTool {
  readonly kind: 'function' | 'custom';
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
}

export interface ToolOutcome {
  readonly name: string;
  readonly text: string;
}

export interface DemoRequest {
  readonly model: string;
  readonly tools: readonly DemoTool[];
  /** auto and none as in the protocol; forced: at least one of `tools` must be called. */
  readonly choice: 'auto' | 'none' | 'forced';
  readonly parallel: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly maxTokens: number;
  readonly stop: readonly string[];
  /** Structured output: a schema, or `{}` for any JSON object. */
  readonly format: JsonObject | undefined;
  readonly effort: string | undefined;
  readonly promptTokens: number;
  /** The last thing a person said, without what their agent wrapped around it. */
  readonly question: string;
  /** Since that question, it included: media, assistant messages with calls, and their results. */
  readonly images: number;
  readonly documents: number;
  readonly audio: number;
  readonly rounds: number;
  readonly results: readonly ToolOutcome[];
  /** The directory the agent works in, where its prompt tells. */
  readonly cwd: string | undefined;
  /** Its role: the instructions. */
  readonly persona: string;
}

/** Each is looked for in the answer; vendors take four to sixteen. */
const MAX_STOPS = 64;

/** @throws GatewayError invalid_request with `param` naming the field */
export function readRequest(body: Json | undefined): DemoRequest {
  if (!isObject(body)) throw invalid('The body is not a JSON object.');
  const model = textOf(body.model);
  if (model === undefined || model === '') throw missing('model', 'missing_required_parameter');
  const messages = readMessages(body.messages);
  const offered = readTools(body.tools);
  const stop = typeof body.stop === 'string' ? [body.stop] : listOf(body.stop);
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return {
    ...readEnd(messages),
    ...readChoice(body.tool_choice, offered),
    model,
    parallel: body.parallel_tool_calls !== false,
    stream: body.stream === true,
    includeUsage: options.include_usage === true,
    maxTokens:
      readLimit(body, 'max_completion_tokens') ??
      readLimit(body, 'max_tokens') ??
      Number.POSITIVE_INFINITY,
    stop: stop
      .filter((one): one is string => typeof one === 'string' && one !== '')
      .slice(0, MAX_STOPS),
    format: readFormat(body.response_format),
    effort: textOf(body.reasoning_effort),
    promptTokens: countPrompt(messages, offered),
  };
}

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Every call is answered by the messages behind it and nothing else is: OpenAI refuses other histories, too. */
function readMessages(value: Json | undefined): readonly JsonObject[] {
  if (value === undefined) throw missing('messages', 'missing_required_parameter');
  const messages = listOf(value);
  if (messages.length === 0) {
    throw invalid(`Invalid 'messages': expected an array of at least one message.`, 'messages');
  }
  let open = new Set<string>();
  const checkAnswered = (at: number) => {
    if (open.size === 0) return;
    throw invalid(
      `An assistant message with 'tool_calls' must be followed by tool messages for each 'tool_call_id'; missing: ${[...open].join(', ')}.`,
      `messages[${at}].role`,
    );
  };
  for (const [at, message] of messages.entries()) {
    const where = `messages[${at}]`;
    if (!isObject(message)) throw invalid(`Invalid '${where}': expected an object.`, where);
    if (!ROLES.has(String(message.role)))
      throw invalid(`Invalid value for '${where}.role'.`, `${where}.role`);
    if (message.role !== 'tool') {
      checkAnswered(at);
      open = new Set(callsOf(message).map((call) => String(call.id)));
    } else if (!open.delete(String(message.tool_call_id))) {
      throw invalid(
        `A message with role 'tool' must answer a call in the 'tool_calls' before it.`,
        `${where}.tool_call_id`,
      );
    }
  }
  checkAnswered(messages.length);
  return messages as readonly JsonObject[];
}

const callsOf = ({ role, tool_calls }: JsonObject): readonly JsonObject[] =>
  role === 'assistant' ? listOf(tool_calls).filter((call) => isObject(call)) : [];

function readTools(value: Json | undefined): readonly DemoTool[] {
  return listOf(value).map((tool, at) => {
    const kind = isObject(tool) && tool.type === 'custom' ? 'custom' : 'function';
    const inner = isObject(tool) && isObject(tool[kind]) ? tool[kind] : {};
    const name = textOf(inner.name);
    if (name === undefined || name === '')
      throw missing(`tools[${at}].${kind}.name`, 'missing_required_parameter');
    return {
      kind,
      name,
      description: textOf(inner.description) ?? '',
      schema: isObject(inner.parameters) ? inner.parameters : { type: 'object', properties: {} },
    };
  });
}

function readChoice(
  value: Json | undefined,
  tools: readonly DemoTool[],
): Pick<DemoRequest, 'choice' | 'tools'> {
  if (value === undefined || value === null || value === 'auto') return { choice: 'auto', tools };
  if (value === 'none') return { choice: 'none', tools };
  if (value === 'required') {
    if (tools.length > 0) return { choice: 'forced', tools };
    throw invalid(`'tool_choice' is only allowed with 'tools'.`, 'tool_choice');
  }
  const nameOf = (entry: Json | undefined) => {
    const inner = isObject(entry) ? (entry.function ?? entry.custom ?? entry) : undefined;
    return isObject(inner) ? inner.name : undefined;
  };
  if (isObject(value) && isObject(value.allowed_tools)) {
    const { mode, tools: allowed } = value.allowed_tools;
    const names = new Set(listOf(allowed).map(nameOf));
    const choice = mode === 'required' ? 'forced' : 'auto';
    return { choice, tools: tools.filter(({ name }) => names.has(name)) };
  }
  const chosen = tools.filter(({ name }) => name === nameOf(value));
  if (chosen.length > 0) return { choice: 'forced', tools: chosen };
  throw invalid(`Invalid value for 'tool_choice': no such tool in 'tools'.`, 'tool_choice');
}

function readLimit(body: JsonObject, key: string): number | undefined {
  const value = body[key] ?? undefined;
  if (value === undefined || (Number.isInteger(value) && (value as number) >= 1)) {
    return value as number | undefined;
  }
  throw invalid(`Invalid '${key}': expected an integer of at least 1.`, key);
}

function readFormat(value: Json | undefined): JsonObject | undefined {
  const type = isObject(value) ? value.type : (value ?? 'text');
  if (type === 'text') return undefined;
  if (type === 'json_object') return {};
  const inner = isObject(value) ? value.json_schema : undefined;
  const schema = isObject(inner) ? inner.schema : undefined;
  if (type === 'json_schema' && isObject(schema)) return schema;
  if (type === 'json_schema')
    throw missing('response_format.json_schema.schema', 'missing_required_parameter');
  throw invalid(`Invalid value for 'response_format.type'.`, 'response_format.type');
}

// Kana, Han, Hangul and their full-width punctuation.
const WIDE = '\\u3000-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7af\\uf900-\\ufaff\\uff00-\\uffef';
const WIDES = new RegExp(`[${WIDE}]`, 'g');
const WORDS = new RegExp(`\\s*(?:[${WIDE}]{1,2}|[^\\s${WIDE}]+)|\\s+$`, 'gu');

/** Tokens, estimated: about four Latin letters or one East Asian character each; never 0 for some text. */
export function estimateTokens(text: string): number {
  const wide = text.length - text.replace(WIDES, '').length;
  return wide + Math.ceil((text.length - wide) / 4);
}

/** The text word by word (two East Asian characters make a word); put together it is the text. */
export const wordsOf = (text: string): readonly string[] => text.match(WORDS) ?? [];

/** OpenAI's low-detail image. The base64 of a picture is not read. */
const MEDIA_TOKENS = 85;

function countPrompt(messages: readonly JsonObject[], tools: readonly DemoTool[]): number {
  let total = 3;
  for (const { content, tool_calls } of messages) {
    total += 4 + (tool_calls === undefined ? 0 : estimateTokens(JSON.stringify(tool_calls)));
    for (const part of typeof content === 'string' ? [{ text: content }] : listOf(content)) {
      const text = isObject(part) ? textOf(part.text) : undefined;
      total += text === undefined ? MEDIA_TOKENS : estimateTokens(text);
    }
  }
  return total + tools.reduce((sum, tool) => sum + 8 + estimateTokens(JSON.stringify(tool)), 0);
}

// Agents put reminders and surroundings beside what the person wrote, each in a tag of its own.
const WRAPPED = /^\s*<([a-z][\w-]*)(?:\s[^>]*)?>[\s\S]*<\/\1>\s*$/i;

const textsOf = ({ content }: JsonObject): readonly string[] =>
  typeof content === 'string'
    ? [content]
    : listOf(content).flatMap((part) =>
        isObject(part) && typeof part.text === 'string' ? [part.text] : [],
      );

/** What a person wrote in a message: '' when all of it is wrapping. */
const spoken = (message: JsonObject): string =>
  textsOf(message)
    .map((text) => ownWords(text).trim())
    .filter((text) => text !== '' && !WRAPPED.test(text))
    .join('\n');

const FOLDER_TAG = /<cwd>([^<\n]{1,4096})<\/cwd>/;
const FOLDER_WORDS =
  /(?:working directory|in the directory|\bcwd)[^\w/]{1,4}(\/[^\s`"'<>]{1,4096})/i;

/** The messages from the last question on. */
function readEnd(messages: readonly JsonObject[]) {
  const isUser = ({ role }: JsonObject) => role === 'user';
  const said = messages.findLastIndex((message) => isUser(message) && spoken(message) !== '');
  // Nothing but wrapping: then that is what was said.
  const from = said < 0 ? messages.findLastIndex(isUser) : said;
  const asked = messages[from];
  const question =
    asked === undefined ? '' : said < 0 ? textsOf(asked).join('\n').trim() : spoken(asked);
  const recent = messages.slice(Math.max(0, from));
  const calls = recent.flatMap(callsOf);
  const names = new Map(
    calls.map((call) => {
      const inner = call.function ?? call.custom;
      return [String(call.id), isObject(inner) ? String(inner.name) : 'tool'];
    }),
  );
  const parts = recent.filter(isUser).flatMap(({ content }) => listOf(content));
  const countOf = (type: string) => parts.filter((part) => isObject(part) && part.type === type);
  const instructions = messages.filter(({ role }) => role === 'system' || role === 'developer');
  const folder = messages
    .filter(({ role }) => role !== 'assistant' && role !== 'tool')
    .flatMap(textsOf)
    .map((text) => (FOLDER_TAG.exec(text) ?? FOLDER_WORDS.exec(text))?.[1])
    .find((found) => found !== undefined);
  return {
    question,
    images: countOf('image_url').length,
    documents: countOf('file').length,
    audio: countOf('input_audio').length,
    rounds: recent.filter((message) => callsOf(message).length > 0).length,
    results: recent
      .filter(({ role }) => role === 'tool')
      .map((message) => ({
        name: names.get(String(message.tool_call_id)) ?? 'tool',
        text: textsOf(message).join('\n').trim(),
      })),
    cwd: folder?.trim().replace(/[.,;:]$/, ''),
    persona: instructions.flatMap(textsOf).join('\n'),
  };
}

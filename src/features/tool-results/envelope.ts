/** Recognises the record of an executed tool (`rcc.tool.v1` and its like) and says it in a few words. */

import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';

/** The version mark that such records carry, and by which leftovers of them are found in text. */
export const ENVELOPE_MARK = 'rcc.tool.v1';

/** What a tool that ran amounts to. */
export interface ToolOutcome {
  readonly ok: boolean;
  /** On success the tool's output, on failure the reason; '' when there is none. */
  readonly text: string;
}

// A record without the version mark is taken for one only when it holds nothing but these, so that
// data which merely has an exit code among other things is left alone.
const RESULT_KEYS: ReadonlySet<string> = new Set([
  'success',
  'exit_code',
  'exitCode',
  'duration_seconds',
  'duration_ms',
  'wall_time_seconds',
  'timed_out',
  'truncated',
  'signal',
  'stdout',
  'stderr',
  'output',
  'error',
  'metadata',
]);
const RECORD_KEYS: ReadonlySet<string> = new Set([
  'version',
  'tool',
  'arguments',
  'executed',
  'result',
  'meta',
]);

/** Records inside records: deeper than any gateway wraps them. */
const MAX_DEPTH = 4;
const REASON_LINES = 3;

/** The outcome that a result's text records; undefined when it is anything else. */
export function readEnvelope(text: string): ToolOutcome | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') || !trimmed.endsWith('}')) return undefined;
  const value = tryParse(trimmed);
  return isObject(value) ? outcomeOf(value, 0) : undefined;
}

/** `执行成功` with the output behind it, or `执行失败：` with the reason. */
export function shortText({ ok, text }: ToolOutcome): string {
  if (!ok) return `执行失败：${text === '' ? '原因不明' : text}`;
  return text === '' ? '执行成功' : `执行成功\n${text}`;
}

function outcomeOf(value: JsonObject, depth: number): ToolOutcome | undefined {
  if (depth > MAX_DEPTH) return undefined;
  const marked = value.version === ENVELOPE_MARK;
  const inner = isObject(value.result) ? value.result : undefined;
  const wrapped =
    inner !== undefined &&
    (marked || ('executed' in value && hasOnly(value, RECORD_KEYS)) || isResult(inner, value));
  if (wrapped) return fromResult({ ...pick(value, ['error']), ...inner }, depth);
  if (marked) return fromResult(value, depth);
  return hasOnly(value, RESULT_KEYS) && hasStatus(value) && hasOutput(value)
    ? fromResult(value, depth)
    : undefined;
}

const hasOnly = (value: JsonObject, keys: ReadonlySet<string>) =>
  Object.keys(value).every((key) => keys.has(key));

const isResult = (inner: JsonObject, outer: JsonObject) =>
  hasOnly(outer, RECORD_KEYS) && hasOnly(inner, RESULT_KEYS) && hasStatus(inner);

const hasOutput = (value: JsonObject) =>
  'stdout' in value || 'stderr' in value || 'output' in value || 'error' in value;

const hasStatus = (value: JsonObject) => exitCode(value) !== undefined || 'success' in value;

/** `exit_code`, in the record itself or (Codex) in its `metadata`. */
function exitCode(value: JsonObject): number | undefined {
  for (const place of [value, isObject(value.metadata) ? value.metadata : undefined]) {
    const code = place?.exit_code ?? place?.exitCode;
    if (typeof code === 'number') return code;
  }
  return undefined;
}

const pick = (value: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(keys.filter((key) => key in value).map((key) => [key, value[key]]));

function fromResult(result: JsonObject, depth: number): ToolOutcome {
  const nested = nestedOutcome(result.output, depth) ?? nestedOutcome(result.stdout, depth);
  const code = exitCode(result);
  const told = code !== undefined || typeof result.success === 'boolean';
  const ok = told
    ? code === 0 || result.success === true
    : nested !== undefined
      ? nested.ok
      : textOf(result.error) === '';
  // A record within is said by its own words, wherever it stands.
  const say = (value: Json | undefined) => nestedOutcome(value, depth)?.text ?? textOf(value);
  if (ok) {
    const output = say(result.output);
    const printed = [say(result.stdout), say(result.stderr)].filter((text) => text !== '');
    return { ok, text: output === '' ? printed.join('\n') : output };
  }
  const sources = [result.stderr, result.error, result.output, result.stdout].map(say);
  const reason = firstLines(sources.find((text) => text.trim() !== '') ?? '');
  if (reason !== '') return { ok, text: reason };
  return { ok, text: code === undefined ? '' : `exit code ${code}` };
}

/** An output that is itself such a record, as an object or as JSON text. */
function nestedOutcome(value: Json | undefined, depth: number): ToolOutcome | undefined {
  if (isObject(value)) return outcomeOf(value, depth + 1);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined;
  const parsed = tryParse(text);
  return isObject(parsed) ? outcomeOf(parsed, depth + 1) : undefined;
}

/** Text as it is without the blank lines around it, an error object by its message, other values as JSON. */
function textOf(value: Json | undefined): string {
  if (value === undefined || value === null || value === false) return '';
  if (typeof value === 'string') return withoutBlankLines(value);
  if (isObject(value)) {
    if (typeof value.message === 'string') return value.message.trimEnd();
    if (Object.keys(value).length === 0) return '';
  }
  if (Array.isArray(value) && value.length === 0) return '';
  return JSON.stringify(value);
}

/** The text without the blank lines before it and the white space behind it. */
function withoutBlankLines(text: string): string {
  const end = text.trimEnd();
  const lead = end.length - end.trimStart().length;
  const line = lead === 0 ? -1 : end.lastIndexOf('\n', lead - 1);
  return end.slice(line + 1);
}

/** The first lines that say something; what stands behind them is not read. */
function firstLines(text: string): string {
  const lines: string[] = [];
  for (let from = 0; from < text.length && lines.length < REASON_LINES; ) {
    const end = text.indexOf('\n', from);
    const line = text.slice(from, end < 0 ? text.length : end);
    if (line.trim() !== '') lines.push(line.endsWith('\r') ? line.slice(0, -1) : line);
    from = end < 0 ? text.length : end + 1;
  }
  return lines.join('\n');
}

/** Recognises records of executed tools (`rcc.tool.v1` and similar) and reduces them to a short text. */

import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { wordSet } from '../../lib/text/words.ts';

/** The version mark of such records; also used to find their remains in text. */
export const ENVELOPE_MARK = 'rcc.tool.v1';

export interface ToolOutcome {
  readonly ok: boolean;
  /** The tool's output, or the reason of its failure; '' if there is none. */
  readonly text: string;
}

// A record without the version mark is recognised only if it has no other keys, so that data which
// merely contains an exit code is left alone.
const RESULT_KEYS = wordSet(`
  success exit_code exitCode duration_seconds duration_ms wall_time_seconds timed_out truncated
  signal stdout stderr output error metadata`);
export const RECORD_KEYS = ['version', 'tool', 'arguments', 'executed', 'result', 'meta'] as const;
const IN_RECORDS: ReadonlySet<string> = new Set(RECORD_KEYS);

/** Maximum nesting of records within records; no gateway wraps them deeper. */
const MAX_DEPTH = 4;
const REASON_LINES = 3;

/** The outcome recorded in a result's text; undefined if the text is no record. */
export function readEnvelope(text: string): ToolOutcome | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') || !trimmed.endsWith('}')) return undefined;
  const value = tryParse(trimmed);
  return isObject(value) ? outcomeOf(value, 0) : undefined;
}

/** `执行成功` and the output, or `执行失败：` and the reason. */
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
    (marked || ('executed' in value && hasOnly(value, IN_RECORDS)) || isResult(inner, value));
  if (wrapped) return fromResult({ ...pick(value, ['error']), ...inner }, depth);
  if (marked) return fromResult(value, depth);
  return hasOnly(value, RESULT_KEYS) && hasStatus(value) && hasOutput(value)
    ? fromResult(value, depth)
    : undefined;
}

const hasOnly = (value: JsonObject, keys: ReadonlySet<string>) =>
  Object.keys(value).every((key) => keys.has(key));

const isResult = (inner: JsonObject, outer: JsonObject) =>
  hasOnly(outer, IN_RECORDS) && hasOnly(inner, RESULT_KEYS) && hasStatus(inner);

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
  const stated = code !== undefined || typeof result.success === 'boolean';
  const ok = stated
    ? code === 0 || result.success === true
    : nested !== undefined
      ? nested.ok
      : textOf(result.error) === '';
  // A nested record gives its own text, whichever field holds it.
  const read = (value: Json | undefined) => nestedOutcome(value, depth)?.text ?? textOf(value);
  if (ok) {
    const output = read(result.output);
    const printed = [read(result.stdout), read(result.stderr)].filter((text) => text !== '');
    return { ok, text: output === '' ? printed.join('\n') : output };
  }
  const sources = [result.stderr, result.error, result.output, result.stdout].map(read);
  const reason = firstLines(sources.find((text) => text.trim() !== '') ?? '');
  if (reason !== '') return { ok, text: reason };
  return { ok, text: code === undefined ? '' : `exit code ${code}` };
}

/** The outcome of an output that is itself a record, as an object or as JSON text. */
function nestedOutcome(value: Json | undefined, depth: number): ToolOutcome | undefined {
  if (isObject(value)) return outcomeOf(value, depth + 1);
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  if (!text.startsWith('{') || !text.endsWith('}')) return undefined;
  const parsed = tryParse(text);
  return isObject(parsed) ? outcomeOf(parsed, depth + 1) : undefined;
}

/** A string without blank lines around it, the message of an error object, other values as JSON. */
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

/** The text without leading blank lines and trailing white space. */
function withoutBlankLines(text: string): string {
  const end = text.trimEnd();
  const lead = end.length - end.trimStart().length;
  const line = lead === 0 ? -1 : end.lastIndexOf('\n', lead - 1);
  return end.slice(line + 1);
}

/** The first lines that are not blank. Reads no further. */
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

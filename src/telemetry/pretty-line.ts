/** Formats a JSON log line for people: time, level, event, then the other fields as key=value. */

import { styleText } from 'node:util';
import { cutText, printableLine } from '../lib/text/printable-text.ts';

type Style = Parameters<typeof styleText>[0];

const LEVELS: Readonly<Record<string, { readonly word: string; readonly style: Style }>> = {
  trace: { word: 'TRACE', style: 'gray' },
  debug: { word: 'DEBUG', style: 'gray' },
  info: { word: 'INFO ', style: 'green' },
  warn: { word: 'WARN ', style: 'yellow' },
  error: { word: 'ERROR', style: 'red' },
  fatal: { word: 'FATAL', style: 'magenta' },
};

const HEAD = new Set(['level', 'time', 'msg', 'event', 'err']);
const PLAIN = /^[^\s"={}[\]]+$/;

// Characters of one text, and of all fields of a line.
const MAX_TEXT = 1000;
const MAX_LINE = 8000;

/** A text from any source, without control characters that could reach the terminal. */
const shown = (text: unknown): string => printableLine(String(text), MAX_TEXT);

function value(of: unknown): string {
  if (typeof of === 'string') {
    const text = cutText(of, MAX_TEXT);
    return PLAIN.test(text) ? text : JSON.stringify(text);
  }
  if (typeof of !== 'object' || of === null) return String(of);
  if (Array.isArray(of)) return JSON.stringify(of.slice(0, 100));
  return `{${Object.entries(of)
    .filter(([, member]) => member !== undefined && member !== null)
    .map(([key, member]) => `${key}:${value(member)}`)
    .join(' ')}}`;
}

function exchange(entry: Readonly<Record<string, unknown>>): { head: string; used: string[] } {
  const timings = (entry.timings ?? {}) as { total?: number };
  const { status, client, target = '-' } = entry;
  const head = `${shown(status)} ${shown(client)} → ${shown(target)} ${shown(timings.total ?? '?')} ms`;
  return { head, used: ['status', 'client', 'target'] };
}

/**
 * Turns one JSON log line into a readable one, line break included; other text is returned unchanged. An
 * error's stack follows on separate lines.
 */
export function prettyLine(json: string, colour: boolean): string {
  let entry: Record<string, unknown>;
  try {
    entry = JSON.parse(json);
  } catch {
    return json;
  }
  const paint = (style: Style, text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const level = LEVELS[String(entry.level)] ?? LEVELS.info!;
  const name = typeof entry.event === 'string' ? entry.event : '';
  const special = name === 'exchange' ? exchange(entry) : { head: '', used: [] };
  const texts = [special.head || shown(name), shown(entry.msg ?? '')].filter((text) => text !== '');
  const rest = Object.entries(entry)
    .filter(([key, v]) => !HEAD.has(key) && !special.used.includes(key) && v !== undefined)
    .map(([key, v]) => [shown(key), printableLine(value(v), 4 * MAX_TEXT)] as const);
  const time = typeof entry.time === 'string' ? localTime(entry.time) : '';
  const line = [
    paint('gray', time),
    paint(level.style, level.word),
    texts.join(' '),
    fieldsOf(rest, (key) => paint('gray', key)),
  ].filter((part) => part !== '');
  const error = entry.err as { stack?: string; message?: string; type?: string } | undefined;
  if (error === undefined) return `${line.join(' ')}\n`;
  const stack = error.stack ?? `${error.type ?? 'Error'}: ${error.message ?? ''}`;
  const lines = cutText(String(stack), MAX_LINE).split('\n');
  return `${line.join(' ')}\n${lines.map((one) => `    ${shown(one)}\n`).join('')}`;
}

/** The fields as `key=value`, as many as fit in a line. */
function fieldsOf(
  fields: readonly (readonly [string, string])[],
  paint: (key: string) => string,
): string {
  const texts: string[] = [];
  let size = 0;
  for (const [key, text] of fields) {
    size += key.length + text.length;
    if (size > MAX_LINE) return [...texts, '...'].join(' ');
    texts.push(paint(`${key}=`) + text);
  }
  return texts.join(' ');
}

/** HH:MM:SS.mmm of this machine's clock. */
function localTime(iso: string): string {
  const at = new Date(iso);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

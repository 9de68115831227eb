/** Formats a JSON log line for people: time, level, event, then the other fields as key=value; an exchange in words. */

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

/** `812 ms`, `4.3 s`. */
const duration = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

const isNumber = (of: unknown): of is number => typeof of === 'number';

/** `812 in (640 cached), 96 out`. The kinds of tokens exclude each other; `in` is the whole prompt. */
function tokens(of: unknown): string {
  const usage = (of ?? {}) as Readonly<Record<string, unknown>>;
  const sum = (...names: string[]) =>
    names.reduce((all, name) => all + (isNumber(usage[name]) ? usage[name] : 0), 0);
  const cached = sum('cache_read');
  return `${sum('input', 'cache_read', 'cache_write')} in${cached === 0 ? '' : ` (${cached} cached)`}, ${sum('output', 'reasoning')} out`;
}

interface ExchangeText {
  /** The outcome, at the beginning of the line. */
  readonly head: string;
  /** What identifies the exchange, at its end. */
  readonly tail: string;
  /** The fields that both show, so that they are not repeated. */
  readonly used: readonly string[];
}

/** The first of several notes, and how many more there are: a line that ends on the screen on which it begins. */
function folded(notes: string): string {
  const [first = '', ...others] = cutText(notes, MAX_TEXT).split(',');
  return others.length === 0 ? value(first) : `${value(first)},+${others.length}`;
}

/** The line of an exchange in the words of people: the outcome, times, tokens and cost; then the other fields. */
function exchange(entry: Readonly<Record<string, unknown>>): ExchangeText {
  const { status, client, target = '-', timings, usage, cost_usd, hops, error, id } = entry;
  const { total, first_byte } = (timings ?? {}) as Readonly<Record<string, unknown>>;
  const first =
    entry.stream === true && isNumber(first_byte) ? `, first ${duration(first_byte)}` : '';
  const took = isNumber(total) ? `${duration(total)}${first}` : '';
  const facts = [
    took,
    usage === undefined ? '' : tokens(usage),
    isNumber(cost_usd) ? `$${Number(cost_usd.toPrecision(3))}` : '',
    isNumber(hops) && hops > 1 ? `${hops} hops` : '',
    entry.aborted === true ? 'client left' : '',
    error === undefined ? '' : `${shown(error)}: ${shown(entry.error_message ?? 'no message')}`,
  ];
  const outcome = [`${shown(status)} ${shown(client)} → ${shown(target)}`, ...facts];
  const used =
    'status client target stream timings usage cost_usd hops aborted error error_message id';
  return {
    head: outcome.filter((part) => part !== '').join('  '),
    tail: id === undefined ? '' : shown(id),
    used: used.split(' '),
  };
}

const NO_EXCHANGE: ExchangeText = { head: '', tail: '', used: [] };

/**
 * Turns one JSON log line into a readable one, line break included; other text is returned unchanged. The stack of
 * an error follows on separate lines. A cost has three significant digits.
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
  const special = name === 'exchange' ? exchange(entry) : NO_EXCHANGE;
  const texts = [special.head || shown(name), shown(entry.msg ?? '')].filter((text) => text !== '');
  const rest = Object.entries(entry)
    .filter(([key, v]) => !HEAD.has(key) && !special.used.includes(key) && v !== undefined)
    .map(([key, v]) => {
      const text = special.head !== '' && key === 'notes' ? folded(String(v)) : value(v);
      return [shown(key), printableLine(text, 4 * MAX_TEXT)] as const;
    });
  const time = typeof entry.time === 'string' ? localTime(entry.time) : '';
  const line = [
    paint('gray', time),
    paint(level.style, level.word),
    texts.join(' '),
    fieldsOf(rest, (key) => paint('gray', key)),
    special.tail === '' ? '' : paint('gray', special.tail),
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

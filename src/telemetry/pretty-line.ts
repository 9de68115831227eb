/** Formats a JSON log line for people: time, level, event, then the other fields as key=value; an exchange in words. */

import { styleText } from 'node:util';
import { cutText, printableLine } from '../lib/text/printable-text.ts';
import { usdText } from '../lib/text/usd.ts';

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

/** `812`, `2.8k`, `213k`, `1.3M`. */
function amount(of: number): string {
  const [size, unit] = of < 1000 ? [of, ''] : of < 999_500 ? [of / 1e3, 'k'] : [of / 1e6, 'M'];
  return `${size < 10 ? Number(size.toFixed(1)) : Math.round(size)}${unit}`;
}

/** The sum of kinds of tokens, which exclude each other. */
function sum(usage: unknown, ...kinds: readonly string[]): number {
  const of = (usage ?? {}) as Readonly<Record<string, unknown>>;
  return kinds.reduce((all, kind) => all + (isNumber(of[kind]) ? of[kind] : 0), 0);
}

/** `21k in, 96 out`; `in` is the whole prompt. */
const tokens = (usage: unknown): string =>
  `${amount(sum(usage, 'input', 'cache_read', 'cache_write'))} in, ${amount(sum(usage, 'output', 'reasoning'))} out`;

// Columns of an exchange without its error, and of what stands before its status.
const MAX_COLUMNS = 120;
const HEAD_COLUMNS = '00:00:00 LEVEL '.length;

const USED = new Set(
  'status client target stream timings usage cost_usd hops aborted error error_message error_cause key key_name cache_lost cache_lost_usd notes id'.split(
    ' ',
  ),
);

/** `claude-cli` of `openai-chat claude-cli/2.1.330`; the protocol of a client without a name. */
function program(client: string): string {
  const [protocol = '', name = protocol] = client.split(' ', 2);
  return name.replace(/\/\d.*/, '');
}

/**
 * An exchange in the words of people: the outcome, who asked, time, tokens and cost, the last part of the id, and why
 * it failed. Before the id stands what still fits into the columns of a terminal; the JSON line has everything.
 */
function exchange(
  entry: Readonly<Record<string, unknown>>,
  faint: (text: string) => string,
): string {
  const { status, client, target = '-', timings, usage, cost_usd, hops, error, id } = entry;
  const { total, first_byte } = (timings ?? {}) as Readonly<Record<string, unknown>>;
  const { key, key_name = key, cache_lost, cache_lost_usd, notes } = entry;
  const agent = program(shown(client));
  const cached = sum(usage, 'cache_read');
  const facts = [
    `${shown(status)} ${key_name === undefined ? agent : shown(key_name)} → ${shown(target)}`,
    isNumber(total) ? duration(total) : '',
    usage === undefined ? '' : tokens(usage),
    isNumber(cost_usd) ? usd(cost_usd) : '',
    isNumber(hops) && hops > 1 ? `${hops} hops` : '',
    entry.aborted === true ? 'client left' : '',
  ].filter((part) => part !== '');
  const short = shown(id ?? '').replace(/^req_\d+_/, '');
  const lost = isNumber(cache_lost_usd) && cache_lost_usd > 0 ? ` (${usd(cache_lost_usd)})` : '';
  const spare = [
    cached === 0 ? '' : `${amount(cached)} cached`,
    isNumber(cache_lost) ? `cache lost ${amount(cache_lost)}${lost}` : '',
    isNumber(first_byte) && entry.stream === true ? `first ${duration(first_byte)}` : '',
    key_name === undefined ? '' : agent,
    notes === undefined ? '' : noted(cutText(String(notes), MAX_TEXT).split(',')),
    ...Object.entries(entry)
      .filter(([name, v]) => !HEAD.has(name) && !USED.has(name) && v !== undefined)
      .map(([name, v]) => `${shown(name)}=${printableLine(value(v), MAX_TEXT)}`),
  ];
  let room = MAX_COLUMNS - HEAD_COLUMNS - [...facts, short].join('  ').length;
  const fitting = spare.filter((text) => {
    if (text === '' || text.length + 2 > room) return false;
    room -= text.length + 2;
    return true;
  });
  const cause = entry.error_cause === undefined ? '' : ` (${shown(entry.error_cause)})`;
  const why =
    error === undefined
      ? []
      : [`${shown(error)}: ${shown(entry.error_message ?? 'no message')}${cause}`];
  return [...facts, ...[...fitting, short].map(faint), ...why].join('  ');
}

const usd = (amount: number): string =>
  `$${usdText(Math.round(Number(amount.toPrecision(3)) * 1e9))}`;

const noted = (notes: readonly string[]): string =>
  printableLine(notes.length === 1 ? notes[0]! : `${notes.length} notes`, MAX_TEXT);

/**
 * Turns one JSON log line into a readable one, line break included; other text is returned unchanged. The stack of
 * an error follows on separate lines.
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
  const time = typeof entry.time === 'string' ? localTime(entry.time) : '';
  const line = [
    paint('gray', time),
    paint(level.style, level.word),
    ...(name === 'exchange'
      ? [exchange(entry, (text) => paint('gray', text))]
      : [shown(name), shown(entry.msg ?? ''), fieldsOf(entry, (key) => paint('gray', key))]),
  ].filter((part) => part !== '');
  const error = entry.err as { stack?: string; message?: string; type?: string } | undefined;
  if (error === undefined) return `${line.join(' ')}\n`;
  const stack = error.stack ?? `${error.type ?? 'Error'}: ${error.message ?? ''}`;
  const lines = cutText(String(stack), MAX_LINE).split('\n');
  return `${line.join(' ')}\n${lines.map((one) => `    ${shown(one)}\n`).join('')}`;
}

/** The fields as `key=value`, as many as fit in a line. */
function fieldsOf(
  entry: Readonly<Record<string, unknown>>,
  paint: (key: string) => string,
): string {
  const texts: string[] = [];
  let size = 0;
  for (const [key, of] of Object.entries(entry)) {
    if (HEAD.has(key) || of === undefined) continue;
    const text = printableLine(value(of), 4 * MAX_TEXT);
    size += key.length + text.length;
    if (size > MAX_LINE) return [...texts, '...'].join(' ');
    texts.push(paint(`${shown(key)}=`) + text);
  }
  return texts.join(' ');
}

/** HH:MM:SS of this machine's clock. */
function localTime(iso: string): string {
  const at = new Date(iso);
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

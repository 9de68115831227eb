/** The log: pino lines on stderr, credentials masked, JSON for machines and a compact line for people. */

import pino from 'pino';
import { cutWords } from '../lib/text/printable-text.ts';
import { redactText } from '../lib/text/redact.ts';
import { maskSecrets, secretSpellings } from '../lib/text/secret-spellings.ts';
import { batched, type Lines, MOST_HELD_BYTES } from './batched-lines.ts';
import { prettyLine } from './pretty-line.ts';
import { stderrDescriptor } from './stderr.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** What the rest of the program may do with a log. */
export type Log = Pick<
  pino.Logger,
  'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'level' | 'isLevelEnabled'
> & { child(bindings: Readonly<Record<string, unknown>>): Log };

type Fields = Readonly<Record<string, unknown>>;
type Level = 'debug' | 'info' | 'warn' | 'error';

export interface LogOptions {
  readonly level?: LogLevel;
  /** `auto`: pretty on a terminal, JSON else. */
  readonly format?: 'auto' | 'json' | 'pretty';
  /** Is stderr a terminal? */
  readonly isTTY?: boolean;
  readonly colour?: boolean;
  /** Secrets that need not look like one: masked wherever they stand in a line. */
  readonly secrets?: () => readonly string[];
  /** Takes finished lines, line break included; stderr, synchronously, when left out. */
  readonly write?: (line: string) => void;
}

/**
 * A log that writes synchronously (a line is out before a crash) and without pino's transports, whose
 * worker threads cannot be loaded inside the compiled executable. Every line goes through the mask.
 */
export function createLog(options: LogOptions = {}): Log {
  const { level = 'info', format = 'auto', isTTY = false, colour = false } = options;
  const pretty = format === 'pretty' || (format === 'auto' && isTTY);
  const spellings = spellingsOf(options.secrets);
  const withoutSecrets = (lines: string): string => maskSecrets(lines, spellings());
  const given = options.write;
  const lines: Lines =
    given === undefined
      ? batched(
          pino.destination({
            dest: stderrDescriptor(),
            sync: true,
            maxLength: MOST_HELD_BYTES,
            // It would sleep for 100 ms, again and again.
            retryEAGAIN: () => false,
          }),
          withoutSecrets,
          (lost) => event(log, 'log.lost', { lines: lost }, 'warn'),
        )
      : { now: (line) => given(withoutSecrets(line)), soon: (line) => given(withoutSecrets(line)) };
  // What a person's line shows is cut and escaped otherwise: a secret must be gone before.
  const shown = (line: string) => (pretty ? prettyLine(withoutSecrets(line), colour) : line);
  // Known secrets first: a pattern may take a part of one, and the rest of it would be found by nobody.
  const masked = (text: string) => redactText(withoutSecrets(text)).text;
  const stream = { write: (line: string) => lines.now(shown(masked(line))) };
  const log: Log = pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: bounded },
    },
    stream,
  );
  const plain = (at: Level, name: string, members: string): void => {
    if (!log.isLevelEnabled(at)) return;
    lines.soon(shown(`{"level":"${at}","time":"${isoNow()}","event":"${name}",${members}}\n`));
  };
  PLAIN.set(log, plain);
  MASKS.set(log, masked);
  return log;
}

// Of one text of an event: the words of a vendor, a tool or a file can be megabytes.
const MOST_OF_TEXT = 4000;

/** The same fields, their texts cut; the very object where none is long. */
function bounded(fields: Record<string, unknown>): Record<string, unknown> {
  let out = fields;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value !== 'string' || value.length <= MOST_OF_TEXT) continue;
    if (out === fields) out = { ...fields };
    out[name] = cutWords(value, MOST_OF_TEXT);
  }
  return out;
}

/** How a log writes lines of {@link maskedEvent}; children, whose bindings it would not know, have none. */
const PLAIN = new WeakMap<Log, (level: Level, name: string, members: string) => void>();

const MASKS = new WeakMap<Log, (text: string) => string>();

/** What a log would write of a text: credentials masked, and the secrets that this log knows. */
export const maskedFor = (log: Log, text: string): string =>
  (MASKS.get(log) ?? ((own: string) => redactText(own).text))(text);

/** How secrets are spelled in lines, which are JSON; made anew when they are others. */
function spellingsOf(secrets: LogOptions['secrets']): () => readonly string[] {
  let known: readonly string[] | undefined;
  let spellings: readonly string[] = [];
  return () => {
    const now = secrets?.();
    if (now !== known) {
      known = now;
      const all = (now ?? []).flatMap((secret) => secretSpellings(secret, false));
      spellings = [...new Set(all)].toSorted((a, b) => b.length - a.length);
    }
    return spellings;
  };
}

let lastTime = 0;
let lastText = '';

/** Now, as the lines tell it; many lines share a millisecond. */
function isoNow(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastText = new Date(now).toISOString();
  }
  return lastText;
}

/** A log that says nothing, for tests and for commands that only print. */
export const SILENT: Log = createLog({ level: 'silent', write: () => {} });

/**
 * One named event, the kind that people grep and scripts count: the field `event` holds the name.
 * Names once published are kept, e.g. `chat.process.hop3.assembled`.
 */
export function event(
  log: Log,
  name: string,
  fields: Readonly<Record<string, unknown>> = {},
  level: Level = 'info',
): void {
  if (log.isLevelEnabled(level)) log[level]({ event: name, ...fields });
}

/**
 * The same for members, one at least, that are JSON text already and hold no credential any more: without
 * the mask over the whole line and what else a line of any kind needs. It is what an exchange pays for its
 * line.
 */
export function maskedEvent(log: Log, name: string, members: string, level: Level): void {
  const write = PLAIN.get(log);
  if (write === undefined) event(log, name, JSON.parse(`{${members}}`) as Fields, level);
  else write(level, name, members);
}

/** The log: lines on stderr through pino, with credentials masked, as JSON or as compact lines for people. */

import { constants, fstatSync, openSync } from 'node:fs';
import pino from 'pino';
import { cutWords, withoutControls } from '../lib/text/printable-text.ts';
import { redactText } from '../lib/text/redact.ts';
import { fetchedSecrets } from '../lib/text/secret-literals.ts';
import { maskSecrets, secretSpellings } from '../lib/text/secret-spellings.ts';
import { prettyLine } from './pretty-line.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** The part of a pino logger that the program uses. */
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
  /** Secrets of any form; they are masked wherever they stand in a line. */
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
            maxLength: MAX_HELD_BYTES,
            // It would sleep for 100 ms, again and again.
            retryEAGAIN: () => false,
          }),
          withoutSecrets,
          (lost) => event(log, 'log.lost', { lines: lost }, 'warn'),
        )
      : { now: (line) => given(withoutSecrets(line)), soon: (line) => given(withoutSecrets(line)) };
  // Pretty lines cut and escape texts, so secrets must be masked before.
  const shown = (line: string) => (pretty ? prettyLine(withoutSecrets(line), colour) : line);
  // Known secrets first: a pattern may mask only a part of one, and the rest would then not be recognized.
  const masked = (text: string) => redactText(withoutSecrets(text)).text;
  const stream = { write: (line: string) => lines.now(shown(withoutControls(masked(line)))) };
  const log: Log = pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: bounded },
    },
    stream,
  );
  const writeMembers = (at: Level, name: string, members: string): void => {
    if (!log.isLevelEnabled(at)) return;
    const line = `{"level":"${at}","time":"${isoNow()}","event":"${name}",${members}}\n`;
    lines.soon(shown(line));
  };
  MEMBER_WRITERS.set(log, writeMembers);
  MASKS.set(log, masked);
  return log;
}

// Characters of one text of an event: a message of a vendor, a tool or a file can have megabytes.
const MAX_TEXT = 4000;

/** The fields with long texts cut; the same object when none is long. */
function bounded(fields: Record<string, unknown>): Record<string, unknown> {
  let out = fields;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value !== 'string' || value.length <= MAX_TEXT) continue;
    if (out === fields) out = { ...fields };
    out[name] = cutWords(value, MAX_TEXT);
  }
  return out;
}

/** How a log writes lines of {@link maskedEvent}. Child logs have none, since their bindings would be missing. */
const MEMBER_WRITERS = new WeakMap<Log, (level: Level, name: string, members: string) => void>();

const MASKS = new WeakMap<Log, (text: string) => string>();

/** A text as a log would write it: credentials and the secrets that this log knows are masked. */
export const maskedFor = (log: Log, text: string): string =>
  (MASKS.get(log) ?? ((own: string) => redactText(own).text))(text);

/** The secrets as JSON lines spell them; computed again when the secrets change. */
function spellingsOf(secrets: LogOptions['secrets']): () => readonly string[] {
  let known: readonly string[] | undefined;
  let fetched: readonly string[] = [];
  let spellings: readonly string[] = [];
  return () => {
    const now = secrets?.();
    if (now !== known || fetched !== fetchedSecrets()) {
      known = now;
      fetched = fetchedSecrets();
      const all = [...(now ?? []), ...fetched].flatMap((secret) => secretSpellings(secret, false));
      spellings = [...new Set(all)].toSorted((a, b) => b.length - a.length);
    }
    return spellings;
  };
}

let lastTime = 0;
let lastText = '';

/** The current time for a line; remembered, since many lines share a millisecond. */
function isoNow(): string {
  const now = Date.now();
  if (now !== lastTime) {
    lastTime = now;
    lastText = new Date(now).toISOString();
  }
  return lastText;
}

/** A log that writes nothing, for tests and for commands that only print. */
export const SILENT: Log = createLog({ level: 'silent', write: () => {} });

/**
 * Logs a named event; the field `event` holds the name, for searching and counting. Published names, such
 * as `chat.process.hop3.assembled`, never change.
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
 * The same for members (at least one) that are JSON text already, with credentials masked and without control
 * characters. Cheaper than {@link event}, since the line is not searched again: every exchange writes such a line.
 */
export function maskedEvent(log: Log, name: string, members: string, level: Level): void {
  const write = MEMBER_WRITERS.get(log);
  if (write === undefined) event(log, name, JSON.parse(`{${members}}`) as Fields, level);
  else write(level, name, members);
}

/**
 * A file descriptor for stderr. When no process reads a pipe, a write blocks for ever once 64 KB are in it. So
 * the pipe is opened again as non-blocking, and a write fails with EAGAIN instead. (The flag on descriptor 2
 * itself is shared with other processes.) Sockets cannot be opened again, and stay as they are.
 */
function stderrDescriptor(): number {
  try {
    if (!fstatSync(2).isFIFO()) return 2;
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // Not Linux.
    return 2;
  }
}

export interface Lines {
  /** Written before this returns, after all lines that waited. */
  now(line: string): void;
  /** Written at the end of this turn of the event loop. */
  soon(line: string): void;
}

/** The part of `pino.destination` that is used. */
export interface Destination {
  write(text: string): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'drop', listener: (text: string) => void): unknown;
  on(event: 'drain', listener: () => void): unknown;
}

/** Bytes that are held while stderr accepts none; lines beyond that are lost. */
export const MAX_HELD_BYTES = 1024 * 1024;

// A busy reader is waited for once. After that, a reader that has stopped costs the program no more time.
const BUSY_WAIT_MS = 5;
const EXIT_WAIT_MS = 1000;

/**
 * Lines that may wait are written together at the end of the turn of the event loop, or when the process
 * exits: one search for secrets and one system call for all of them. A crash loses only the lines of its own
 * turn. No call throws or waits for long, whether the disk is full or the reader has stopped.
 * @param onLost called with the number of lines that were lost, once lines can be written again
 */
export function batched(
  stderr: Destination,
  withoutSecrets: (lines: string) => string,
  onLost: (lines: number) => void,
): Lines {
  let waiting = '';
  let lost = 0;
  /** The last write failed; its text is held. */
  let full = false;
  /** Waiting for the reader did not help. */
  let stuck = false;
  // Without a listener, the error would be thrown into the code that logs.
  stderr.on('error', () => {
    full = true;
  });
  stderr.on('drop', (text) => {
    lost += text.split('\n').length - 1;
  });
  stderr.on('drain', () => {
    if (lost === 0) return;
    const lines = lost;
    lost = 0;
    onLost(lines);
  });
  const flush = () => {
    if (waiting === '') return;
    const text = waiting;
    waiting = '';
    const before = lost;
    const written = attempt(withoutSecrets(text)) && (lost === before || attempt(''));
    stuck = !written && (stuck || !retriedFor(BUSY_WAIT_MS));
  };
  /** Writes the held text and this one; returns whether all was written. Text beyond the limit is dropped. */
  const attempt = (text: string): boolean => {
    full = false;
    stderr.write(text);
    return !full;
  };
  /** Tries again every millisecond; returns whether all was written. */
  const retriedFor = (ms: number): boolean => {
    for (let waited = 0; waited < ms; waited++) {
      Bun.sleepSync(1);
      if (attempt('')) return true;
    }
    return false;
  };
  process.on('exit', () => {
    flush();
    if (full) retriedFor(EXIT_WAIT_MS);
  });
  return {
    now(line) {
      waiting += line;
      flush();
    },
    soon(line) {
      if (waiting === '') queueMicrotask(flush);
      waiting += line;
    },
  };
}

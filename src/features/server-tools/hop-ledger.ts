/** The hop ledger: the hops of an answer that the client never saw, stored for the client's next request. */

import type { Turn } from '../../conversation/types.ts';
import {
  ENTRIES,
  type LedgerKind,
  type LedgerOptions,
  openLedgerFile,
  TOTALS,
} from '../../state/ledger-store.ts';
import type { NumberedSource } from './citations/sources.ts';

/** One answer as the upstream knows it: every turn from the first held call to the end of the answer. */
export interface HopEntry {
  readonly turns: readonly Turn[];
  /** The numbered sources that those turns mention. */
  readonly sources: readonly NumberedSource[];
  /** Ids of the client's own calls in the last turn, in order. */
  readonly clientCalls: readonly string[];
}

export interface HopLedger {
  /** It has no entries, so no request needs a lookup. */
  readonly empty: boolean;
  /** The entry of the first key that is known. */
  find(keys: readonly string[]): HopEntry | undefined;
  /** Stores an entry under all of the keys; a newer entry replaces an older one of the same key. */
  put(keys: readonly string[], entry: HopEntry): void;
  /** Writes everything that is queued. Never throws. */
  flush(): void;
  close(): void;
}

const HOPS: LedgerKind = {
  name: 'hop ledger',
  migrations: [ENTRIES, TOTALS],
  keep: 'newest',
  limits: { entries: 20_000, bytes: 256 * 1024 * 1024, age: 30 * 24 * 3_600_000 },
  // Another process may get the client's next request, and a client's own tool can be that fast.
  flushAfter: 20,
};

/** Opens the ledger on disk. Never throws: without a usable file the latest entries stay in memory. */
export function openHopLedger(options: LedgerOptions): HopLedger {
  const file = openLedgerFile<HopEntry>(HOPS, options);
  if (file === undefined) return memoryLedger();
  return {
    get empty() {
      return file.empty;
    },
    find(keys) {
      for (const key of keys) {
        const entry = file.get(key);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    put: (keys, entry) => file.put(keys, entry),
    flush: () => file.flush(),
    close: () => file.close(),
  };
}

/** A ledger in memory alone; the least recently used entries are removed first. */
export function memoryLedger(limit = 1000): HopLedger {
  const entries = new Map<string, HopEntry>();
  return {
    get empty() {
      return entries.size === 0;
    },
    find(keys) {
      for (const key of keys) {
        const entry = entries.get(key);
        if (entry === undefined) continue;
        entries.delete(key);
        entries.set(key, entry);
        return entry;
      }
      return undefined;
    },
    put(keys, entry) {
      for (const key of keys) {
        entries.delete(key);
        entries.set(key, entry);
      }
      for (const key of entries.keys()) {
        if (entries.size <= limit) break;
        entries.delete(key);
      }
    },
    flush: () => {},
    close: () => {},
  };
}

/** An answer of at least so many characters is recognised by its text alone. */
const UNMISTAKABLE_LENGTH = 80;

const sha = (text: string) =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 40);

/** Clients trim, join and re-wrap white space, so keys ignore it. */
const withoutSpace = (text: string) => text.replace(/\s+/g, '');

const RUN = /[0-9a-z]{12,}/gi;
const MANY_DIGITS = /\d{12}/;

/** Looks random: 16 letters and digits in a row with both among them, or 12 digits. */
function isRandom(id: string): boolean {
  for (const [run] of id.matchAll(RUN)) {
    if (MANY_DIGITS.test(run)) return true;
    if (run.length >= 16 && /\d/.test(run) && /[a-z]/i.test(run)) return true;
  }
  return false;
}

/**
 * The key of a call that the client saw, its own or a shown one. Some vendors number their calls
 * (`call_0`, `functions.Bash:0`): such an id identifies a call only together with the text around it.
 * @param text the visible text of the answer
 * @param textBefore the text of the turn before it
 */
export function callKey(owner: string, id: string, text: string, textBefore: string): string {
  const context = isRandom(id) ? '' : `\0${withoutSpace(text)}\0${withoutSpace(textBefore)}`;
  return sha(`call\0${owner}\0${id}${context}`);
}

/**
 * The keys of an answer by its visible text. A short one ("Done.") is recognised only together with the
 * text before it; a long one also by itself, since clients edit earlier turns.
 */
export function textKeys(owner: string, text: string, textBefore: string): readonly string[] {
  const bare = withoutSpace(text);
  if (bare === '') return [];
  const exact = sha(`said\0${owner}\0${bare}\0${withoutSpace(textBefore)}`);
  return bare.length < UNMISTAKABLE_LENGTH ? [exact] : [exact, sha(`said\0${owner}\0${bare}`)];
}

/** The text of a turn, tool results included. */
export function textOf(turn: Turn | undefined): string {
  let text = '';
  for (const block of turn?.blocks ?? []) {
    if (block.type === 'text' || block.type === 'refusal') text += block.text;
    else if (block.type === 'tool-result') {
      for (const part of block.content) if (part.type === 'text') text += part.text;
    }
  }
  return text;
}

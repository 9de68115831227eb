/** What the client never saw of an answer, kept so that the model remembers it at the next request. */

import type { Turn } from '../../conversation/types.ts';
import type { NumberedSource } from './citations/sources.ts';

/** One answer as the upstream knows it: every turn from the first held call to the last word. */
export interface HopEntry {
  readonly turns: readonly Turn[];
  /** Numbered sources that those turns name. */
  readonly sources: readonly NumberedSource[];
  /** Ids of the client's own calls in the last turn, in their order. */
  readonly clientCalls: readonly string[];
}

export interface HopLedger {
  /** Nothing is kept: no request needs a look. */
  readonly empty: boolean;
  /** The entry behind the first of the keys that is known, key by key. */
  find(keys: readonly string[]): HopEntry | undefined;
  /** Keeps an entry under all of the keys; the newest under a key counts. */
  put(keys: readonly string[], entry: HopEntry): void;
  /** Writes all that waits. Never throws. */
  flush(): void;
  close(): void;
}

/** Characters of an answer that make it safe to know it by itself. */
const LONG = 80;

const sha = (text: string) =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 40);

/** White space is what clients trim, join and re-wrap. */
const bare = (text: string) => text.replace(/\s+/g, '');

const RUN = /[0-9a-z]{12,}/gi;
const MANY_DIGITS = /\d{12}/;

/** What only chance can have made: 16 letters and digits in a row, both among them, or 12 digits. */
function isRandom(id: string): boolean {
  for (const [run] of id.matchAll(RUN)) {
    if (MANY_DIGITS.test(run)) return true;
    if (run.length >= 16 && /\d/.test(run) && /[a-z]/i.test(run)) return true;
  }
  return false;
}

/**
 * The key of a call that the client saw, its own or a shown one. Some vendors count (`call_0`,
 * `functions.Bash:0`): such an id says which call it is only together with the words around it.
 */
export function callKey(owner: string, id: string, said: string, before: string): string {
  const around = isRandom(id) ? '' : `\0${bare(said)}\0${bare(before)}`;
  return sha(`call\0${owner}\0${id}${around}`);
}

/**
 * Keys of an answer by its visible text. A short one ("Done.") is known only together with the words
 * it answers; a long one by itself too, since clients touch up earlier turns.
 */
export function textKeys(owner: string, said: string, before: string): readonly string[] {
  const text = bare(said);
  if (text === '') return [];
  const exact = sha(`said\0${owner}\0${text}\0${bare(before)}`);
  return text.length < LONG ? [exact] : [exact, sha(`said\0${owner}\0${text}`)];
}

/** The text of a turn, results of tools included: what an answer stands behind. */
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

/** A ledger in memory alone, the least recently used entries first to go. */
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

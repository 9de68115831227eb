/** Older forms of the configuration: the steps that lead from each to the next, and the walk along them. */

import { type Document, isMap } from 'yaml';

/** Leads from one form of the file to the next. */
export interface ConfigMigration {
  /** What is different, as half a sentence for people: `"lanes" is called "routes"`. */
  readonly words: string;
  /**
   * Changes the document in place. Nodes that stay keep their comments and their places, so rename by
   * setting a key's value and move by moving the pair; what a step does not know it leaves alone,
   * since a file is checked only afterwards. Must not throw.
   */
  readonly apply: (document: Document) => void;
}

/**
 * The n-th step leads from version n to version n + 1. A step that was released is not changed any
 * more; a new form of the file is a new step at the end, and nothing else.
 */
export const CONFIG_MIGRATIONS: readonly ConfigMigration[] = [];

/** The form of the file that this program reads. */
export const CONFIG_VERSION = CONFIG_MIGRATIONS.length + 1;

/** A file that names no version has the oldest form: there was a time when nothing else existed. */
export const OLDEST_VERSION = 1;

export type Form =
  /** As it must be, or too wrong to tell: the check will say what. */
  | { readonly kind: 'current' }
  | {
      readonly kind: 'older';
      readonly from: number;
      readonly to: number;
      /** One for each step. */
      readonly words: readonly string[];
    }
  | { readonly kind: 'newer'; readonly version: number; readonly known: number };

/** Brings a document forwards, in place; says what it was. A newer one is left as it is. */
export function bringForwards(document: Document, migrations: readonly ConfigMigration[]): Form {
  const known = migrations.length + 1;
  if (!isMap(document.contents)) return { kind: 'current' };
  // A key without a value is one that is not there.
  const named = document.get('version') ?? undefined;
  const from = named ?? OLDEST_VERSION;
  if (typeof from !== 'number' || !Number.isInteger(from) || from < OLDEST_VERSION) {
    return { kind: 'current' };
  }
  if (from > known) return { kind: 'newer', version: from, known };
  if (from === known) return { kind: 'current' };
  const steps = migrations.slice(from - 1);
  for (const { apply } of steps) apply(document);
  if (!document.has('version'))
    document.contents.items.unshift(document.createPair('version', known));
  else document.set('version', known);
  return { kind: 'older', from, to: known, words: steps.map(({ words }) => words) };
}

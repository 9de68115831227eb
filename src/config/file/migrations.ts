import { type Document, isMap } from 'yaml';

/** One step from a version of the file to the next. */
export interface ConfigMigration {
  /** What has changed, as half a sentence for people: `"lanes" is called "routes"`. */
  readonly change: string;
  /**
   * Changes the document in place. Rename by setting a key's value and move by moving the pair: nodes
   * that stay keep their comments and positions. The file is checked only afterwards, so leave alone
   * what the step does not know. Must not throw.
   */
  readonly apply: (document: Document) => void;
}

/**
 * The n-th step leads from version n to version n + 1. A released step never changes; a new version of
 * the file is one more step at the end.
 */
export const CONFIG_MIGRATIONS: readonly ConfigMigration[] = [];

/** The version of the file that this program reads. */
export const CONFIG_VERSION = CONFIG_MIGRATIONS.length + 1;

/** The version of a file that names none: the first files had no version. */
export const OLDEST_VERSION = 1;

export type Form =
  /** The newest version, or so wrong that the version is unknown: the check reports why. */
  | { readonly kind: 'current' }
  | {
      readonly kind: 'older';
      readonly from: number;
      readonly to: number;
      /** What each step changed. */
      readonly changes: readonly string[];
    }
  | { readonly kind: 'newer'; readonly version: number; readonly known: number };

/** Applies the migrations that a document needs, in place; returns what it was. A newer one is left as it is. */
export function migrate(document: Document, migrations: readonly ConfigMigration[]): Form {
  const known = migrations.length + 1;
  if (!isMap(document.contents)) return { kind: 'current' };
  // A key without a value counts as left out.
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
  return { kind: 'older', from, to: known, changes: steps.map(({ change }) => change) };
}

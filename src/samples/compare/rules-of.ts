/** Finds the rules behind a difference in meaning: the notes whose places fit it best. */

import type { Note } from '../../conversation/notes.ts';
import type { Change } from '../../lib/json/json-diff.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { type PlacedRule, placedRules, rulesBehind } from '../replay/explain.ts';

/** Roots of the same part in different protocols. */
const ROOTS: Readonly<Record<string, string>> = {
  input: 'messages',
  contents: 'messages',
  instructions: 'system',
  systemInstruction: 'system',
  system_instruction: 'system',
};

/** A place with the root that all protocols share. */
const common = (where: string) =>
  where.replace(
    /^(\/?)(\w+)/,
    (_, slash: string, root: string) => slash + (memberOf(ROOTS, root) ?? root),
  );

/** Rules about something that a text does not show, and rules about reasoning. */
const UNSEEN = /^cache_/;
const REASONING = /reasoning|thinking/;

/** A reader of the notes of one exchange. */
export class RuleFinder {
  readonly #names: ReadonlySet<string>;
  readonly #seen: readonly PlacedRule[];
  /** The seen ones that are not about reasoning. */
  readonly #plain: readonly PlacedRule[];
  readonly #told = new Set<string>();

  constructor(notes: readonly Note[]) {
    this.#names = new Set(notes.map(({ name }) => name));
    const seen = notes
      .filter(({ name }) => !UNSEEN.test(name))
      .map((note) => (note.where === undefined ? note : { ...note, where: common(note.where) }));
    this.#seen = placedRules(seen);
    this.#plain = placedRules(seen.filter(({ name }) => !REASONING.test(name)));
  }

  /** Rules of a change at any of these places; the first place that has rules decides. @param reasons it may be about reasoning */
  of(
    kind: Change['kind'],
    places: readonly (string | undefined)[],
    text: string,
    reasons = true,
  ): readonly string[] {
    for (const place of places) {
      if (place === undefined) continue;
      const change = { kind, at: common(place), after: text } as const;
      const rules = rulesBehind(change, reasons ? this.#seen : this.#plain);
      if (rules.length === 0) continue;
      for (const rule of rules) this.#told.add(rule);
      return rules;
    }
    return [];
  }

  /** Rules that explained nothing so far. */
  get others(): readonly string[] {
    return [...this.#names].filter((name) => !this.#told.has(name));
  }
}

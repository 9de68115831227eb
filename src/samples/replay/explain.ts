/** Matches the changes between two bodies with the notes of the exchange: which rule caused which change. */

import type { Note } from '../../conversation/notes.ts';
import type { Change } from '../../lib/json/json-diff.ts';

/** The parts of a path, written as `messages[3].content` or `/messages/3/content`. */
const partsOf = (where: string): readonly string[] =>
  where
    .replace(/\[(\d+)\]/g, '/$1')
    .replace(/^\//, '')
    .split(where.startsWith('/') ? '/' : /[/.]/)
    .filter((part) => part !== '');

/** How well a note fits a place: the number of equal leading parts, 0 when one differs. */
function fit(note: readonly string[], place: readonly string[]): number {
  const shared = Math.min(note.length, place.length);
  for (let i = 0; i < shared; i++) if (note[i] !== place[i]) return 0;
  return shared;
}

/**
 * A note about a whole list (`/messages`, `/tools`) explains a new element only when the note's `what` occurs
 * in the element: the element may come from something else that was done to the list.
 */
function tooVague(
  { parts, what }: PlacedRule,
  { kind }: Change,
  place: PathParts,
  text: string,
): boolean {
  const element = place.length === parts.length + 1 && /^\d+$/.test(place.at(-1) ?? '');
  if (kind !== 'added' || !element) return false;
  return what === undefined || what === '' || !text.includes(what);
}

type PathParts = readonly string[];

/** Most notes that are matched, and most characters of a new element that are searched. */
const MAX_RULES = 200;
const MAX_SEARCHED = 20_000;

export interface PlacedRule {
  readonly name: string;
  readonly parts: readonly string[];
  readonly what: string | undefined;
}

/** Names of the rules whose place fits a change best; a single field name fits at any depth. */
export function rulesBehind(change: Change, known: readonly PlacedRule[]): readonly string[] {
  if (known.length === 0) return [];
  const text =
    change.kind === 'added' ? JSON.stringify(change.after ?? null).slice(0, MAX_SEARCHED) : '';
  const places = [change.at, ...(change.to === undefined ? [] : [change.to])].map(partsOf);
  const scored = known.map((note) => {
    const { name, parts } = note;
    if (tooVague(note, change, places[0]!, text)) return { name, score: 0 };
    const direct = Math.max(...places.map((place) => fit(parts, place)));
    const named = parts.length === 1 && places.some((place) => place.includes(parts[0]!));
    return { name, score: direct > 0 ? direct : named ? 0.5 : 0 };
  });
  const best = Math.max(0, ...scored.map(({ score }) => score));
  const rules = scored.filter(({ score }) => score > 0 && score === best).map(({ name }) => name);
  return [...new Set(rules)];
}

/** Notes that name a place, each once. */
export function placedRules(notes: readonly Note[]): readonly PlacedRule[] {
  const known = new Map<string, PlacedRule>();
  for (const { name, where, what } of notes) {
    if (where === undefined || where === '') continue;
    const key = JSON.stringify([name, where, what]);
    if (!known.has(key)) known.set(key, { name, what, parts: partsOf(where) });
    if (known.size >= MAX_RULES) break;
  }
  return [...known.values()];
}

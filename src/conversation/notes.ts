/** Notes: every change this gateway makes to a request or a response, by rule. */

/**
 * `name` is the rule (stable, documented: operators script against it), `where` a JSON pointer or a
 * field name of the body that was changed, `what` words for a person.
 */
export interface Note {
  readonly name: string;
  readonly where?: string;
  readonly what?: string;
}

/** Collects the notes of one exchange. Append-only. */
export class Notes {
  readonly #list: Note[] = [];

  add(name: string, where?: string, what?: string): void {
    this.#list.push({ name, where, what });
  }

  /** Takes over what was noted elsewhere. */
  join(others: readonly Note[]): void {
    for (const note of others) this.#list.push(note);
  }

  get all(): readonly Note[] {
    return this.#list;
  }

  get size(): number {
    return this.#list.length;
  }

  /** See {@link summarize}. */
  summary(): string {
    return summarize(this.#list);
  }
}

/** `name` or `name=count`, comma-separated, in order of first appearance; '' when nothing was changed. */
export function summarize(notes: readonly Note[]): string {
  if (notes.length === 0) return '';
  // Most exchanges that have a note have one.
  if (notes.length === 1) return notes[0]!.name;
  const counts = new Map<string, number>();
  for (const { name } of notes) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name}=${count}`)).join(',');
}

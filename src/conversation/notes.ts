/** Notes: a record of every change that the gateway makes to a request or a response. */

/**
 * `name` is the rule: stable and documented, because operators write scripts for it. `where` is a JSON
 * pointer or field name in the changed body. `what` is an explanation for people.
 */
export interface Note {
  readonly name: string;
  readonly where?: string;
  readonly what?: string;
}

/** Collects the notes of one exchange. Append-only. */
export class Notes {
  readonly #list: Note[] = [];
  #once: Set<string> | undefined;

  add(name: string, where?: string, what?: string): void {
    this.#list.push({ name, where, what });
  }

  /** Adds a note, unless this very note was added so before. */
  addOnce(name: string, where: string, what?: string): void {
    const reason = `${name} ${where} ${what ?? ''}`;
    this.#once ??= new Set();
    if (this.#once.has(reason)) return;
    this.#once.add(reason);
    this.add(name, where, what);
  }

  /** Adds notes of another collection. */
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

/** `name` or `name=count`, comma-separated, in order of first appearance; '' if there are no notes. */
export function summarize(notes: readonly Note[]): string {
  if (notes.length === 0) return '';
  // Most exchanges that have a note have one.
  if (notes.length === 1) return notes[0]!.name;
  return counted(notes);
}

function counted(notes: readonly Note[]): string {
  const counts = new Map<string, number>();
  for (const { name } of notes) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name}=${count}`)).join(',');
}

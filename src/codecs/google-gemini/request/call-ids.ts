/** Gives the calls and results of a Gemini history ids, where the client sent none, and pairs them by name and order. */

import { newCallId } from '../wire.ts';

/** The ids of one history or one answer, asked for in its order. */
export interface CallIds {
  ofCall(given: string | undefined, name: string): string;
  /** The id of the call that a result answers: the given one, else the first open call of this name. */
  ofResult(given: string | undefined, name: string): string;
}

/** An id that was asked for, and what it was. */
export interface AskedId {
  readonly kind: 'ofCall' | 'ofResult';
  readonly given: string | undefined;
  readonly name: string;
  readonly id: string;
}

/** Remembers what is asked of other ids. */
export class RecordedIds implements CallIds {
  readonly asked: AskedId[] = [];

  constructor(private readonly ids: CallIds) {}

  ofCall(given: string | undefined, name: string): string {
    return this.#record('ofCall', given, name);
  }

  ofResult(given: string | undefined, name: string): string {
    return this.#record('ofResult', given, name);
  }

  #record(kind: AskedId['kind'], given: string | undefined, name: string): string {
    const id = this.ids[kind](given, name);
    this.asked.push({ kind, given, name, id });
    return id;
  }
}

/** Ids that were found already, in the order in which they are asked for. */
export class GivenIds implements CallIds {
  #next = 0;

  constructor(private readonly ids: readonly AskedId[]) {}

  ofCall(): string {
    return this.ids[this.#next++]!.id;
  }

  ofResult(): string {
    return this.ofCall();
  }
}

/** The ids of a request. The n-th call of a history has the same id in every later request, so that prompt caches hit. */
export class HistoryCallIds implements CallIds {
  #count = 0;
  readonly #known = new Set<string>();
  /** Calls without a result yet, by name, oldest first. */
  readonly #open = new Map<string, OpenCalls>();

  ofCall(given: string | undefined, name: string): string {
    this.#count++;
    const id = given || `call_${this.#count}_${Bun.hash.xxHash32(name).toString(16)}`;
    this.#known.add(id);
    let open = this.#open.get(name);
    if (open === undefined) {
      open = new OpenCalls();
      this.#open.set(name, open);
    }
    open.add(id);
    return id;
  }

  ofResult(given: string | undefined, name: string): string {
    const open = this.#open.get(name);
    if (given && this.#known.has(given)) {
      open?.answer(given);
      return given;
    }
    // Some clients keep the id of only one side.
    return open?.first() ?? (given || `call_${name}`);
  }
}

/** The open calls of one name. Each id is looked at once: those that were answered by id are skipped. */
class OpenCalls {
  readonly #ids: string[] = [];
  readonly #answered = new Set<string>();
  #next = 0;

  add(id: string): void {
    this.#ids.push(id);
  }

  answer(id: string): void {
    this.#answered.add(id);
  }

  first(): string | undefined {
    while (this.#next < this.#ids.length) {
      const id = this.#ids[this.#next++]!;
      if (!this.#answered.has(id)) return id;
    }
    return undefined;
  }
}

/** The ids of an answer: a call without one gets a new one, and a result belongs to the last call of its name. */
export class AnswerCallIds implements CallIds {
  readonly #last = new Map<string, string>();

  ofCall(given: string | undefined, name: string): string {
    const id = given || newCallId();
    this.#last.set(name, id);
    return id;
  }

  ofResult(given: string | undefined, name: string): string {
    return given || (this.#last.get(name) ?? newCallId());
  }
}

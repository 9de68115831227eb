/** Nodes decoded from values that a session keeps, and what encoders made of them; an entry goes when its value does. */

import { Notes } from '../notes.ts';
import type { Tool, Turn } from '../types.ts';

interface Encoded {
  readonly shape: readonly unknown[];
  readonly value: unknown;
}

/** In place of a value: there were notes. */
const NOTED = Symbol('noted');

export class KnownNodes {
  readonly #turns = new WeakMap<object, Turn>();
  readonly #tools = new WeakMap<object, readonly Tool[]>();
  readonly #encoded = new WeakMap<object, Encoded>();

  /** The turn of a message that decodes to the same turn wherever it stands. @param make throws for a message that is refused */
  turn(message: unknown, make: () => Turn): Turn {
    if (typeof message !== 'object' || message === null) return make();
    let turn = this.#turns.get(message);
    if (turn === undefined) {
      turn = make();
      this.#turns.set(message, turn);
    }
    return turn;
  }

  /**
   * What an encoder makes of a node, made once while all of `shape` is the same: all else that it depends on. What
   * needs notes is made each time, by `anew`.
   */
  encoded<T>(node: object, shape: readonly unknown[], make: (notes: Notes) => T, anew: () => T): T {
    const before = this.#encoded.get(node);
    if (before !== undefined && isSame(before.shape, shape)) {
      return before.value === NOTED ? anew() : (before.value as T);
    }
    const notes = new Notes();
    const value = make(notes);
    const noted = notes.size > 0;
    this.#encoded.set(node, { shape, value: noted ? NOTED : value });
    return noted ? anew() : value;
  }

  /** The tools of a list of declarations. */
  tools(list: unknown, make: () => readonly Tool[]): readonly Tool[] {
    if (typeof list !== 'object' || list === null) return make();
    let tools = this.#tools.get(list);
    if (tools === undefined) {
      tools = make();
      this.#tools.set(list, tools);
    }
    return tools;
  }
}

/** What an encoder's functions get: notes, and the reasons that are noted once. */
interface NotingContext {
  readonly notes: Notes;
  readonly noted: Set<string>;
}

/** The parts of one encoding, as they were made of the same nodes before. */
export class KnownUnits<Context extends NotingContext> {
  readonly #context: Context;
  readonly #known: KnownNodes | undefined;
  readonly #shape: readonly unknown[];

  /** @param shape what all of them depend on beside their nodes */
  constructor(context: Context, known: KnownNodes | undefined, shape: readonly unknown[]) {
    this.#context = context;
    this.#known = known;
    this.#shape = shape;
  }

  /** @param others what this one depends on, too */
  of<T>(node: object, others: readonly unknown[], make: (context: Context) => T): T {
    const context = this.#context;
    if (this.#known === undefined) return make(context);
    return this.#known.encoded(
      node,
      others.length === 0 ? this.#shape : [...this.#shape, ...others],
      (notes) => make({ ...context, notes, noted: new Set() }),
      () => make(context),
    );
  }
}

const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((part, i) => part === other[i]);

/** Nodes decoded from values that a session keeps, and what encoders made of them; an entry goes when its value does. */

import type { Json, JsonObject } from '../../lib/json/json.ts';
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

  /**
   * The turn of a message that decodes to the same turn wherever it stands.
   * @param decode throws for a message that is refused
   */
  turn(message: Json, where: string, decode: (message: Json, where: string) => Turn): Turn {
    if (typeof message !== 'object' || message === null) return decode(message, where);
    let turn = this.#turns.get(message);
    if (turn === undefined) {
      turn = decode(message, where);
      this.#turns.set(message, turn);
    }
    return turn;
  }

  /**
   * What an encoder makes of a node, made once while all of `shape` is the same: all else that it depends on. What
   * adds notes is made each time.
   */
  encoded<T>(node: object, shape: readonly unknown[], notes: Notes, make: (notes: Notes) => T): T {
    const before = this.#encoded.get(node);
    if (before !== undefined && isSame(before.shape, shape)) {
      return before.value === NOTED ? make(notes) : (before.value as T);
    }
    const own = new Notes();
    const value = make(own);
    const noted = own.size > 0;
    this.#encoded.set(node, { shape, value: noted ? NOTED : value });
    return noted ? make(notes) : value;
  }

  /** The tools of a request that declares them nowhere but in `tools`. */
  tools(body: JsonObject, decode: (body: JsonObject) => readonly Tool[]): readonly Tool[] {
    const list = body.tools;
    if (typeof list !== 'object' || list === null) return decode(body);
    let tools = this.#tools.get(list);
    if (tools === undefined) {
      tools = decode(body);
      this.#tools.set(list, tools);
    }
    return tools;
  }
}

/** For requests without a session: everything is made anew. */
class NothingKnown extends KnownNodes {
  override turn(
    message: Json,
    where: string,
    decode: (message: Json, where: string) => Turn,
  ): Turn {
    return decode(message, where);
  }

  override encoded<T>(
    _node: object,
    _shape: readonly unknown[],
    notes: Notes,
    make: (notes: Notes) => T,
  ): T {
    return make(notes);
  }

  override tools(body: JsonObject, decode: (body: JsonObject) => readonly Tool[]): readonly Tool[] {
    return decode(body);
  }
}

export const NOTHING_KNOWN: KnownNodes = new NothingKnown();

interface NotingContext {
  readonly notes: Notes;
}

/** The parts of one encoding, as they were made of the same nodes before. */
export class KnownUnits<Context extends NotingContext> {
  /** @param shape what all of them depend on beside their nodes */
  constructor(
    private readonly context: Context,
    private readonly known: KnownNodes,
    private readonly shape: readonly unknown[],
  ) {}

  /** @param others what this one depends on, too */
  of<T>(node: object, others: readonly unknown[], make: (context: Context) => T): T {
    const context = this.context;
    const shape = others.length === 0 ? this.shape : [...this.shape, ...others];
    return this.known.encoded(node, shape, context.notes, (notes) =>
      make(notes === context.notes ? context : { ...context, notes }),
    );
  }
}

const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one.length === other.length && one.every((part, i) => part === other[i]);

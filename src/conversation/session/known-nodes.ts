/** What was decoded from values that a session keeps, by the value itself. An entry goes when its value does. */

import type { Tool, Turn } from '../types.ts';

export class KnownNodes {
  readonly #turns = new WeakMap<object, Turn>();
  readonly #tools = new WeakMap<object, readonly Tool[]>();

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

/** Where the last request of a session to a target ended: up to there the vendor has kept the prompt. */

import type { Target } from '../../conversation/target.ts';
import { targetName } from '../../conversation/target.ts';
import type { Block, Turn } from '../../conversation/types.ts';

interface Tail {
  readonly turns: number;
  /** Of the last turn: another history may be as long. */
  readonly print: bigint;
}

interface Session {
  readonly answered: Map<string, Tail>;
  /** The last request that was made; answered if another exchange follows. */
  last?: { readonly by: object; readonly target: string; readonly tail: Tail };
}

const MAX_SESSIONS = 4096;
const MAX_TARGETS = 8;

/** Of the sessions that were asked for last. What is not known here is taken from the history. */
export class RequestTails {
  readonly #sessions = new Map<string, Session>();
  readonly #open = new WeakMap<object, Session>();

  /**
   * The index of the turn with which the last request of this session to this target ended; undefined: it is the first.
   * These turns are what is sent now.
   * @param by the exchange: its own earlier tries are not counted
   */
  previous(key: string, by: object, target: Target, turns: readonly Turn[]): number | undefined {
    const session = this.#session(key);
    const { answered, last } = session;
    if (last !== undefined && last.by !== by) {
      if (answered.size >= MAX_TARGETS) answered.clear();
      answered.set(last.target, last.tail);
    }
    this.#open.set(by, session);
    const name = targetName(target);
    const end = turns.at(-1);
    if (end !== undefined) {
      session.last = { by, target: name, tail: { turns: turns.length, print: printOf(end) } };
    }
    const known = answered.get(name);
    return known !== undefined && goesOn(turns, known) ? known.turns - 1 : endBeforeAnswer(turns);
  }

  /** The last request of this exchange was not answered: another try follows, maybe to a target of another kind. */
  failed(by: object): void {
    const session = this.#open.get(by);
    if (session?.last?.by === by) delete session.last;
  }

  #session(key: string): Session {
    const session = this.#sessions.get(key) ?? { answered: new Map() };
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    if (this.#sessions.size > MAX_SESSIONS) {
      for (const oldest of this.#sessions.keys()) {
        this.#sessions.delete(oldest);
        break;
      }
    }
    return session;
  }
}

const goesOn = (turns: readonly Turn[], { turns: length, print }: Tail): boolean =>
  length < turns.length && printOf(turns[length - 1]!) === print;

/** The turn in front of the last answer: with it a request ended, whoever it was sent to. */
function endBeforeAnswer(turns: readonly Turn[]): number | undefined {
  let at = turns.findLastIndex(({ role }) => role === 'assistant');
  while (at >= 0 && turns[at]!.role === 'assistant') at--;
  return at < 0 ? undefined : at;
}

const printOf = ({ role, blocks }: Turn): bigint =>
  Bun.hash.wyhash(`${role} ${blocks.map(wordsOf).join('\0')}`) as bigint;

function wordsOf(block: Block): string {
  switch (block.type) {
    case 'tool-call':
      return `${block.id} ${block.input}`;
    case 'tool-result':
      return `${block.callId} ${block.content.map(wordsOf).join('\0')}`;
    case 'text':
    case 'refusal':
    case 'reasoning':
      return block.text;
    default:
      return block.type;
  }
}

/** The ends of earlier requests, by session and target: the vendor has cached the prompt up to there. */

import { type Target, targetName } from '../../conversation/target.ts';
import type { Block, Turn } from '../../conversation/types.ts';
import { NewestMap } from '../../lib/loop/newest-map.ts';

interface Tail {
  readonly turns: number;
  /** Digest of the last turn: another history may have the same length. */
  readonly print: bigint;
}

interface Session {
  /** By target, the longest first. */
  readonly answered: Map<string, readonly Tail[]>;
  /** The last request that was made; answered if another exchange follows. */
  last?: { readonly by: object; readonly target: string; readonly tails: readonly Tail[] };
}

const MAX_SESSIONS = 4096;
const MAX_TARGETS = 8;
/** Of a session and target: what was recalled for a turn is gone in the next, and with it the newest ends. */
const MAX_TAILS = 6;

/** Keeps the most recent sessions; for others the history itself tells where requests ended. */
export class RequestTails {
  readonly #sessions = new NewestMap<string, Session>(MAX_SESSIONS);
  readonly #open = new WeakMap<object, Session>();

  /**
   * Indexes of turns with which earlier requests of this session ended: the last one that this target still has, then
   * the one that the history shows. None: it is the first. These turns are what is sent now.
   * @param by the exchange: its own earlier tries are not counted
   */
  previous(key: string, by: object, target: Target, turns: readonly Turn[]): readonly number[] {
    const session = this.#session(key);
    this.#open.set(by, session);
    const { answered, last } = session;
    if (last !== undefined && last.by !== by) {
      if (answered.size >= MAX_TARGETS) answered.clear();
      answered.set(last.target, last.tails);
    }
    const name = targetName(target);
    const known = (answered.get(name) ?? []).filter((tail) => goesOn(turns, tail));
    const shown = endBeforeAnswer(turns);
    const now = [...new Set([turns.length - 1, shown])].filter((at) => at >= 0);
    const tails = [...now.map((at) => tailAt(turns, at)), ...known];
    tails.sort((one, other) => other.turns - one.turns);
    session.last = { by, target: name, tails: tails.slice(0, MAX_TAILS) };
    const found = new Set([known[0] === undefined ? -1 : known[0].turns - 1, shown]);
    found.delete(-1);
    return [...found];
  }

  /** The last request of this exchange was not answered: another try follows, maybe to a target of another kind. */
  failed(by: object): void {
    const session = this.#open.get(by);
    if (session?.last?.by === by) delete session.last;
  }

  #session(key: string): Session {
    const session = this.#sessions.get(key) ?? { answered: new Map() };
    this.#sessions.set(key, session);
    return session;
  }
}

const tailAt = (turns: readonly Turn[], at: number): Tail => ({
  turns: at + 1,
  print: printOf(turns[at]!),
});

const goesOn = (turns: readonly Turn[], { turns: length, print }: Tail): boolean =>
  length < turns.length && printOf(turns[length - 1]!) === print;

/** Index of the turn before the last answer, where the previous request ended, whatever its target. -1: none. */
function endBeforeAnswer(turns: readonly Turn[]): number {
  let at = turns.findLastIndex(({ role }) => role === 'assistant');
  while (at >= 0 && turns[at]!.role === 'assistant') at--;
  return at;
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

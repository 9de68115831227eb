/** Keeps what is to be told of an exchange until it is over. */

import type { GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Usage } from '../conversation/usage.ts';
import type { Recording, Told } from '../features/feature.ts';
import type { Answer } from './answer.ts';
import type { Ask } from './ask.ts';
import type { Exchange, Summary } from './exchange.ts';

export interface Tally {
  readonly recording: Recording | undefined;
  asked(ask: Ask): void;
  /** It is this exchange's turn; `leave` gives its place to the next. */
  entered(leave: () => void): void;
  /** The name of the rule that chose the targets. */
  routed(rule: string | undefined): void;
  tried(answer: Answer, tries: number): void;
  firstByte(): void;
  /** Tells the summary; only the first call counts. */
  end(status: number, usage: Usage | undefined, error: GatewayError | undefined): void;
}

export function openTally(
  exchange: Exchange,
  recording: Recording | undefined,
  onEnd: (summary: Summary) => void,
): Tally {
  const since = () => performance.now() - exchange.started;
  let ask: Ask | undefined;
  let answer: Answer | undefined;
  let route: string | undefined;
  let tries = 0;
  let hops = 0;
  // Kept, not copied: while a stream runs more is noted.
  const noted: Notes[] = [];
  let firstByte: number | undefined;
  let queue: number | undefined;
  let leave: (() => void) | undefined;
  let over = false;
  return {
    recording,
    asked(asked) {
      ask = asked;
    },
    entered(release) {
      queue = since();
      leave = release;
    },
    routed(rule) {
      route = rule;
    },
    tried(last, count) {
      answer = last;
      tries += count;
      hops++;
      if (last.notes !== undefined) noted.push(last.notes);
    },
    firstByte() {
      firstByte ??= since();
    },
    end(status, usage, error) {
      if (over) return;
      over = true;
      leave?.();
      const told: Told = {
        model: ask?.model,
        target: answer?.target,
        route,
        status,
        stream: ask?.stream ?? false,
        firstByte,
        total: since(),
        tries,
        usage,
        hops,
        notes: noted.flatMap(({ all }) => all),
        error,
      };
      recording?.end(told);
      onEnd({ ...told, exchange, queue });
    },
  };
}

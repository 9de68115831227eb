/** Follows the events of an answer: whether it has begun, how it ended, its usage. */

import type { GatewayError } from '../../conversation/errors.ts';
import {
  type BlockHead,
  type FinishReason,
  isAnswer,
  isSemantic,
  type StartEvent,
  type StreamEvent,
} from '../../conversation/events.ts';
import { laterUsage, type Usage } from '../../conversation/usage.ts';

/** A natural stop. Any other reason (length, refusal, filter, pause) explains an empty answer. */
export const isNatural = (finish: FinishReason | undefined): boolean =>
  finish === undefined || finish === 'stop' || finish === 'tool-calls';

export class AnswerProgress {
  /** Text, reasoning or a call has come. */
  semantic = false;
  /** Something besides reasoning has come. */
  answered = false;
  /** The stream came to a natural end without an answer: that end must not reach the client. */
  empty = false;
  ended = false;
  error: GatewayError | undefined;
  /** The error that came is none in the client's protocol. */
  unsaid = false;
  usage: Usage | undefined;
  /** The beginning, with the names that the vendor gave to the answer and to the model. */
  start: StartEvent | undefined;
  finish: FinishReason | undefined;
  explanation: string | undefined;
  #open: BlockHead['type'] | undefined;

  observe(event: StreamEvent): void {
    switch (event.type) {
      case 'delta':
        if (this.answered) return;
        break;
      case 'block-start':
        this.#open = event.head.type;
        break;
      case 'start':
        this.usage = event.usage ?? this.usage;
        this.start = event;
        return;
      case 'usage':
        this.usage = laterUsage(this.usage, event.usage);
        return;
      case 'finish':
        this.finish = event.reason;
        this.explanation = event.details?.explanation;
        this.empty = !this.answered && isNatural(event.reason);
        return;
      case 'end':
        this.ended = true;
        return;
      case 'error':
        this.error = event.error;
        this.unsaid ||= event.unsaid === true;
        return;
    }
    if (!this.semantic) this.semantic = isSemantic(event);
    if (!this.answered) this.answered = isAnswer(event, this.#open);
  }
}

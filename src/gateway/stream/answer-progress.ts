/** Watches events for the moment at which an answer has begun, and for an end without one. */

import type { GatewayError } from '../../conversation/errors.ts';
import {
  type BlockHead,
  type FinishReason,
  isAnswer,
  isSemantic,
  type StreamEvent,
} from '../../conversation/events.ts';

/** A natural stop; length, refusal, filter and pause are reasons that a vendor is believed. */
export const isNatural = (finish: FinishReason | undefined): boolean =>
  finish === undefined || finish === 'stop' || finish === 'tool-calls';

export class AnswerProgress {
  /** Something a user would miss was said. */
  semantic = false;
  /** Of that, something besides reasoning. */
  answered = false;
  /** The stream came to a natural end without an answer: that end must not reach the client. */
  empty = false;
  ended = false;
  error: GatewayError | undefined;
  #open: BlockHead['type'] | undefined;

  observe(event: StreamEvent): void {
    switch (event.type) {
      case 'delta':
        if (this.answered) return;
        break;
      case 'block-start':
        this.#open = event.head.type;
        break;
      case 'finish':
        this.empty = !this.answered && isNatural(event.reason);
        return;
      case 'end':
        this.ended = true;
        return;
      case 'error':
        this.error = event.error;
        return;
    }
    if (!this.semantic) this.semantic = isSemantic(event);
    if (!this.answered) this.answered = isAnswer(event, this.#open);
  }
}

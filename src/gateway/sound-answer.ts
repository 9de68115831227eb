/**
 * Answers that stay in their protocol: what its clients would throw at, or lose, is put right. Whoever reads the protocol says
 * what that is. Its decoder marks such events (`odd`), of streams and of whole answers, and they are written anew here. Where
 * clients send ids of an answer's parts back, its frames are corrected in place of that (`Codec.soundFrames`).
 */

import { isEmptyFrame, type StreamEvent } from '../conversation/events.ts';
import { type FastInterceptor, IGNORES_TEXT } from '../conversation/fast-text.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Interceptor } from '../features/feature.ts';

const NOTHING: readonly StreamEvent[] = [];

/** The first interceptor. An event without its mark is not the vendor's any more: from it on, the encoder writes. */
export class SoundAnswer implements Interceptor {
  readonly #notes: Notes;

  constructor(notes: Notes) {
    this.#notes = notes;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    const { odd } = event;
    if (odd === undefined) return event.type === 'block-start' ? this.#begun(event) : event;
    this.#notes.addOnce(odd === 'form' ? 'stream_mended' : 'tool_call_rewritten', odd);
    return isEmptyFrame(event) ? NOTHING : this.event({ ...event, odd: undefined });
  }

  #begun(event: StreamEvent & { type: 'block-start' }): StreamEvent {
    const { head } = event;
    if (head.type !== 'tool-call' || head.odd === undefined) return event;
    this.#notes.add('tool_call_rewritten', undefined, head.name);
    return { ...event, head: { ...head, odd: undefined } };
  }

  end(): readonly StreamEvent[] {
    return NOTHING;
  }

  get fast(): FastInterceptor {
    return IGNORES_TEXT;
  }
}

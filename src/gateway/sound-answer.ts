/**
 * Puts right what clients of the vendor's own protocol would throw at or lose. The decoder marks it (`odd`), in streams and
 * in whole answers, and from there on the encoder writes. Streams of Responses keep the vendor's ids, which clients send back:
 * their frames are corrected instead (`Codec.soundFrames`).
 */

import { isEmptyFrame, type StreamEvent } from '../conversation/events.ts';
import { type FastInterceptor, IGNORES_TEXT } from '../conversation/fast-text.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Interceptor } from '../features/feature.ts';

const NOTHING: readonly StreamEvent[] = [];

/** The first interceptor. An event without its mark is no longer the vendor's: from there on, the encoder writes. */
export class SoundAnswer implements Interceptor {
  constructor(private readonly notes: Notes) {}

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    const { odd } = event;
    if (odd === undefined) return event.type === 'block-start' ? this.#begun(event) : event;
    this.notes.addOnce(odd === 'form' ? 'stream_mended' : 'tool_call_rewritten', odd);
    return isEmptyFrame(event) ? NOTHING : this.event({ ...event, odd: undefined });
  }

  #begun(event: StreamEvent & { type: 'block-start' }): StreamEvent {
    const { head } = event;
    if (head.type !== 'tool-call' || head.odd === undefined) return event;
    this.notes.add('tool_call_rewritten', undefined, head.name);
    return { ...event, head: { ...head, odd: undefined } };
  }

  end(): readonly StreamEvent[] {
    return NOTHING;
  }

  get fast(): FastInterceptor {
    return IGNORES_TEXT;
  }
}

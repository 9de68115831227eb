/** Leaves out the prefill that an answer begins with, where the client has it already. */

import type { DeltaEvent, StreamEvent } from '../../conversation/events.ts';
import type { FastInterceptor } from '../../conversation/fast-text.ts';
import { markedPrefill } from '../../conversation/prefill.ts';
import type { Feature, Interceptor } from '../feature.ts';

/** Place it before every feature that reads answers. */
export const prefillEcho: Feature = {
  name: 'prefill-echo',
  mayApply: (_body, { client, target }) =>
    target.profile.prefill === 'prefix' && client !== target.protocol,
  intercept(sent, { target }) {
    const prefill = markedPrefill(sent, target);
    return prefill === undefined ? undefined : new WithoutEcho(prefill);
  },
};

const NOTHING: readonly StreamEvent[] = [];

/** Holds text for as long as it is a part of the prefill. */
class WithoutEcho implements Interceptor, FastInterceptor {
  /** How much of it has come; -1: it has come, or never will. */
  #at = 0;
  /** The first text block. */
  #index = -1;

  constructor(private readonly prefill: string) {}

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (this.#at < 0) return event;
    if (event.type === 'block-start' && event.head.type === 'text') this.#index = event.index;
    if (event.type === 'delta' && event.index === this.#index) return this.#text(event);
    if (event.type === 'block-stop' && event.index === this.#index) return [...this.end(), event];
    return event;
  }

  #text(event: DeltaEvent): StreamEvent | readonly StreamEvent[] {
    const { text } = event;
    const at = this.#at;
    const left = this.prefill.length - at;
    if (text.length < left && this.prefill.startsWith(text, at)) {
      this.#at += text.length;
      return NOTHING;
    }
    this.#at = -1;
    const echoed = this.prefill.startsWith(text.slice(0, left), at);
    if (!echoed) return at === 0 ? event : { ...event, text: this.prefill.slice(0, at) + text };
    return text.length === left ? NOTHING : { ...event, text: text.slice(left) };
  }

  /** An answer that is shorter than the prefill is none of its repetitions. */
  end(): readonly StreamEvent[] {
    const held = this.prefill.slice(0, Math.max(this.#at, 0));
    this.#at = -1;
    return held === '' ? NOTHING : [{ type: 'delta', index: this.#index, text: held }];
  }

  get fast(): FastInterceptor {
    return this;
  }

  passesText(): boolean {
    return this.#at < 0;
  }

  watchedCharacters(): string | undefined {
    return this.#at < 0 ? '' : undefined;
  }

  ignoresTexts(texts: readonly string[]): boolean {
    return !texts.some((text) => text.startsWith(this.prefill));
  }
}

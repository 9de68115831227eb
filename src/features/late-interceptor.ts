/** An interceptor that is made when there is something to intercept: plain whole replies never get so far. */

import type { DeltaEvent, StreamEvent } from '../conversation/events.ts';
import type { Interceptor } from './feature.ts';

export class LateInterceptor implements Interceptor {
  readonly #make: () => Interceptor;
  readonly #ignores: (texts: readonly string[]) => boolean;
  #made: Interceptor | undefined;

  /** @param ignores as the interceptor's own, which need not be there for it */
  constructor(make: () => Interceptor, ignores: (texts: readonly string[]) => boolean) {
    this.#make = make;
    this.#ignores = ignores;
  }

  get #own(): Interceptor {
    this.#made ??= this.#make();
    return this.#made;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    return this.#own.event(event);
  }

  passes(event: DeltaEvent): boolean {
    return this.#own.passes?.(event) === true;
  }

  minds(): string | undefined {
    return this.#own.minds?.();
  }

  ignores(texts: readonly string[]): boolean {
    return this.#ignores(texts);
  }

  end(): readonly StreamEvent[] {
    return this.#own.end();
  }

  next() {
    return this.#own.next?.();
  }
}

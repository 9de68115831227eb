/** A memory backend behind HTTP: another service that recalls and stores the events. */

import { GatewayError } from '../../conversation/errors.ts';
import type { RecalledEvent, RecallQuery } from '../../conversation/memory.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { type Json, tryParse } from '../../lib/json/json.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { RecentErasures } from '../../state/erasures.ts';
import type { MemoryBackend, MemoryObserver } from './backend.ts';
import { CaptureQueue } from './capture-queue.ts';
import {
  type CheckedEvent,
  checkSpace,
  clampedEvents,
  DEFAULT_RECALL,
  type MemoryLimits,
} from './event.ts';
import { readExternalEvents } from './external-events.ts';

export interface ExternalOptions {
  /** Gets POST {space, query, limit} for a recall, and DELETE {space} when a space is erased. */
  readonly url: string;
  /** Gets POST {space, events: [{text, time, source?, tags, importance}]}. */
  readonly captureUrl: string;
  /** Sent as a bearer token. */
  readonly key?: { reveal(): string };
  readonly timeoutMs: number;
  readonly limits: MemoryLimits;
  readonly observer: MemoryObserver;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

interface PendingEvent {
  readonly space: string;
  readonly event: CheckedEvent;
  /** Tries so far; after {@link MAX_TRIES} the event is dropped. */
  tries: number;
}

const ANSWER_BYTES = 2 * 2 ** 20;
const MAX_TRIES = 5;

export function externalMemory(options: ExternalOptions): MemoryBackend {
  const { observer, limits, now = Date.now } = options;
  const send = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));

  /** @throws GatewayError for any failure; its message names no URL, which may contain a secret */
  async function call(
    url: string,
    method: 'POST' | 'DELETE',
    body: object,
    signal?: AbortSignal,
  ): Promise<Json | undefined> {
    const timeout = AbortSignal.timeout(options.timeoutMs);
    let response: Response;
    let bytes: Uint8Array;
    let truncated: boolean;
    try {
      response = await send(url, {
        method,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...(options.key !== undefined && { authorization: `Bearer ${options.key.reveal()}` }),
        },
        body: JSON.stringify(body),
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      });
      ({ bytes, truncated } = await readUpTo(response.body, ANSWER_BYTES));
    } catch (thrown) {
      throw timeout.aborted
        ? new GatewayError(
            'timeout',
            'The external memory did not answer in time (memory.timeout).',
          )
        : new GatewayError('upstream', 'The external memory could not be reached.', {
            cause: thrown,
          });
    }
    if (!response.ok) {
      throw new GatewayError('upstream', `The external memory answered ${response.status}.`);
    }
    if (truncated) {
      throw new GatewayError(
        'upstream',
        `The external memory gave more than ${ANSWER_BYTES} bytes.`,
      );
    }
    return bytes.length === 0 ? undefined : tryParse(new TextDecoder().decode(bytes));
  }

  const erasures = new RecentErasures();

  const queue = new CaptureQueue<PendingEvent>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => observer.captured('dropped', count),
    onTrouble: (thrown) => observer.problem(messageOf(thrown)),
    async write(items) {
      // One call for each space. Events that were stored are not sent again when a later call fails.
      for (const [space, group] of Map.groupBy(items, (one) => one.space)) {
        const due = group.filter((one) => one.tries < MAX_TRIES);
        if (due.length === 0) continue;
        for (const one of due) one.tries++;
        const events = due.map(({ event: { source, ...event } }) => ({
          ...event,
          ...(source !== '' && { source }),
        }));
        try {
          await call(options.captureUrl, 'POST', { space, events });
        } catch (thrown) {
          if (due.every((one) => one.tries < MAX_TRIES)) throw thrown;
          observer.captured('dropped', due.length);
          continue;
        }
        for (const one of due) one.tries = MAX_TRIES;
        observer.captured('stored', due.length);
      }
    },
  });

  return {
    eventStore: undefined,
    async recall(space: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
      const began = performance.now();
      let ok = false;
      try {
        checkSpace(space);
        const limit = query.limit ?? DEFAULT_RECALL;
        const body = { space, query: query.query.toWellFormed(), limit };
        const events = readExternalEvents(
          await call(options.url, 'POST', body, query.signal),
          limits,
          now(),
        );
        ok = true;
        return events.slice(0, Math.max(0, limit));
      } finally {
        observer.recalled(ok ? 'external' : 'failed', performance.now() - began);
      }
    },
    async capture(space, events, began = preciseNow()) {
      checkSpace(space);
      if (erasures.hasSince(space, began)) return observer.captured('erased', events.length);
      const fit = events.flatMap((event) => clampedEvents(event, limits, now()));
      queue.add(fit.map((event) => ({ space, event, tries: 0 })));
    },
    async erase(space) {
      checkSpace(space);
      erasures.add(space, preciseNow());
      await queue.remove((one) => one.space === space);
      await call(options.url, 'DELETE', { space });
      return undefined;
    },
    close: () => queue.close(),
  };
}

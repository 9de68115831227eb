/** A memory elsewhere: an HTTP service that is asked for events and told of new ones. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { RecalledEvent, RecallQuery } from '../../../conversation/memory.ts';
import { readUpTo } from '../../../lib/http/read-up-to.ts';
import { type Json, tryParse } from '../../../lib/json/json.ts';
import { preciseNow } from '../../../lib/loop/precise-time.ts';
import type { MemoryBase, MemoryWatch } from '../base.ts';
import { captureQueue } from '../capture-queue.ts';
import { type CheckedEvent, checkSpace, fitted, type MemoryLimits } from '../event.ts';
import { foreignEvents } from '../foreign-events.ts';
import { DEFAULT_RECALL } from './embedded.ts';

export interface ExternalOptions {
  /** Gets POST {space, query, limit}, and DELETE {space} when a space is erased. */
  readonly url: string;
  /** Gets POST {space, events: [{text, time, source?, tags, importance}]}. */
  readonly captureUrl: string;
  /** Sent as a bearer token. */
  readonly key?: { reveal(): string };
  readonly timeoutMs: number;
  readonly limits: MemoryLimits;
  readonly watch: MemoryWatch;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

interface Waiting {
  readonly space: string;
  readonly event: CheckedEvent;
  /** Failed tries; after {@link TRIES} it is given up. */
  tries: number;
}

const ANSWER_BYTES = 2 * 2 ** 20;
const TRIES = 5;
/** How long erasures are remembered, in milliseconds: longer than any turn takes. */
const ERASURES_KEPT = 3_600_000;

export function externalMemory(options: ExternalOptions): MemoryBase {
  const { watch, limits, now = Date.now } = options;
  const send = options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));

  /** @throws GatewayError for whatever is no 2xx; the message names no URL, which may hold a secret */
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

  /** When spaces were erased here; a turn that began before must not bring its space back. */
  const erased = new Map<string, number>();
  const isErased = (space: string, began: number) => (erased.get(space) ?? 0) >= began;

  const queue = captureQueue<Waiting>({
    sizeOf: ({ event }) => 200 + event.text.length * 2,
    onDropped: (count) => watch.captured('dropped', count),
    onTrouble: (thrown) => watch.problem(thrown instanceof Error ? thrown.message : String(thrown)),
    async write(items) {
      // One call a space; what was taken is not sent again when a later one fails.
      for (const [space, group] of Map.groupBy(items, (one) => one.space)) {
        const due = group.filter((one) => one.tries < TRIES);
        if (due.length === 0) continue;
        for (const one of due) one.tries++;
        const events = due.map(({ event: { source, ...event } }) => ({
          ...event,
          ...(source !== '' && { source }),
        }));
        try {
          await call(options.captureUrl, 'POST', { space, events });
        } catch (thrown) {
          if (due.every((one) => one.tries < TRIES)) throw thrown;
          watch.captured('dropped', due.length);
          continue;
        }
        for (const one of due) one.tries = TRIES;
        watch.captured('stored', due.length);
      }
    },
  });

  return {
    book: undefined,
    async recall(space: string, query: RecallQuery): Promise<readonly RecalledEvent[]> {
      const began = performance.now();
      let ok = false;
      try {
        checkSpace(space);
        const limit = query.limit ?? DEFAULT_RECALL;
        const body = { space, query: query.query.toWellFormed(), limit };
        const events = foreignEvents(
          await call(options.url, 'POST', body, query.signal),
          limits,
          now(),
        );
        ok = true;
        return events.slice(0, Math.max(0, limit));
      } finally {
        watch.recalled(ok ? 'external' : 'failed', performance.now() - began);
      }
    },
    async capture(space, events, began = preciseNow()) {
      checkSpace(space);
      if (isErased(space, began)) return watch.captured('erased', events.length);
      const fit = events.flatMap((event) => fitted(event, limits, now()) ?? []);
      queue.add(fit.map((event) => ({ space, event, tries: 0 })));
    },
    async erase(space) {
      checkSpace(space);
      const now = preciseNow();
      for (const [one, at] of erased) if (at < now - ERASURES_KEPT) erased.delete(one);
      erased.set(space, now);
      await queue.remove((one) => one.space === space);
      await call(options.url, 'DELETE', { space });
      return undefined;
    },
    close: () => queue.close(),
  };
}

/** A memory backend behind HTTP: another service that recalls and stores the events. */

import { GatewayError } from '../../conversation/errors.ts';
import type { RecalledEvent, RecallQuery } from '../../conversation/memory.ts';
import { readUpTo } from '../../lib/http/read-up-to.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { preciseNow } from '../../lib/loop/precise-time.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { RecentErasures } from '../../state/erasures.ts';
import type { MemoryBackend, MemoryObserver } from './backend.ts';
import { CaptureQueue } from './capture-queue.ts';
import {
  type CheckedEvent,
  checkSpace,
  clampedEvents,
  DEFAULT_IMPORTANCE,
  DEFAULT_RECALL,
  type MemoryLimits,
  NAME_LENGTH,
} from './event.ts';

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

const LISTS = ['events', 'memories', 'results', 'items', 'data'];
const TEXTS = ['text', 'content', 'memory', 'event', 'summary', 'fact'];
const TIMES = ['time', 'timestamp', 'created_at', 'createdAt', 'date'];
const SOURCES = ['source', 'speaker', 'author', 'from'];
const SCORES = ['score', 'similarity', 'relevance'];

/**
 * Reads `{events: […]}`, the same under another usual name or one level down (`{data: {events}}`), or a
 * bare list. Keeps its order. @throws GatewayError upstream when there is no list
 */
export function readExternalEvents(
  answer: Json | undefined,
  limits: MemoryLimits,
  now: number,
): readonly RecalledEvent[] {
  const list = listIn(answer, 2);
  if (list === undefined) {
    throw new GatewayError('upstream', 'The external memory answered without {"events": […]}.');
  }
  return list.flatMap((item, at) => {
    const fields: JsonObject = isObject(item) ? item : { text: item };
    const text = first(fields, TEXTS, (value) =>
      typeof value === 'string' && value.trim() !== '' ? value.slice(0, limits.text) : undefined,
    );
    if (text === undefined) return [];
    const source = first(fields, SOURCES, (value) =>
      typeof value === 'string' && value !== '' ? value.slice(0, NAME_LENGTH) : undefined,
    );
    const tags = Array.isArray(fields.tags) ? (fields.tags as Json[]) : [];
    const id = typeof fields.id === 'string' || typeof fields.id === 'number' ? `${fields.id}` : '';
    const weight = first(fields, ['importance', 'weight'], numberOf);
    return [
      {
        id: id === '' ? `mem_external${at + 1}` : id.slice(0, NAME_LENGTH),
        time: first(fields, TIMES, timeOf) ?? now,
        text: text.toWellFormed(),
        ...(source !== undefined && { source }),
        tags: tags.filter((tag) => typeof tag === 'string').slice(0, limits.tags),
        importance: Math.min(1, Math.max(0, weight ?? DEFAULT_IMPORTANCE)),
        // Without scores the order of the list is the ranking.
        score: first(fields, SCORES, numberOf) ?? 1 / (at + 1),
      },
    ];
  });
}

function listIn(value: Json | undefined, depth: number): readonly Json[] | undefined {
  if (Array.isArray(value)) return value as readonly Json[];
  if (!isObject(value) || depth === 0) return undefined;
  for (const name of LISTS) {
    const found = listIn(value[name], depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function first<T>(
  fields: JsonObject,
  names: readonly string[],
  read: (value: Json) => T | undefined,
): T | undefined {
  for (const name of names) {
    const value = fields[name];
    const found = value === undefined ? undefined : read(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

const numberOf = (value: Json) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

/** Milliseconds since 1970; a number below 1e11 is taken as seconds. */
function timeOf(value: Json): number | undefined {
  const number =
    typeof value === 'string' && !/^\d+$/.test(value) ? Date.parse(value) : Number(value);
  if (!Number.isFinite(number) || number < 0) return undefined;
  return Math.round(number < 1e11 ? number * 1000 : number);
}

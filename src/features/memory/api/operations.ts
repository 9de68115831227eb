/** The operations of the memory API and their responses, without routes and access checks. */

import type { Payer } from '../../../conversation/account/payer.ts';
import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import { othersTurn } from '../../../lib/loop/steps.ts';
import type { EventStore, MemoryBackend, SpaceCount } from '../backend.ts';
import { eventsHolding, forgetEvents } from '../forget.ts';
import { withinTokens } from '../ranking/passages.ts';
import type { EventPage } from '../store/event-pages.ts';
import {
  type EventLine,
  isJsonLines,
  readChange,
  readEvents,
  readForget,
  readLines,
  readList,
  readRecall,
  readSpaces,
} from './input.ts';

/** A request whose sender may use the space. */
export interface MemoryRequest {
  readonly memory: MemoryBackend;
  readonly space: string;
  readonly body: Uint8Array;
  readonly headers: ReadonlyHeaders;
  readonly search: URLSearchParams;
  readonly signal: AbortSignal;
  /** Pays for a recall. */
  readonly payer: Payer | undefined;
  /** The id of the key that asks. */
  readonly key: string;
  /** The id of the event that the path names, else ''. */
  readonly id: string;
}

export type MemoryOperation = (request: MemoryRequest) => Promise<Response> | Response;

/** Events of an import that are stored in one step. */
const IMPORT_STEP = 500;
/** Characters of texts that an import stores in one step: all of them are indexed. */
const IMPORT_CHARACTERS = 16_000;
/** Spaces read at a time. */
const SPACES_STEP = 1000;
/** Events of an export read at a time. */
const EXPORT_STEP = 500;

/** Stores the events of a body. @throws GatewayError conflict where an id exists with another text; as `readEvents` */
export const addEvents: MemoryOperation = async (request) => {
  const { memory, space, body, headers, key } = request;
  if (memory.eventStore === undefined) {
    const events = isJsonLines(headers)
      ? [...readLines(body)].map(({ event }) => event)
      : readEvents(body).events;
    await memory.capture(space, events);
    return Response.json({ accepted: events.length }, { status: 202 });
  }
  if (isJsonLines(headers)) return importLines(memory.eventStore, request);
  const { events, at } = readEvents(body);
  const paramOf = (place: number) => (at === '' ? '' : `${at}[${place}]`);
  const added = await memory.eventStore.addInSteps(space, events, paramOf, key);
  const only = at === '' ? added[0] : undefined;
  if (only !== undefined && !only[1] && only[0].text !== events[0]!.text.trim()) {
    throw new GatewayError(
      'conflict',
      `The event '${only[0].id}' exists with another text. To change it, use PATCH.`,
      { param: 'id', code: 'event_exists', retryable: false },
    );
  }
  const status = added.some(([, isNew]) => isNew) ? 201 : 200;
  const all = added.map(([event]) => event);
  return Response.json(at === '' ? all[0] : { events: all }, { status });
};

/**
 * Imports in steps that let other work run. Where a line is wrong, the lines before it are stored; the
 * error names the line and says so.
 */
async function importLines(
  eventStore: EventStore,
  { space, body, key }: MemoryRequest,
): Promise<Response> {
  const count = { added: 0, known: 0 };
  const put = async (step: readonly EventLine[]) => {
    const events = step.map(({ event }) => event);
    const paramOf = (place: number) => `line ${step[place]!.line}`;
    const added = await eventStore.add(space, events, paramOf, key);
    for (const [, isNew] of added) count[isNew ? 'added' : 'known']++;
  };
  const putAll = async (step: readonly EventLine[]) => {
    try {
      await put(step);
    } catch (thrown) {
      if (step.length < 2) throw thrown;
      // The step stored nothing, so its lines are stored one by one up to the wrong one.
      for (const line of step) await put([line]);
    }
  };
  let step: EventLine[] = [];
  let characters = 0;
  try {
    const lines = readLines(body);
    for (;;) {
      let next: IteratorResult<EventLine>;
      try {
        next = lines.next();
      } catch (thrown) {
        await putAll(step);
        throw thrown;
      }
      if (next.done === true) break;
      step.push(next.value);
      characters += next.value.event.text.length;
      if (step.length < IMPORT_STEP && characters < IMPORT_CHARACTERS) continue;
      await putAll(step);
      step = [];
      characters = 0;
      await othersTurn();
    }
    await putAll(step);
  } catch (thrown) {
    throw thrown instanceof GatewayError ? withImportCounts(thrown, count) : thrown;
  }
  return Response.json(count, { status: 200 });
}

/** The same error with the counts of the lines before it. */
const withImportCounts = (
  { kind, message, status, param, code }: GatewayError,
  { added, known }: { readonly added: number; readonly known: number },
): GatewayError =>
  new GatewayError(
    kind,
    `${message} The lines before it are stored (${added} added, ${known} known already); the lines after it are not.`,
    { status, param, code, retryable: false },
  );

/** Spaces with their counts, sorted by name; `after` is the last name of the previous page. */
export async function listSpaces(
  memory: MemoryBackend,
  search: URLSearchParams,
  mayUse: (space: string) => boolean,
): Promise<Response> {
  const { after, limit } = readSpaces(search);
  const eventStore = await settledStore(memory);
  const spaces: SpaceCount[] = [];
  const embeddings = memory.vectors?.();
  const answer = (next_after: string | null) =>
    Response.json({ spaces, next_after, ...(embeddings && { embeddings }) });
  for (let last = after; ; ) {
    const page = await eventStore.spaces(last, SPACES_STEP);
    for (const one of page) {
      if (!mayUse(one.space)) continue;
      if (spaces.length === limit) {
        return answer(spaces.at(-1)!.space);
      }
      spaces.push(one);
    }
    if (page.length < SPACES_STEP) return answer(null);
    last = page.at(-1)!.space;
    await othersTurn();
  }
}

export const changeEvent: MemoryOperation = async ({ memory, space, id, body, key }) => {
  const eventStore = await settledStore(memory);
  const changed = await eventStore.change(space, id, readChange(body), key);
  if (changed === undefined) throw eventNotFound(id);
  return Response.json(changed);
};

export const listEvents: MemoryOperation = async ({ memory, space, search }) => {
  const eventStore = await settledStore(memory);
  const { events, next } = await eventStore.list(space, readList(search));
  return Response.json({ events, next_cursor: next ?? null });
};

export const getEvent: MemoryOperation = async ({ memory, space, id }) => {
  const eventStore = await settledStore(memory);
  const found = await eventStore.get(space, id);
  if (found === undefined) throw eventNotFound(id);
  return Response.json(found);
};

export const removeEvent: MemoryOperation = async ({ memory, space, id }) => {
  const eventStore = await settledStore(memory);
  if (!(await eventStore.remove(space, id))) throw eventNotFound(id);
  return Response.json({ id, deleted: true });
};

export const recallEvents: MemoryOperation = async ({ memory, space, body, signal, payer }) => {
  const query = readRecall(body);
  const events = await memory.recall(space, { ...query, signal, payer });
  return Response.json({ events: withinTokens(events, query.query, query.maxTokens ?? 0) });
};

export const forget: MemoryOperation = async ({ memory, space, body }) => {
  const { ids, query, dry_run: isDry } = readForget(body);
  await settledStore(memory);
  const events = query === undefined ? [] : await eventsHolding(memory, space, query);
  const wanted = ids ?? events.map(({ id }) => id);
  const forgotten = isDry === true ? 0 : await forgetEvents(memory, space, wanted);
  return Response.json({ forgotten, events });
};

/** Streams all events as JSON lines, oldest first, in the form that `addEvents` takes. Reads a page at a time. */
export const exportEvents: MemoryOperation = async ({ memory, space }) => {
  const eventStore = await settledStore(memory);
  const encoder = new TextEncoder();
  const line = (event: MemoryEvent) => `${JSON.stringify(event)}\n`;
  const pageAt = (cursor: string | undefined) =>
    eventStore.list(space, { order: 'asc', limit: EXPORT_STEP, ...(cursor && { cursor }) });
  // The first page is read before the response begins, so that a failure is not a 200.
  let page: EventPage | undefined = await pageAt(undefined);
  return new Response(
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (page === undefined) return controller.close();
        if (page.events.length > 0) {
          controller.enqueue(encoder.encode(page.events.map(line).join('')));
        }
        page = page.next === undefined ? undefined : await pageAt(page.next);
        if (page === undefined) controller.close();
      },
    }),
    {
      headers: {
        'content-type': 'application/x-ndjson; charset=utf-8',
        'content-disposition': 'attachment; filename="memory.jsonl"',
      },
    },
  );
};

/** The store of events, once everything captured so far is in it. @throws GatewayError 501 */
async function settledStore({ eventStore }: MemoryBackend): Promise<EventStore> {
  if (eventStore !== undefined) {
    await eventStore.settled();
    return eventStore;
  }
  throw new GatewayError(
    'invalid_request',
    'The events are stored by an external service (memory.url): use its own API to list or change them.',
    { status: 501, code: 'memory_is_external', retryable: false },
  );
}

const eventNotFound = (id: string) =>
  new GatewayError('not_found', `There is no event '${id.slice(0, 100)}' in this memory space.`, {
    param: 'id',
    code: 'event_not_found',
  });

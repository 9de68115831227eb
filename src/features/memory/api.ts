/** The memory API without its routes: what each operation does with a space, and what it answers. */

import { GatewayError } from '../../conversation/errors.ts';
import type { MemoryEvent } from '../../conversation/memory.ts';
import type { HeaderFields } from '../../lib/header-list.ts';
import {
  type GivenLine,
  isLines,
  readEvents,
  readLines,
  readList,
  readRecall,
} from './api-input.ts';
import type { EventBook, MemoryBase } from './base.ts';

/** A request whose sender may use the space. */
export interface MemoryRequest {
  readonly memory: MemoryBase;
  readonly space: string;
  readonly body: Uint8Array;
  readonly headers: HeaderFields;
  readonly search: URLSearchParams;
  readonly signal: AbortSignal;
  /** Of the event that the path names, else ''. */
  readonly id: string;
}

export type MemoryOperation = (request: MemoryRequest) => Promise<Response> | Response;

/** Events of an import that go into the file together. */
const IMPORT_STEP = 500;
/** Events of an export that are read at a time. */
const EXPORT_STEP = 500;

export const addEvents: MemoryOperation = async (request) => {
  const { memory, space, body, headers } = request;
  if (memory.book === undefined) {
    const events = isLines(headers)
      ? [...readLines(body)].map(({ event }) => event)
      : readEvents(body).events;
    await memory.capture(space, events);
    return Response.json({ accepted: events.length }, { status: 202 });
  }
  if (isLines(headers)) return importLines(memory.book, request);
  const { events, at } = readEvents(body);
  const called = (place: number) => (at === '' ? '' : `${at}[${place}]`);
  const added = memory.book.add(space, events, called);
  const status = added.some(([, isNew]) => isNew) ? 201 : 200;
  const all = added.map(([event]) => event);
  return Response.json(at === '' ? all[0] : { events: all }, { status });
};

/** In steps, so that others get their turn; what stood before a bad line stays, and is known next time. */
async function importLines(book: EventBook, { space, body }: MemoryRequest): Promise<Response> {
  const count = { added: 0, known: 0 };
  const put = (step: readonly GivenLine[]) => {
    const events = step.map(({ event }) => event);
    for (const [, isNew] of book.add(space, events, (place) => `line ${step[place]!.line}`)) {
      count[isNew ? 'added' : 'known']++;
    }
  };
  let step: GivenLine[] = [];
  for (const line of readLines(body)) {
    step.push(line);
    if (step.length < IMPORT_STEP) continue;
    put(step);
    step = [];
    await new Promise((resolve) => setImmediate(resolve));
  }
  put(step);
  return Response.json(count, { status: 200 });
}

export const listEvents: MemoryOperation = ({ memory, space, search }) => {
  const { events, next } = bookOf(memory).list(space, readList(search));
  return Response.json({ events, next_cursor: next ?? null });
};

export const getEvent: MemoryOperation = ({ memory, space, id }) => {
  const found = bookOf(memory).get(space, id);
  if (found === undefined) throw noEvent(id);
  return Response.json(found);
};

export const removeEvent: MemoryOperation = ({ memory, space, id }) => {
  if (!bookOf(memory).remove(space, id)) throw noEvent(id);
  return Response.json({ id, deleted: true });
};

export const recallEvents: MemoryOperation = async ({ memory, space, body, signal }) =>
  Response.json({ events: await memory.recall(space, { ...readRecall(body), signal }) });

/** JSON lines, oldest first: what `addEvents` takes. Read a page at a time, as fast as the client takes it. */
export const exportEvents: MemoryOperation = ({ memory, space }) => {
  const book = bookOf(memory);
  const encoder = new TextEncoder();
  const line = (event: MemoryEvent) => `${JSON.stringify(event)}\n`;
  const pageAt = (cursor: string | undefined) =>
    book.list(space, { order: 'asc', limit: EXPORT_STEP, ...(cursor && { cursor }) });
  // The first page is read at once: what cannot be read must not begin with a 200.
  let page: ReturnType<typeof pageAt> | undefined = pageAt(undefined);
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        if (page === undefined) return controller.close();
        if (page.events.length > 0) {
          controller.enqueue(encoder.encode(page.events.map(line).join('')));
        }
        page = page.next === undefined ? undefined : pageAt(page.next);
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

function bookOf({ book }: MemoryBase): EventBook {
  if (book !== undefined) return book;
  throw new GatewayError(
    'invalid_request',
    'This memory is kept by an external store (memory.url), which is only asked and told: use its own API.',
    { status: 501, code: 'memory_is_external', retryable: false },
  );
}

const noEvent = (id: string) =>
  new GatewayError('not_found', `There is no event '${id.slice(0, 100)}' in this memory space.`, {
    param: 'id',
    code: 'event_not_found',
  });

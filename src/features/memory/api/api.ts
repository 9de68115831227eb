/** The memory API without its routes: what each operation does with a space, and what it answers. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { MemoryEvent } from '../../../conversation/memory.ts';
import type { ReadonlyHeaders } from '../../../lib/http/headers.ts';
import type { EventBook, MemoryBase, SpaceCount } from '../base.ts';
import {
  type GivenLine,
  isLines,
  readChange,
  readEvents,
  readLines,
  readList,
  readRecall,
  readSpaces,
} from './api-input.ts';

/** A request whose sender may use the space. */
export interface MemoryRequest {
  readonly memory: MemoryBase;
  readonly space: string;
  readonly body: Uint8Array;
  readonly headers: ReadonlyHeaders;
  readonly search: URLSearchParams;
  readonly signal: AbortSignal;
  /** Of the event that the path names, else ''. */
  readonly id: string;
}

export type MemoryOperation = (request: MemoryRequest) => Promise<Response> | Response;

/** Events of an import that go into the file together. */
const IMPORT_STEP = 500;
/** Characters of their texts: each of them is indexed, which takes a while. */
const IMPORT_CHARACTERS = 16_000;
/** Spaces that are read at a time. */
const SPACES_STEP = 1000;
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
  const added = await memory.book.addInSteps(space, events, called);
  const only = at === '' ? added[0] : undefined;
  if (only !== undefined && !only[1] && only[0].text !== events[0]!.text.trim()) {
    throw new GatewayError(
      'conflict',
      `The event '${only[0].id}' is there with another text. To change it, use PATCH.`,
      { param: 'id', code: 'event_exists', retryable: false },
    );
  }
  const status = added.some(([, isNew]) => isNew) ? 201 : 200;
  const all = added.map(([event]) => event);
  return Response.json(at === '' ? all[0] : { events: all }, { status });
};

/**
 * In steps, so that others get their turn. What stands before a line that is wrong is in: the error
 * names the line, and says so.
 */
async function importLines(book: EventBook, { space, body }: MemoryRequest): Promise<Response> {
  const count = { added: 0, known: 0 };
  const put = (step: readonly GivenLine[]) => {
    const events = step.map(({ event }) => event);
    for (const [, isNew] of book.add(space, events, (place) => `line ${step[place]!.line}`)) {
      count[isNew ? 'added' : 'known']++;
    }
  };
  const putAll = (step: readonly GivenLine[]) => {
    try {
      put(step);
    } catch (thrown) {
      if (step.length < 2) throw thrown;
      // None of them is in: one by one, up to the one that is wrong.
      for (const line of step) put([line]);
    }
  };
  let step: GivenLine[] = [];
  let characters = 0;
  try {
    const lines = readLines(body);
    for (;;) {
      let next: IteratorResult<GivenLine>;
      try {
        next = lines.next();
      } catch (thrown) {
        putAll(step);
        throw thrown;
      }
      if (next.done === true) break;
      step.push(next.value);
      characters += next.value.event.text.length;
      if (step.length < IMPORT_STEP && characters < IMPORT_CHARACTERS) continue;
      putAll(step);
      step = [];
      characters = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    putAll(step);
  } catch (thrown) {
    throw thrown instanceof GatewayError ? partly(thrown, count) : thrown;
  }
  return Response.json(count, { status: 200 });
}

/** The same error, with what became of the lines before it. */
const partly = (
  { kind, message, status, param, code }: GatewayError,
  { added, known }: { readonly added: number; readonly known: number },
): GatewayError =>
  new GatewayError(
    kind,
    `${message} The lines before it are in (${added} added, ${known} known already); those behind it are not.`,
    { status, param, code, retryable: false },
  );

/** Spaces with their counts, by name; `after` is the last name of the page before. */
export async function listSpaces(
  memory: MemoryBase,
  search: URLSearchParams,
  mayUse: (space: string) => boolean,
): Promise<Response> {
  const { after, limit } = readSpaces(search);
  const book = bookOf(memory);
  await book.settled();
  const spaces: SpaceCount[] = [];
  for (let last = after; ; ) {
    const page = book.spaces(last, SPACES_STEP);
    for (const one of page) {
      if (!mayUse(one.space)) continue;
      if (spaces.length === limit) {
        return Response.json({ spaces, next_after: spaces.at(-1)!.space });
      }
      spaces.push(one);
    }
    if (page.length < SPACES_STEP) return Response.json({ spaces, next_after: null });
    last = page.at(-1)!.space;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export const changeEvent: MemoryOperation = async ({ memory, space, id, body }) => {
  const book = bookOf(memory);
  await book.settled();
  const changed = book.change(space, id, readChange(body));
  if (changed === undefined) throw noEvent(id);
  return Response.json(changed);
};

export const listEvents: MemoryOperation = async ({ memory, space, search }) => {
  await bookOf(memory).settled();
  const { events, next } = bookOf(memory).list(space, readList(search));
  return Response.json({ events, next_cursor: next ?? null });
};

export const getEvent: MemoryOperation = async ({ memory, space, id }) => {
  await bookOf(memory).settled();
  const found = bookOf(memory).get(space, id);
  if (found === undefined) throw noEvent(id);
  return Response.json(found);
};

export const removeEvent: MemoryOperation = async ({ memory, space, id }) => {
  await bookOf(memory).settled();
  if (!bookOf(memory).remove(space, id)) throw noEvent(id);
  return Response.json({ id, deleted: true });
};

export const recallEvents: MemoryOperation = async ({ memory, space, body, signal }) =>
  Response.json({ events: await memory.recall(space, { ...readRecall(body), signal }) });

/** JSON lines, oldest first: what `addEvents` takes. Read a page at a time, as fast as the client takes it. */
export const exportEvents: MemoryOperation = async ({ memory, space }) => {
  const book = bookOf(memory);
  await book.settled();
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

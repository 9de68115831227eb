/** The routes of the memory API. */

import { Elysia } from 'elysia';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import type { MemoryBase } from '../base.ts';
import { checkSpace } from '../event.ts';
import {
  addEvents,
  changeEvent,
  exportEvents,
  getEvent,
  listEvents,
  listSpaces,
  type MemoryOperation,
  recallEvents,
  removeEvent,
} from './api.ts';
import { openapiDocument } from './openapi.ts';

/** What was read of a request before anything is done. */
export interface MemoryCaller {
  /** The name of the gateway key, '' without auth. */
  readonly owner: string;
  readonly body: Uint8Array;
}

export interface MemoryPluginOptions {
  /** Checks who asks and reads the body; whatever is thrown becomes an answer. Never rejects. */
  readonly serve: (
    request: Request,
    handle: (caller: MemoryCaller) => Promise<Response>,
  ) => Promise<Response>;
  /** Undefined while it is switched off. */
  readonly memory: () => MemoryBase | undefined;
  readonly mayUse: (owner: string, space: string) => boolean;
  /** Removes everything that belongs to a space, here and elsewhere. */
  readonly erase: (
    space: string,
  ) => Promise<{ readonly events?: number; readonly samples: number }>;
  readonly version: string;
}

type Context = { readonly request: Request };

/** `/v1/memory/…`: no hook parses a body, nothing touches `set`. */
export function memoryPlugin(options: MemoryPluginOptions) {
  const { serve } = options;
  const document = JSON.stringify(openapiDocument(options.version));
  const memoryInUse = (): MemoryBase => {
    const memory = options.memory();
    if (memory !== undefined) return memory;
    throw new GatewayError('not_found', 'The memory is switched off (memory.enabled).', {
      code: 'memory_off',
    });
  };
  const spaces = ({ request }: Context) =>
    serve(request, ({ owner }) =>
      listSpaces(memoryInUse(), new URL(request.url).searchParams, (space) =>
        options.mayUse(owner, space),
      ),
    );
  const route =
    (operation: MemoryOperation) =>
    ({ request }: Context) =>
      serve(request, async ({ owner, body }) => {
        const memory = memoryInUse();
        const { pathname, searchParams } = new URL(request.url);
        // '', v1, memory, space, events, id
        const parts = pathname.split('/');
        const space = checkSpace(decoded(parts[3] ?? '', 'space'));
        if (!options.mayUse(owner, space)) throw notYours(space);
        return operation({
          memory,
          space,
          body,
          headers: request.headers,
          search: searchParams,
          signal: request.signal,
          id: decoded(parts[5] ?? '', 'id'),
        });
      });
  const erase: MemoryOperation = async ({ space }) => {
    const { events, samples } = await options.erase(space);
    return Response.json({ space, erased: true, events: events ?? null, samples });
  };
  const raw = { parse: 'none' } as const;
  return new Elysia({ name: 'memory', seed: options })
    .get('/v1/memory/openapi.json', ({ request }) =>
      serve(request, async () => new Response(document, JSON_TYPE)),
    )
    .get('/v1/memory', spaces)
    .patch('/v1/memory/:space/events/:id', route(changeEvent), raw)
    .post('/v1/memory/:space/events', route(addEvents), raw)
    .get('/v1/memory/:space/events', route(listEvents))
    .get('/v1/memory/:space/events/:id', route(getEvent))
    .delete('/v1/memory/:space/events/:id', route(removeEvent), raw)
    .post('/v1/memory/:space/recall', route(recallEvents), raw)
    .get('/v1/memory/:space/export', route(exportEvents))
    .delete('/v1/memory/:space', route(erase), raw);
}

const JSON_TYPE = { headers: { 'content-type': 'application/json' } };

function decoded(part: string, param: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalid(`The ${param} in the path is not percent-encoded UTF-8.`, param);
  }
}

const notYours = (space: string) =>
  new GatewayError(
    'permission',
    `This key may not use the memory space '${space}' (auth.keys[].spaces).`,
    { param: 'space', code: 'space_not_allowed', retryable: false },
  );

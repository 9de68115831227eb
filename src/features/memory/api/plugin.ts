/** The memory API as an Elysia plugin: `/v1/memory/…`. */

import { Elysia } from 'elysia';
import type { Payer } from '../../../conversation/account/payer.ts';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import type { Principal } from '../../../keys/principal.ts';
import type { MemoryBackend } from '../backend.ts';
import { checkSpace } from '../event.ts';
import { openapiDocument } from './openapi.ts';
import {
  addEvents,
  changeEvent,
  exportEvents,
  forget,
  getEvent,
  listEvents,
  listSpaces,
  type MemoryOperation,
  recallEvents,
  removeEvent,
} from './operations.ts';

/** The sender of an authorized request, and its body. */
export interface MemoryCaller {
  readonly principal: Principal;
  readonly body: Uint8Array;
  readonly payer?: Payer | undefined;
}

export interface MemoryPluginOptions {
  /** Checks the key and reads the body; anything thrown becomes an error response. Never rejects. */
  readonly serve: (
    request: Request,
    handle: (caller: MemoryCaller) => Promise<Response>,
  ) => Promise<Response>;
  /** Undefined while the memory is switched off. */
  readonly memory: () => Promise<MemoryBackend | undefined>;
  /** Removes everything that belongs to a space, in the memory and elsewhere. */
  readonly erase: (
    space: string,
  ) => Promise<{ readonly events?: number; readonly samples: number }>;
  readonly version: string;
}

/** Elysia's context. It sets a parameter that is not percent-encoded UTF-8 to null. */
interface MemoryContext {
  readonly request: Request;
  readonly params: Readonly<Record<string, string | null>>;
}

// Elysia validates neither body nor query: its check would come before `serve`, so a request without a
// key would learn what the API expects. `input.ts` checks both with the same TypeBox schemas.
const UNPARSED = { parse: 'none' } as const;

export function memoryPlugin(options: MemoryPluginOptions) {
  const { serve } = options;
  const document = JSON.stringify(openapiDocument(options.version));

  async function memoryInUse(): Promise<MemoryBackend> {
    const memory = await options.memory();
    if (memory !== undefined) return memory;
    throw new GatewayError('not_found', 'The memory is switched off (memory.enabled).', {
      code: 'memory_off',
    });
  }

  const spaces = ({ request }: Pick<MemoryContext, 'request'>) =>
    serve(request, async ({ principal }) =>
      listSpaces(await memoryInUse(), new URL(request.url).searchParams, (space) =>
        principal.policy.allowsSpace(space),
      ),
    );

  /** A route whose path names a space, and perhaps an event. */
  const inSpace =
    (operation: MemoryOperation) =>
    ({ request, params }: MemoryContext) =>
      serve(request, async ({ principal, body, payer }) => {
        const memory = await memoryInUse();
        const space = checkSpace(decoded(params, 'space'));
        if (!principal.policy.allowsSpace(space)) throw spaceNotAllowed(space);
        return operation({
          memory,
          space,
          body,
          headers: request.headers,
          search: new URL(request.url).searchParams,
          signal: request.signal,
          payer,
          key: principal.id,
          id: decoded(params, 'id'),
        });
      });

  const eraseSpace: MemoryOperation = async ({ space }) => {
    const { events, samples } = await options.erase(space);
    return Response.json({ space, erased: true, events: events ?? null, samples });
  };

  return new Elysia({ name: 'memory', seed: options, prefix: '/v1/memory' })
    .get('/openapi.json', ({ request }) =>
      serve(request, async () => new Response(document, JSON_TYPE)),
    )
    .get('/', spaces)
    .delete('/:space', inSpace(eraseSpace), UNPARSED)
    .get('/:space/events', inSpace(listEvents))
    .post('/:space/events', inSpace(addEvents), UNPARSED)
    .get('/:space/events/:id', inSpace(getEvent))
    .patch('/:space/events/:id', inSpace(changeEvent), UNPARSED)
    .delete('/:space/events/:id', inSpace(removeEvent), UNPARSED)
    .post('/:space/recall', inSpace(recallEvents), UNPARSED)
    .post('/:space/forget', inSpace(forget), UNPARSED)
    .get('/:space/export', inSpace(exportEvents));
}

const JSON_TYPE = { headers: { 'content-type': 'application/json' } };

function decoded(params: MemoryContext['params'], name: 'space' | 'id'): string {
  const value = params[name];
  if (value === null) throw invalid(`The ${name} in the path is not percent-encoded UTF-8.`, name);
  return value ?? '';
}

const spaceNotAllowed = (space: string) =>
  new GatewayError(
    'permission',
    `This key may not use the memory space '${space}' (auth.keys[].spaces).`,
    { param: 'space', code: 'space_not_allowed', retryable: false },
  );

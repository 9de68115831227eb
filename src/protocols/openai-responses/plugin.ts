/** The routes of Responses. */

import { Elysia } from 'elysia';
import type { Serve } from '../protocol.ts';
import { openaiResponses } from './index.ts';

export interface OpenaiResponsesRoutes {
  readonly serve: Serve;
  /** Codex's code mode searches by `POST /v1/alpha/search`. */
  readonly search: Serve;
  /** The stored responses: `GET` and `DELETE` by id, and the input items of one. */
  readonly retrieve: (request: Request, id: string) => Promise<Response>;
  readonly remove: (request: Request, id: string) => Promise<Response>;
  readonly inputItems: (request: Request, id: string) => Promise<Response>;
  /** An error in this protocol's shape. */
  readonly refuse: (request: Request, status: number, message: string) => Response;
}

/**
 * `POST /v1/responses` and the stored responses. A WebSocket upgrade gets 426, on which Codex goes
 * straight to POST.
 */
export function openaiResponsesPlugin(routes: OpenaiResponsesRoutes) {
  const { serve, search, retrieve, remove, inputItems, refuse } = routes;
  const answer = ({ request }: { request: Request }) => serve(request, openaiResponses);
  const bare = ({ request }: { request: Request }) =>
    request.headers.get('upgrade')?.toLowerCase() === 'websocket'
      ? refuse(request, 426, 'WebSocket is not offered here; use POST with streaming.')
      : refuse(request, 405, 'Use POST to create a response.');
  return new Elysia({ name: 'openai-responses', seed: serve })
    .post('/v1/responses', answer, { parse: 'none' })
    .post('/responses', answer, { parse: 'none' })
    .post('/v1/alpha/search', ({ request }) => search(request, openaiResponses), { parse: 'none' })
    .get('/v1/responses', bare)
    .get('/v1/responses/:id', ({ request, params }) => retrieve(request, params.id))
    .delete('/v1/responses/:id', ({ request, params }) => remove(request, params.id), {
      parse: 'none',
    })
    .get('/v1/responses/:id/input_items', ({ request, params }) => inputItems(request, params.id));
}

/** The HTTP routes of the Responses protocol. */

import type { ProtocolHandler, Routes } from '../../server/routes.ts';
import { openaiResponses } from './index.ts';

export interface OpenaiResponsesRoutes {
  readonly serve: ProtocolHandler;
  /** `POST /v1/alpha/search`: the search of Codex's code mode. */
  readonly search: ProtocolHandler;
  /** Stored responses: `GET` and `DELETE` by id, and the input items of a response. */
  readonly retrieve: (request: Request, id: string) => Promise<Response>;
  readonly remove: (request: Request, id: string) => Promise<Response>;
  readonly inputItems: (request: Request, id: string) => Promise<Response>;
  readonly cancel: (request: Request, id: string) => Promise<Response>;
  /** `POST /v1/responses/input_tokens`. */
  readonly inputTokens: ProtocolHandler;
  /** Endpoints of OpenAI that this gateway does not serve: refused with an explanation. */
  readonly compact: ProtocolHandler;
  readonly conversations: ProtocolHandler;
  /** An error answer of this protocol. */
  readonly refuse: (request: Request, status: number, message: string) => Response;
}

/**
 * `POST /v1/responses` and the stored responses. A WebSocket upgrade is answered with 426, after which
 * Codex uses POST.
 */
export function openaiResponsesRoutes(routes: OpenaiResponsesRoutes): Routes {
  const { serve, search, retrieve, remove, inputItems, cancel, refuse } = routes;
  const answer = { POST: (request: Request) => serve(request, openaiResponses) };
  const bare = (request: Request) =>
    request.headers.get('upgrade')?.toLowerCase() === 'websocket'
      ? refuse(request, 426, 'WebSocket is not supported; use POST with streaming.')
      : refuse(request, 405, 'Use POST to create a response.');
  const conversations = (request: Request) => routes.conversations(request, openaiResponses);
  const every = { GET: conversations, POST: conversations, DELETE: conversations };
  return {
    '/v1/responses': { ...answer, GET: bare },
    '/responses': answer,
    '/v1/alpha/search': { POST: (request) => search(request, openaiResponses) },
    '/v1/responses/:id': {
      GET: (request) => retrieve(request, request.params.id!),
      DELETE: (request) => remove(request, request.params.id!),
    },
    '/v1/responses/input_tokens': {
      POST: (request) => routes.inputTokens(request, openaiResponses),
    },
    '/v1/responses/compact': { POST: (request) => routes.compact(request, openaiResponses) },
    '/v1/conversations': every,
    '/v1/conversations/:id': every,
    '/v1/conversations/:id/items': every,
    '/v1/conversations/:id/items/:item': every,
    '/v1/responses/:id/cancel': { POST: (request) => cancel(request, request.params.id!) },
    '/v1/responses/:id/input_items': { GET: (request) => inputItems(request, request.params.id!) },
  };
}

/** The routes of Responses: creating one, and what is stored. */

import { Elysia } from 'elysia';
import { RAW, type RequestContext } from '../../lib/http/routes.ts';
import type { Serve } from '../serve.ts';
import { openaiResponses } from './index.ts';

type ById = (request: Request, id: string) => Promise<Response>;

export interface ResponsesOptions {
  readonly serve: Serve;
  readonly responses: {
    /** `POST /v1/alpha/search`, by which Codex' code mode searches. */
    readonly search: Serve;
    /** An upgrade to a WebSocket; undefined: the connection is one now. */
    readonly socket: (request: Request) => Promise<Response | undefined>;
    /** Stored responses. */
    readonly retrieve: ById;
    readonly remove: ById;
    readonly inputItems: ById;
    readonly cancel: ById;
    /** `POST /v1/responses/input_tokens`. */
    readonly inputTokens: Serve;
    /** `POST /v1/responses/compact`. */
    readonly compact: Serve;
    /** Endpoints of OpenAI that this gateway refuses in words. */
    readonly conversations: Serve;
    /** An error in this protocol's shape. */
    readonly refuse: (status: number, message: string) => Response;
  };
}

/** `POST /v1/responses`, the same over WebSocket, and the stored responses. */
export function responsesPlugin({ serve, responses }: ResponsesOptions) {
  const { refuse } = responses;
  const by =
    (handle: Serve) =>
    ({ request }: RequestContext) =>
      handle(request, openaiResponses);
  const byId =
    (handle: ById) =>
    ({ request, params }: RequestContext & { params: { id: string } }) =>
      handle(request, params.id);
  const notPost = ({ request }: RequestContext) =>
    request.headers.get('upgrade')?.toLowerCase() === 'websocket'
      ? responses.socket(request)
      : refuse(405, 'Use POST to create a response, or upgrade to a WebSocket.');
  const app = new Elysia({ name: 'responses' })
    .post('/v1/responses', by(serve), RAW)
    .get('/v1/responses', notPost)
    .post('/responses', by(serve), RAW)
    .get('/responses', notPost)
    .post('/v1/alpha/search', by(responses.search), RAW)
    .post('/v1/responses/input_tokens', by(responses.inputTokens), RAW)
    .post('/v1/responses/compact', by(responses.compact), RAW)
    .post('/responses/compact', by(responses.compact), RAW)
    .get('/v1/responses/:id', byId(responses.retrieve))
    .delete('/v1/responses/:id', byId(responses.remove), RAW)
    .post('/v1/responses/:id/cancel', byId(responses.cancel), RAW)
    .get('/v1/responses/:id/input_items', byId(responses.inputItems));
  const conversations = by(responses.conversations);
  for (const path of ['', '/:id', '/:id/items', '/:id/items/:item']) {
    app
      .get(`/v1/conversations${path}`, conversations)
      .post(`/v1/conversations${path}`, conversations, RAW)
      .delete(`/v1/conversations${path}`, conversations, RAW);
  }
  return app;
}

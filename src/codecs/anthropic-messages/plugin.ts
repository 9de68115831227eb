/** The routes of Messages. */

import { Elysia } from 'elysia';
import { RAW, type RequestContext } from '../../lib/http/routes.ts';
import type { Serve } from '../serve.ts';
import { anthropicMessages } from './index.ts';

export interface MessagesOptions {
  readonly serve: Serve;
  /** Answers `{input_tokens}`, from the upstream where it can count, else estimated. */
  readonly countTokens: Serve;
}

/** `POST /v1/messages` and `/v1/messages/count_tokens`, with and without `/v1`; the query (`?beta=true`) is not part of the path. */
export function messagesPlugin({ serve, countTokens }: MessagesOptions) {
  const create = ({ request }: RequestContext) => serve(request, anthropicMessages);
  const count = ({ request }: RequestContext) => countTokens(request, anthropicMessages);
  return new Elysia({ name: 'messages' })
    .post('/v1/messages', create, RAW)
    .post('/messages', create, RAW)
    .post('/v1/messages/count_tokens', count, RAW)
    .post('/messages/count_tokens', count, RAW);
}

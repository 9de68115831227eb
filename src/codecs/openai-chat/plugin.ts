/** The routes of Chat Completions. */

import { Elysia } from 'elysia';
import { RAW, type RequestContext } from '../../lib/http/routes.ts';
import type { Serve } from '../serve.ts';
import { openaiChat } from './index.ts';

/** `POST /v1/chat/completions`, with and without `/v1`. */
export function chatCompletionsPlugin({ serve }: { readonly serve: Serve }) {
  const create = ({ request }: RequestContext) => serve(request, openaiChat);
  return new Elysia({ name: 'chat-completions' })
    .post('/v1/chat/completions', create, RAW)
    .post('/chat/completions', create, RAW);
}

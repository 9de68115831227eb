/** The routes of Chat Completions. */

import { Elysia } from 'elysia';
import type { Serve } from '../protocol.ts';
import { openaiChat } from './index.ts';

/** `POST /v1/chat/completions`, with and without `/v1`. The body is read by `serve`, as bytes. */
export function openaiChatPlugin(serve: Serve) {
  const answer = ({ request }: { request: Request }) => serve(request, openaiChat);
  return new Elysia({ name: 'openai-chat', seed: serve })
    .post('/v1/chat/completions', answer, { parse: 'none' })
    .post('/chat/completions', answer, { parse: 'none' });
}

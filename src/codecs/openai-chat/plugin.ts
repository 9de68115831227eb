/** The HTTP routes of the Chat Completions protocol. */

import type { ProtocolHandler, Routes } from '../../server/routes.ts';
import { openaiChat } from './index.ts';

/** `POST /v1/chat/completions`, with and without `/v1`. `serve` reads the body as bytes. */
export function openaiChatRoutes(serve: ProtocolHandler): Routes {
  const answer = { POST: (request: Request) => serve(request, openaiChat) };
  return { '/v1/chat/completions': answer, '/chat/completions': answer };
}

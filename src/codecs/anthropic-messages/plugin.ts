/** The HTTP routes of the Messages protocol. */

import type { ProtocolHandler, Routes } from '../../server/routes.ts';
import { anthropicMessages } from './index.ts';

export interface AnthropicMessagesRoutes {
  readonly serve: ProtocolHandler;
  /** Answers `{input_tokens}`: counted by the upstream if it can, else estimated. */
  readonly countTokens: ProtocolHandler;
}

/** `POST /v1/messages` and `/v1/messages/count_tokens`, with and without `/v1`. The query (`?beta=true`) is not part of the path. */
export function anthropicMessagesRoutes({ serve, countTokens }: AnthropicMessagesRoutes): Routes {
  const answer = { POST: (request: Request) => serve(request, anthropicMessages) };
  const count = { POST: (request: Request) => countTokens(request, anthropicMessages) };
  return {
    '/v1/messages': answer,
    '/messages': answer,
    '/v1/messages/count_tokens': count,
    '/messages/count_tokens': count,
  };
}

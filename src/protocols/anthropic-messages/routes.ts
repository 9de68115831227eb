/** The routes of Messages. */

import type { Routes, Serve } from '../protocol.ts';
import { anthropicMessages } from './index.ts';

export interface AnthropicMessagesRoutes {
  readonly serve: Serve;
  /** Answers `{input_tokens}`, from the upstream where it can count, else estimated. */
  readonly countTokens: Serve;
}

/** `POST /v1/messages` and `/v1/messages/count_tokens`; the query (`?beta=true`) is not part of the path. */
export function anthropicMessagesRoutes({ serve, countTokens }: AnthropicMessagesRoutes): Routes {
  return {
    '/v1/messages': { POST: (request) => serve(request, anthropicMessages) },
    '/v1/messages/count_tokens': { POST: (request) => countTokens(request, anthropicMessages) },
  };
}

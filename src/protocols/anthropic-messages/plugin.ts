/** The routes of Messages. */

import { Elysia } from 'elysia';
import type { Serve } from '../protocol.ts';
import { anthropicMessages } from './index.ts';

export interface AnthropicMessagesRoutes {
  readonly serve: Serve;
  /** Answers `{input_tokens}`, from the upstream where it can count, else estimated. */
  readonly countTokens: Serve;
}

/** `POST /v1/messages` and `/v1/messages/count_tokens`; the query (`?beta=true`) is not part of the path. */
export function anthropicMessagesPlugin({ serve, countTokens }: AnthropicMessagesRoutes) {
  return new Elysia({ name: 'anthropic-messages', seed: serve })
    .post('/v1/messages', ({ request }) => serve(request, anthropicMessages), { parse: 'none' })
    .post('/v1/messages/count_tokens', ({ request }) => countTokens(request, anthropicMessages), {
      parse: 'none',
    });
}

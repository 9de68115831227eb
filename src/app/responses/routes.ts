/** Answers on the routes of Responses beside `POST /v1/responses`. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import type { ResponsesOptions } from '../../codecs/openai-responses/plugin.ts';
import { GatewayError, invalid } from '../../conversation/errors.ts';
import { errorResponse } from '../../gateway/error-response.ts';
import type { Exchange, Gateway, Payer } from '../../gateway/exchange.ts';
import { tryParse } from '../../lib/json/json.ts';
import { requestId } from '../../lib/text/ids.ts';
import type { Receiver } from '../../server/receive.ts';
import type { Features } from '../features.ts';
import { compacted } from './compact.ts';
import {
  CONVERSATIONS,
  notServed,
  type StoredResponsesOptions,
  storedResponses,
} from './stored-responses.ts';

export interface ResponsesRoutesOptions extends StoredResponsesOptions {
  readonly received: (handle: Gateway) => Receiver;
  /** The same under the limits of the key. `costs`: a budget that is used up refuses it. */
  readonly limited: (
    handle: (exchange: Exchange, payer: Payer) => Promise<Response>,
    costs: boolean,
  ) => Receiver;
  /** Answers `POST /v1/responses`. */
  readonly gateway: Gateway;
  /** `POST /v1/alpha/search`. */
  readonly search: Gateway;
  /** Opens a WebSocket. */
  readonly upgrade: ResponsesOptions['responses']['socket'];
}

export function responsesRoutes({
  received,
  limited,
  gateway,
  search,
  upgrade,
  ...options
}: ResponsesRoutesOptions): ResponsesOptions['responses'] {
  const stored = storedResponses(options);
  const byId = (handle: typeof stored.retrieve) => (request: Request, id: string) =>
    limited((exchange, payer) => handle(exchange, id, payer), false)(request, openaiResponses);
  const refused = (message: string) => received(() => Promise.reject(notServed(message)));
  return {
    search: received(search),
    socket: upgrade,
    retrieve: byId(stored.retrieve),
    remove: byId(stored.remove),
    inputItems: byId(stored.inputItems),
    cancel: byId(stored.cancel),
    inputTokens: limited(stored.counted, true),
    compact: received(compacted({ ...options, gateway })),
    conversations: refused(CONVERSATIONS),
    refuse(status, message) {
      const answer = errorResponse(
        openaiResponses,
        new GatewayError('invalid_request', message, { status }),
        { requestId: requestId(), target: undefined, notes: undefined },
      );
      if (status === 405) answer.headers.set('allow', 'POST');
      return answer;
    },
  };
}

/** Codex' own search. @throws GatewayError invalid_request, not_found where no search is configured */
export async function codexSearch(
  { body: bytes, principal, signal }: Parameters<Gateway>[0],
  payer: Payer,
  features: Pick<Features, 'codexSearch'>,
): Promise<Response> {
  const body = tryParse(new TextDecoder().decode(bytes));
  if (body === undefined) throw invalid('The request body is not valid JSON.');
  const answer = features.codexSearch({ body, principal, signal, payer });
  if (answer === undefined)
    throw new GatewayError('not_found', 'No search is configured.', { code: 'no_search' });
  return Response.json(await answer);
}

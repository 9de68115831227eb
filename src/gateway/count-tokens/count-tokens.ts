/** `count_tokens`: the upstream's own count where it has one, else an estimate that says so. */

import type { Codec } from '../../codecs/codec.ts';
import { asGatewayError } from '../../conversation/errors.ts';
import { Notes } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { checkVendorIdsOf, type ForeignIds } from '../../conversation/vendor-ids.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import { nativeHeaders } from '../../lib/http/native-headers.ts';
import { permittedTargets, requestFacts, route } from '../../routing/index.ts';
import { secretsOf } from '../../upstream/secrets.ts';
import { ClientRequest } from '../client-request.ts';
import { errorResponse } from '../error-response.ts';
import type { Services } from '../reloadable.ts';
import { forwardedHeaders, type OwnHeaders, ownHeaders } from '../response-headers.ts';
import { coolsDown } from '../tries/choose-target.ts';
import { ExchangeSession } from '../tries/exchange-session.ts';
import type { Gateway } from '../types.ts';
import { countedBody } from './count-request.ts';
import { type Count, foreignCount, nativeCount } from './upstream-count.ts';

export interface CountTokensOptions {
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  readonly services: () => Services;
  readonly foreignIds: ForeignIds;
}

/**
 * Answers the count in the client's protocol (`{input_tokens}`, `{totalTokens}`). An estimate carries the note `tokens_estimated`; a target of the client's
 * protocol that has no such endpoint (404, 405), or says that it is elsewhere (3xx), is estimated, too.
 */
export function createTokenCounter(options: CountTokensOptions): Gateway {
  return async (exchange) => {
    const notes = new Notes();
    const own = { requestId: exchange.id, target: undefined, notes } as const;
    try {
      const request = new ClientRequest(exchange.protocol, countedBody(exchange));
      await checkVendorIdsOf(exchange.body, exchange.owner, options.foreignIds);
      const { table, upstream } = options.services();
      const session = new ExchangeSession(exchange, exchange.body);
      const facts = requestFacts({
        model: request.model,
        protocol: exchange.protocol.name,
        stream: false,
        bytes: exchange.body.length,
        headers: exchange.headers,
        affinity: session,
        time: Date.now(),
        request,
      });
      const decision = route(facts, table);
      if (!decision.ok) throw decision.error;
      const { routeName, targets } = decision;
      const permitted = permittedTargets(exchange.principal, request.model, routeName, targets);
      // The request itself would pass over a target that coolsDown, and asking it for a count only takes time.
      const available = permitted.find((routed) => !coolsDown({ session, upstream }, routed));
      const routed = available ?? permitted[0]!;
      const about = { ...own, target: routed.target };
      const estimated = () => {
        notes.add('tokens_estimated', 'input_tokens', 'counted by size, not by the model');
        return countAnswer(exchange.protocol, facts.tokens, about);
      };
      if (available === undefined) return estimated();
      const secrets = secretsOf(table.config);
      const provider = upstream(routed);
      const native = await nativeCount(exchange, request, routed, provider, secrets);
      if (native !== undefined) return vendorAnswer(native, secrets, about);
      const messages = options.protocols['anthropic-messages'];
      const foreign = await foreignCount(exchange, request, routed, provider, messages);
      if (foreign !== undefined) return countAnswer(exchange.protocol, foreign, about);
      return estimated();
    } catch (thrown) {
      return errorResponse(exchange.protocol, asGatewayError(thrown), own);
    }
  };
}

/** A number in the client's protocol. */
export function countAnswer(protocol: Codec, tokens: number, own: OwnHeaders): Response {
  const headers = ownHeaders(FlatHeaders.of({ 'content-type': 'application/json' }), own);
  const body = protocol.encodeCount?.(tokens) ?? { input_tokens: tokens };
  return new Response(JSON.stringify(body), { headers: nativeHeaders(headers) });
}

/** The vendor's own answer, in the client's protocol already. */
function vendorAnswer(
  { status, headers, bytes }: Count,
  secrets: readonly string[],
  own: OwnHeaders,
): Response {
  const all = ownHeaders(forwardedHeaders(headers, secrets), own);
  return new Response(bytes as Uint8Array<ArrayBuffer>, { status, headers: nativeHeaders(all) });
}

/** `count_tokens`: the upstream's own count where it has one, else an estimate that says so. */

import type { Codec } from '../../codecs/codec.ts';
import { asGatewayError } from '../../conversation/errors.ts';
import { Notes } from '../../conversation/notes.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { FlatHeaders } from '../../lib/http/headers.ts';
import { nativeHeaders } from '../../lib/http/native-headers.ts';
import { permittedTargets, requestFacts, route } from '../../routing/index.ts';
import { secretsOf } from '../../upstream/secrets.ts';
import { ClientRequest } from '../client-request.ts';
import { errorResponse } from '../error-response.ts';
import type { Services } from '../reloadable.ts';
import { forwardedHeaders, ownHeaders } from '../response-headers.ts';
import { ExchangeSession } from '../tries/exchange-session.ts';
import type { Gateway } from '../types.ts';
import { foreignCount, nativeCount, withOutputCap } from './upstream-count.ts';

export interface CountTokensOptions {
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  readonly services: () => Services;
}

/**
 * Answers `{input_tokens}`. An estimate carries the note `tokens_estimated`; a target of the client's
 * protocol that has no such endpoint (404, 405), or says that it is elsewhere (3xx), is estimated, too.
 */
export function createTokenCounter(options: CountTokensOptions): Gateway {
  return async (exchange) => {
    const notes = new Notes();
    const own = { requestId: exchange.id, target: undefined, notes } as const;
    try {
      const request = new ClientRequest(exchange.protocol, withOutputCap(exchange.body));
      const { table, upstream } = options.services();
      const facts = requestFacts({
        model: request.model,
        protocol: exchange.protocol.name,
        stream: false,
        bytes: exchange.body.length,
        headers: exchange.headers,
        affinity: new ExchangeSession(exchange, exchange.body),
        time: Date.now(),
        request,
      });
      const decision = route(facts, table);
      if (!decision.ok) throw decision.error;
      const { rule, targets } = decision;
      const routed = permittedTargets(exchange.principal, request.model, rule, targets)[0]!;
      const secrets = secretsOf(table.config);
      const provider = upstream(routed);
      const about = { ...own, target: routed.target };
      const native = await nativeCount(exchange, request, routed, provider, secrets);
      if (native !== undefined) {
        const headers = forwardedHeaders(native.headers, secrets);
        ownHeaders(headers, about);
        return new Response(native.bytes as Uint8Array<ArrayBuffer>, {
          status: native.status,
          headers: nativeHeaders(headers),
        });
      }
      const messages = options.protocols['anthropic-messages'];
      const foreign = await foreignCount(exchange, request, routed, provider, messages);
      if (foreign !== undefined) return counted(foreign, about);
      notes.add('tokens_estimated', 'input_tokens', 'counted by size, not by the model');
      return counted(facts.tokens, about);
    } catch (thrown) {
      return errorResponse(exchange.protocol, asGatewayError(thrown), own);
    }
  };
}

function counted(tokens: number, own: Parameters<typeof ownHeaders>[1]): Response {
  const headers = FlatHeaders.of({ 'content-type': 'application/json' });
  ownHeaders(headers, own);
  return new Response(JSON.stringify({ input_tokens: tokens }), {
    headers: nativeHeaders(headers),
  });
}

/** `count_tokens`: the upstream's own count where it has one, else an estimate that says so. */

import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { Abort } from '../lib/abort.ts';
import type { HeaderFields } from '../lib/header-list.ts';
import { HeaderList } from '../lib/header-list.ts';
import { splice } from '../lib/json.ts';
import { nativeHeaders } from '../lib/native-headers.ts';
import type { Protocol } from '../protocols/protocol.ts';
import { type RoutedTarget, requestFacts, route } from '../routing/index.ts';
import { isRedirect } from '../upstream/classify.ts';
import type { Sent } from '../upstream/upstream.ts';
import { Ask } from './ask.ts';
import { errorResponse } from './error-response.ts';
import type { Exchange } from './exchange.ts';
import type { Gateway, Snapshot } from './gateway.ts';
import { decoded } from './response-body.ts';
import { forwardedHeaders, ownHeaders } from './response-headers.ts';

export interface CountTokensOptions {
  readonly protocols: Readonly<Record<ProtocolName, Protocol>>;
  readonly snapshot: () => Snapshot;
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
      const ask = new Ask(exchange.protocol, withOutputCap(exchange.body));
      const { table, upstream } = options.snapshot();
      const facts = requestFacts({
        model: ask.model,
        protocol: exchange.protocol.name,
        stream: false,
        bytes: exchange.body.length,
        headers: exchange.headers,
        affinity: exchange.id,
        time: Date.now(),
        asked: ask,
      });
      const decision = route(facts, table);
      if (!decision.ok) throw decision.error;
      const routed = decision.targets[0]!;
      const native = await nativeCount(exchange, ask, routed, upstream(routed));
      if (native !== undefined) {
        const headers = forwardedHeaders(native.headers);
        ownHeaders(headers, { ...own, target: routed.target });
        return new Response(native.bytes as Uint8Array<ArrayBuffer>, {
          status: native.status,
          headers: nativeHeaders(headers),
        });
      }
      notes.add('tokens_estimated', 'input_tokens', 'counted by size, not by the model');
      const headers = HeaderList.of({ 'content-type': 'application/json' });
      ownHeaders(headers, { ...own, target: routed.target });
      return new Response(JSON.stringify({ input_tokens: facts.tokens }), {
        headers: nativeHeaders(headers),
      });
    } catch (thrown) {
      return errorResponse(exchange.protocol, asGatewayError(thrown), own);
    }
  };
}

const OUTPUT_CAP = '"max_tokens":1,';

/** A count request has no `max_tokens`, which the codec rightly wants of every other one. */
function withOutputCap(body: Uint8Array): Uint8Array {
  const brace = body.indexOf(0x7b);
  return brace < 0 ? body : splice(body, brace + 1, brace + 1, OUTPUT_CAP);
}

/** The body as the client sent it (but for the model): the cap stands right behind the first brace. */
function withoutOutputCap(body: Uint8Array): Uint8Array {
  const brace = body.indexOf(0x7b);
  return splice(body, brace + 1, brace + 1 + OUTPUT_CAP.length, '');
}

const SECONDS = 30;

interface Counted {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly bytes: Uint8Array;
}

/** The vendor's answer, or undefined where it cannot count. */
async function nativeCount(
  exchange: Exchange,
  ask: Ask,
  routed: RoutedTarget,
  upstream: ReturnType<Snapshot['upstream']>,
): Promise<Counted | undefined> {
  const { target } = routed;
  if (target.protocol !== exchange.protocol.name || target.profile.countTokens === false) {
    return undefined;
  }
  const abort = new Abort();
  const timer = setTimeout(() => abort.abort(), SECONDS * 1000);
  abort.follow(exchange.signal);
  let sent: Sent | undefined;
  try {
    sent = await upstream.send({
      path: `${exchange.protocol.upstreamPath}/count_tokens`,
      search: exchange.search,
      body: withoutOutputCap(ask.bytesFor(target.model)),
      clientHeaders: exchange.headers,
      sameProtocol: true,
      stream: false,
      abort,
    });
    const { status, headers, body } = decoded(sent.answer);
    const bytes = await body.all();
    if (status === 404 || status === 405 || isRedirect(status)) return undefined;
    return { status, headers, bytes };
  } catch (thrown) {
    // No count is worth failing a session for; a broken request still is.
    if (thrown instanceof GatewayError && thrown.kind === 'invalid_request') throw thrown;
    return undefined;
  } finally {
    sent?.release();
    clearTimeout(timer);
    abort.unfollow();
  }
}

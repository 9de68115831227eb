/** `count_tokens`: the upstream's own count where it has one, else an estimate that says so. */

import type { Codec } from '../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import { Notes } from '../conversation/notes.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { FlatHeaders } from '../lib/http/headers.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { isObject, splice, tryParse } from '../lib/json/json.ts';
import { Abort } from '../lib/loop/abort.ts';
import { type RoutedTarget, requestFacts, route } from '../routing/index.ts';
import { isRedirect } from '../upstream/classify.ts';
import { secretsOf } from '../upstream/secrets.ts';
import type { Sent } from '../upstream/upstream.ts';
import { aboutOurKey, maskedError, vendorError } from '../upstream/vendor-error.ts';
import { ClientRequest } from './client-request.ts';
import { errorResponse } from './error-response.ts';
import type { Exchange } from './exchange.ts';
import type { Gateway, Services } from './gateway.ts';
import { decoded } from './response-body.ts';
import { forwardedHeaders, ownHeaders } from './response-headers.ts';

export interface CountTokensOptions {
  readonly protocols: Readonly<Record<ProtocolName, Codec>>;
  readonly snapshot: () => Services;
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
      const ask = new ClientRequest(exchange.protocol, withOutputCap(exchange.body));
      const { table, upstream } = options.snapshot();
      const facts = requestFacts({
        model: ask.model,
        protocol: exchange.protocol.name,
        stream: false,
        bytes: exchange.body.length,
        headers: exchange.headers,
        affinity: exchange.id,
        time: Date.now(),
        request: ask,
      });
      const decision = route(facts, table);
      if (!decision.ok) throw decision.error;
      const routed = decision.targets[0]!;
      const secrets = secretsOf(table.config);
      const native = await nativeCount(exchange, ask, routed, upstream(routed), secrets);
      if (native !== undefined) {
        const headers = forwardedHeaders(native.headers, secrets);
        ownHeaders(headers, { ...own, target: routed.target });
        return new Response(native.bytes as Uint8Array<ArrayBuffer>, {
          status: native.status,
          headers: nativeHeaders(headers),
        });
      }
      const asked = await foreignCount(exchange, ask, routed, upstream(routed), options.protocols);
      if (asked !== undefined) return counted(asked, { ...own, target: routed.target });
      notes.add('tokens_estimated', 'input_tokens', 'counted by size, not by the model');
      return counted(facts.tokens, { ...own, target: routed.target });
    } catch (thrown) {
      return errorResponse(exchange.protocol, asGatewayError(thrown), own);
    }
  };
}

/** Where a protocol's vendors count, below its path. */
const COUNTS: Partial<Record<ProtocolName, string>> = { 'openai-responses': 'input_tokens' };

function counted(tokens: number, own: Parameters<typeof ownHeaders>[1]): Response {
  const headers = FlatHeaders.of({ 'content-type': 'application/json' });
  ownHeaders(headers, own);
  return new Response(JSON.stringify({ input_tokens: tokens }), {
    headers: nativeHeaders(headers),
  });
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
const COUNT_BYTES = 1024 * 1024;

interface Counted {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly bytes: Uint8Array;
}

/** The vendor's answer, or undefined where it cannot count. */
async function nativeCount(
  exchange: Exchange,
  ask: ClientRequest,
  routed: RoutedTarget,
  upstream: ReturnType<Services['upstream']>,
  secrets: readonly string[],
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
      path: `${exchange.protocol.upstreamPath}/${COUNTS[exchange.protocol.name] ?? 'count_tokens'}`,
      search: exchange.search,
      body: withoutOutputCap(ask.bytesFor(target.model)),
      clientHeaders: exchange.headers,
      sameProtocol: true,
      stream: false,
      abort,
    });
    const { status, headers, body } = decoded(sent.answer);
    const bytes = await body.readAll(COUNT_BYTES);
    if (status === 404 || status === 405 || isRedirect(status)) return undefined;
    const text = new TextDecoder().decode(bytes);
    if (status >= 200 && status < 300) {
      return isObject(tryParse(text)) ? { status, headers, bytes } : undefined;
    }
    const said = maskedError(exchange.protocol.decodeError(status, text, headers), secrets);
    throw aboutOurKey(target.provider, vendorError(target.profile, said));
  } catch (thrown) {
    // No count is worth failing a session for; a broken request still is, and so is a vendor's refusal.
    const told =
      thrown instanceof GatewayError && (thrown.fromUpstream || thrown.kind === 'invalid_request');
    if (told) throw thrown;
    return undefined;
  } finally {
    sent?.release();
    clearTimeout(timer);
    abort.unfollow();
  }
}

/** Milliseconds: an estimate is at hand. */
const FOREIGN_MS = 2000;

/**
 * The count of a server that is reached by another protocol and has the Messages count beside it, as its
 * profile says (`countTokens: true`, llama.cpp). Undefined: it has none, or gave none in time.
 */
async function foreignCount(
  exchange: Exchange,
  ask: ClientRequest,
  { target }: RoutedTarget,
  upstream: ReturnType<Services['upstream']>,
  protocols: CountTokensOptions['protocols'],
): Promise<number | undefined> {
  if (target.protocol === exchange.protocol.name || target.profile.countTokens !== true) {
    return undefined;
  }
  const abort = new Abort();
  const timer = setTimeout(() => abort.abort(), FOREIGN_MS);
  abort.follow(exchange.signal);
  let sent: Sent | undefined;
  try {
    const messages = protocols['anthropic-messages'];
    const as = { ...target, protocol: messages.name } as const;
    const body = messages.encodeRequest(ask.conversation, as, new Notes());
    sent = await upstream.send({
      // Base addresses of the other protocols hold the version.
      path: '/messages/count_tokens',
      search: '',
      body: Buffer.from(JSON.stringify({ ...body, model: target.model, max_tokens: undefined })),
      clientHeaders: FlatHeaders.of({}),
      sameProtocol: false,
      stream: false,
      abort,
    });
    const { status, body: answer } = decoded(sent.answer);
    const value = tryParse(new TextDecoder().decode(await answer.readAll()));
    const found = status === 200 && isObject(value) ? value.input_tokens : undefined;
    return typeof found === 'number' && Number.isFinite(found) && found >= 0 ? found : undefined;
  } catch {
    return undefined;
  } finally {
    sent?.release();
    clearTimeout(timer);
    abort.unfollow();
  }
}

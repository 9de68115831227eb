/** Asks an upstream for its own count of a request's tokens. */

import type { Codec } from '../../codecs/codec.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { Notes } from '../../conversation/notes.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../../lib/http/headers.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import { Abort } from '../../lib/loop/abort.ts';
import type { RoutedTarget } from '../../routing/index.ts';
import { isRedirect } from '../../upstream/classify.ts';
import type { SendOptions, Sent, Upstream } from '../../upstream/upstream.ts';
import type { ClientRequest } from '../client-request.ts';
import { shapedWhole, shapeHeaders } from '../parameters.ts';
import { refusalError } from '../read-refusal.ts';
import { decoded } from '../response-body.ts';
import type { Exchange } from '../types.ts';
import { countRequest } from './count-request.ts';

/** The native count is the better one, and worth some time; the other one only replaces an estimate. */
const NATIVE_MS = 30_000;
const FOREIGN_MS = 2000;
const COUNT_BYTES = 1024 * 1024;

export interface Count {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly bytes: Uint8Array;
}

/** The vendor's answer, or undefined where it cannot count. */
export async function nativeCount(
  exchange: Exchange,
  request: ClientRequest,
  { target }: RoutedTarget,
  upstream: Upstream,
  secrets: readonly string[],
): Promise<Count | undefined> {
  const { protocol } = exchange;
  if (target.protocol !== protocol.name || target.profile.countTokens === false) return undefined;
  try {
    const asked = shapedWhole(request, target, new Notes());
    const { status, headers, bytes } = await send(exchange, upstream, NATIVE_MS, {
      ...countRequest(protocol, asked, target.model),
      search: exchange.search,
      clientHeaders: shapeHeaders(exchange.headers, target, new Notes(), request),
      sameProtocol: true,
    });
    if (status === 404 || status === 405 || isRedirect(status)) return undefined;
    if (status >= 200 && status < 300) {
      const text = new TextDecoder().decode(bytes);
      return isObject(tryParse(text)) ? { status, headers, bytes } : undefined;
    }
    throw refusalError(protocol, target, { status, headers, bytes }, secrets);
  } catch (thrown) {
    // A session should not fail for want of a count; but a broken request and a vendor's refusal are answers.
    const isAnswer =
      thrown instanceof GatewayError && (thrown.fromUpstream || thrown.kind === 'invalid_request');
    if (isAnswer) throw thrown;
    return undefined;
  }
}

/**
 * The count of a server that is reached by another protocol and has the Messages count beside it, as its
 * profile says (`countTokens: true`, llama.cpp). Undefined: it has none, or gave none in time.
 */
export async function foreignCount(
  exchange: Exchange,
  request: ClientRequest,
  { target }: RoutedTarget,
  upstream: Upstream,
  messages: Codec,
): Promise<number | undefined> {
  if (target.protocol === exchange.protocol.name || target.profile.countTokens !== true) {
    return undefined;
  }
  try {
    const as = { ...target, protocol: messages.name } as const;
    const body = messages.encodeRequest(request.conversation, as, new Notes());
    const { status, bytes } = await send(exchange, upstream, FOREIGN_MS, {
      // Base addresses of the other protocols hold the version.
      path: '/messages/count_tokens',
      search: '',
      body: Buffer.from(JSON.stringify({ ...body, model: target.model, max_tokens: undefined })),
      clientHeaders: FlatHeaders.of({}),
      sameProtocol: false,
    });
    const value = tryParse(new TextDecoder().decode(bytes));
    const count = status === 200 && isObject(value) ? value.input_tokens : undefined;
    return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? count : undefined;
  } catch {
    return undefined;
  }
}

/** An answer of any status, read whole. @throws when none came in time */
async function send(
  exchange: Exchange,
  upstream: Upstream,
  ms: number,
  options: Omit<SendOptions, 'stream' | 'abort'>,
): Promise<Count> {
  const abort = new Abort();
  const timer = setTimeout(() => abort.abort(), ms);
  abort.follow(exchange.signal);
  let sent: Sent | undefined;
  try {
    sent = await upstream.send({ ...options, stream: false, abort });
    const { status, headers, body } = decoded(sent.answer);
    return { status, headers, bytes: await body.readAll(COUNT_BYTES) };
  } finally {
    sent?.release();
    clearTimeout(timer);
    abort.unfollow();
  }
}

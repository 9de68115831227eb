/** Asks a provider for vectors, and counts what that costs. */

import type { Payer, TryAccount, TryStart } from '../../conversation/account/payer.ts';
import { asGatewayError, GatewayError } from '../../conversation/errors.ts';
import { estimatedTokens } from '../../conversation/usage.ts';
import { usageOf } from '../../endpoints/usage.ts';
import { decoded } from '../../gateway/response-body.ts';
import { endFailedTry, endOf } from '../../gateway/tries/try-account.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { Abort } from '../../lib/loop/abort.ts';
import { readFirst } from '../../upstream/transport.ts';
import type { Upstream } from '../../upstream/upstream.ts';

const EMBEDDINGS_BYTES = 64 * 2 ** 20;

export interface EmbeddingsRequest {
  readonly upstream: Upstream;
  /** As the vendor spells it. */
  readonly model: string;
  readonly body: JsonObject;
  readonly signal: AbortSignal;
  readonly payer: Payer;
}

/** @throws GatewayError for whatever is no answer in JSON */
export async function postEmbeddings(request: EmbeddingsRequest): Promise<Json> {
  const bytes = Buffer.from(JSON.stringify(request.body));
  const account = await request.payer.beginTry(startOf(request, bytes.length));
  const abort = new Abort();
  abort.follow(request.signal);
  try {
    return await post(request.upstream, bytes, abort, account);
  } catch (thrown) {
    endFailedTry(account, endOf(asGatewayError(thrown)));
    throw thrown;
  } finally {
    abort.unfollow();
  }
}

async function post(
  upstream: Upstream,
  bytes: Uint8Array,
  abort: Abort,
  account: TryAccount,
): Promise<Json> {
  const sent = await upstream.send({
    path: '/embeddings',
    search: '',
    body: bytes,
    clientHeaders: new Headers(),
    sameProtocol: false,
    stream: false,
    abort,
  });
  try {
    const { status, body } = decoded(sent.answer);
    account.answered(status);
    const chunks: Uint8Array[] = [];
    await readFirst(body, EMBEDDINGS_BYTES, (chunk) => chunks.push(chunk));
    const answer = tryParse(new TextDecoder().decode(Buffer.concat(chunks)));
    const ok = status >= 200 && status < 300 && answer !== undefined;
    const reported = isObject(answer) ? answer.usage : undefined;
    const usage = isObject(reported) ? usageOf(reported) : undefined;
    endFailedTry(account, ok ? 'done' : 'error', usage);
    if (ok) return answer;
    throw new GatewayError(
      'upstream',
      `The embeddings endpoint of ${upstream.config.name} answered ${status}${reasonIn(answer)}.`,
      status >= 200 && status < 300 ? {} : { status },
    );
  } finally {
    sent.release();
  }
}

const startOf = ({ upstream, model }: EmbeddingsRequest, bytes: number): TryStart => {
  const { name, protocol, profile } = upstream.config;
  return {
    target: { provider: name, model, protocol, profile },
    model,
    upstreamKey: undefined,
    hop: 1,
    attempt: 1,
    stream: false,
    inputTokens: estimatedTokens(bytes),
    maxOutputTokens: 0,
    serviceTier: undefined,
  };
};

function reasonIn(answer: Json | undefined): string {
  const error = isObject(answer) ? answer.error : undefined;
  const message = isObject(error) ? error.message : error;
  return typeof message === 'string' ? `: ${message.slice(0, 200)}` : '';
}

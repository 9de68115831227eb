/** Tells an endpoint's answer from what only looks like one. */

import type { Codec } from '../codecs/codec.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import { TargetError } from '../upstream/target-error.ts';
import type { UpstreamAnswer } from '../upstream/transport.ts';
import { vendorError } from '../upstream/vendor-error.ts';

export interface WholeAnswer {
  readonly target: Target;
  readonly protocol: Codec;
  readonly answer: Pick<UpstreamAnswer, 'status' | 'headers'>;
  readonly body: Buffer;
  readonly secrets: readonly string[];
}

/** @throws GatewayError for an empty answer, a web page, broken JSON, and an error with a status of success */
export function checkWhole({ target, protocol, answer, body, secrets }: WholeAnswer): void {
  const { provider, profile } = target;
  const type = answer.headers.get('content-type') ?? '';
  if (body.length === 0 && answer.status !== 204) {
    throw new TargetError('once', 'upstream', `Provider ${provider} sent an empty answer.`);
  }
  if (/^text\/html\b/i.test(type)) {
    throw new GatewayError('upstream', `Provider ${provider} answered with a web page.`);
  }
  if (!type.includes('json')) return;
  const text = maskLiterals(body.toString(), secrets);
  const value = tryParse(text);
  if (value === undefined) {
    throw new GatewayError('upstream', `Provider ${provider} sent JSON that cannot be read.`);
  }
  if (!isObject(value) || !isObject(value.error)) return;
  throw vendorError(profile, protocol.decodeError(502, text, answer.headers));
}

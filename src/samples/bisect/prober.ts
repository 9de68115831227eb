/** Sends the candidates of a bisection and reports whether each fails like the recorded request. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Codec } from '../../codecs/codec.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { InProcessGateway } from '../in-process-gateway.ts';
import { type RequestOutcome, sameFailure } from '../replay/outcome.ts';
import { type SendableRequest, type SendResult, send } from '../replay/send.ts';
import type { Verdict } from './types.ts';

export interface ProberOptions {
  readonly gateway: InProcessGateway;
  readonly protocol: Codec;
  readonly like: Omit<SendableRequest, 'body'>;
  /** The bytes to send for a candidate. */
  readonly bytes: (body: JsonObject) => Uint8Array;
  /** The failure to reproduce; undefined: the first one that occurs. */
  readonly recorded: RequestOutcome | undefined;
  readonly signal: AbortSignal;
}

/** Longest pause after a rate limit, in seconds. */
const MAX_PAUSE = 30;
const MAX_PAUSES = 4;

export class Prober {
  readonly #options: ProberOptions;
  /** The latest answer. */
  last: SendResult | undefined;
  /** The failure to reproduce, once it is known. */
  wanted: RequestOutcome | undefined;
  /** A failure of another kind, the first one seen. */
  other: RequestOutcome | undefined;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.wanted = options.recorded;
  }

  async probe(body: JsonObject): Promise<Verdict> {
    const bytes = this.#options.bytes(body);
    const sent = await sendWaitingOutLimits(this.#options, bytes, this.wanted?.status === 429);
    this.last = sent;
    if (sent.failure === undefined) return 'passes';
    this.wanted ??= sent;
    if (sameFailure(this.wanted, sent)) return 'same';
    this.other ??= sent;
    return 'other';
  }
}

/** A rate limit says nothing about the candidate: waits and sends it again. */
async function sendWaitingOutLimits(
  options: ProberOptions,
  body: Uint8Array,
  limited: boolean,
): Promise<SendResult> {
  const { gateway, protocol, like, signal } = options;
  for (let pause = 1; ; pause++) {
    const sent = await send(gateway, protocol, { ...like, body }, signal);
    if (limited || sent.status !== 429 || pause > MAX_PAUSES) return sent;
    await sleep(Math.min(MAX_PAUSE, sent.retryAfter ?? 2 ** pause) * 1000, undefined, {
      signal,
    });
  }
}

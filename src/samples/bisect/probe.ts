/** One probe of a bisection: sends a candidate and says whether it fails as the recorded request did. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Codec } from '../../codecs/codec.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { type RequestOutcome, sameFailure } from '../replay/outcome.ts';
import { type SendableRequest, type SendResult, send } from '../replay/send.ts';
import type { InProcessGateway } from '../replay/tools.ts';
import type { Verdict } from './types.ts';

export interface ProberOptions {
  readonly gateway: InProcessGateway;
  readonly protocol: Codec;
  readonly like: Omit<SendableRequest, 'body'>;
  /** Puts the candidate in the form in which it is sent. */
  readonly bytes: (body: JsonObject) => Uint8Array;
  /** The failure that is looked for; undefined: the first one that comes. */
  readonly recorded: RequestOutcome | undefined;
  readonly signal: AbortSignal;
}

export interface Prober {
  probe(body: JsonObject): Promise<Verdict>;
  /** The latest answer. */
  readonly last: SendResult | undefined;
  /** The failure that is looked for, once it is known. */
  readonly wanted: RequestOutcome | undefined;
  /** A failure of another kind, the first one seen. */
  readonly other: RequestOutcome | undefined;
}

/** Longest pause that a vendor may ask for, in seconds. */
const PATIENCE = 30;
const PAUSES = 4;

export function createProber(options: ProberOptions): Prober {
  let last: SendResult | undefined;
  let wanted = options.recorded;
  let other: RequestOutcome | undefined;
  return {
    async probe(body) {
      const sent = await sendWaitingOutLimits(options, options.bytes(body), wanted?.status === 429);
      last = sent;
      if (sent.failure === undefined) return 'passes';
      wanted ??= sent;
      if (sameFailure(wanted, sent)) return 'same';
      other ??= sent;
      return 'other';
    },
    get last() {
      return last;
    },
    get wanted() {
      return wanted;
    },
    get other() {
      return other;
    },
  };
}

/** A rate limit says nothing of the candidate: it is waited for and asked again. */
async function sendWaitingOutLimits(
  options: ProberOptions,
  body: Uint8Array,
  limited: boolean,
): Promise<SendResult> {
  const { gateway, protocol, like, signal } = options;
  for (let pause = 1; ; pause++) {
    const sent = await send(gateway, protocol, { ...like, body }, signal);
    if (limited || sent.status !== 429 || pause > PAUSES) return sent;
    await sleep(Math.min(PATIENCE, sent.retryAfter ?? 2 ** pause) * 1000, undefined, { signal });
  }
}

/** One probe of a bisection: sends a candidate and says whether it fails as the recorded request did. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Codec } from '../../codecs/codec.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { type Outcome, sameFailure } from '../replay/outcome.ts';
import { type Sendable, type Sent, send } from '../replay/send.ts';
import type { InProcessGateway } from '../replay/tools.ts';
import type { Verdict } from './types.ts';

export interface AskingOptions {
  readonly gateway: InProcessGateway;
  readonly protocol: Codec;
  readonly like: Omit<Sendable, 'body'>;
  /** Puts the candidate in the form in which it is sent. */
  readonly bytes: (body: JsonObject) => Uint8Array;
  /** The failure that is looked for; undefined: the first one that comes. */
  readonly recorded: Outcome | undefined;
  readonly signal: AbortSignal;
}

export interface Asking {
  ask(body: JsonObject): Promise<Verdict>;
  /** The latest answer. */
  readonly last: Sent | undefined;
  /** The failure that is looked for, once it is known. */
  readonly wanted: Outcome | undefined;
  /** A failure of another kind, the first one seen. */
  readonly other: Outcome | undefined;
}

/** Longest pause that a vendor may ask for, in seconds. */
const PATIENCE = 30;
const PAUSES = 4;

export function asking(options: AskingOptions): Asking {
  let last: Sent | undefined;
  let wanted = options.recorded;
  let other: Outcome | undefined;
  return {
    async ask(body) {
      const sent = await patiently(options, options.bytes(body), wanted?.status === 429);
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
async function patiently(
  options: AskingOptions,
  body: Uint8Array,
  limited: boolean,
): Promise<Sent> {
  const { gateway, protocol, like, signal } = options;
  for (let pause = 1; ; pause++) {
    const sent = await send(gateway, protocol, { ...like, body }, signal);
    if (limited || sent.status !== 429 || pause > PAUSES) return sent;
    await sleep(Math.min(PATIENCE, sent.retryAfter ?? 2 ** pause) * 1000, undefined, { signal });
  }
}

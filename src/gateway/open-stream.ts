/** Reads a stream until it has said something: before that a failure costs only another try. */

import { GatewayError } from '../conversation/errors.ts';
import { Fold } from '../conversation/fold.ts';
import type { Digest } from '../protocols/protocol.ts';
import { remedyForError } from '../upstream/classify.ts';
import type { Answer, Failed } from './answer.ts';
import { isNatural } from './answer-watch.ts';
import type { Reading } from './attempt.ts';
import type { Lane, Output } from './lane.ts';
import { RelayLane } from './relay-lane.ts';
import { TranslateLane } from './translate-lane.ts';

/** The lane for this answer: bytes, when the protocol is the client's and no interceptor is armed. */
export function chooseLane(reading: Reading): Lane {
  const { protocol, ask, prepared, client, common } = reading;
  if (common.same && prepared.interceptors.length === 0) {
    return new RelayLane(protocol, prepared.context, client);
  }
  const context = client();
  return new TranslateLane({
    decoder: protocol.decodeStream(prepared.context),
    encoder: ask.protocol.encodeStream(context),
    interceptors: prepared.interceptors,
    sameProtocol: common.same,
    fold: reading.keepsAnswer ? { fold: new Fold(), client: context } : undefined,
  });
}

export async function openStream(reading: Reading): Promise<Answer> {
  const { source, common } = reading;
  const lane = chooseLane(reading);
  const first: Output[] = [];
  for (;;) {
    const chunks = await source.next();
    if (chunks === undefined) break;
    for (const chunk of chunks) first.push(lane.push(chunk));
    if (lane.error !== undefined && !lane.semantic) {
      source.cancel();
      return fault(lane.error, common);
    }
    if (lane.semantic) return { kind: 'stream', ...common, lane, first, source };
  }
  first.push(lane.end());
  const { digest } = lane;
  const error = digest.error ?? emptyOrCut(digest, common.target.provider);
  if (error !== undefined) return fault(error, common);
  return { kind: 'stream', ...common, lane, first, source: undefined };
}

/**
 * What is wrong with an answer that ended: cut off, or ended although nothing (or only reasoning) was
 * said. A vendor that gives a reason other than a natural stop is believed.
 */
export function emptyOrCut(digest: Digest, provider: string): GatewayError | undefined {
  if (!digest.complete) {
    return new GatewayError(
      'upstream',
      `The connection to provider ${provider} ended before the answer was complete.`,
    );
  }
  if (digest.answered ?? digest.semantic) return undefined;
  if (!isNatural(digest.finish)) return undefined;
  return new GatewayError(
    'upstream',
    digest.semantic
      ? `Provider ${provider} reasoned, but answered nothing.`
      : `Provider ${provider} answered with nothing at all.`,
  );
}

export function fault(error: GatewayError, common: Reading['common']): Failed {
  const { target, notes } = common;
  return { kind: 'failed', error, remedy: remedyForError(error), target, notes };
}

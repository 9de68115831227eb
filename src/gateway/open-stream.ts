/** Reads a stream until it has said something: before that a failure costs only another try. */

import { GatewayError } from '../conversation/errors.ts';
import { Fold } from '../conversation/fold.ts';
import type { Digest } from '../protocols/protocol.ts';
import { remedyForError } from '../upstream/classify.ts';
import { vendorError } from '../upstream/vendor-error.ts';
import type { Answer, Failed } from './answer.ts';
import { isNatural } from './answer-watch.ts';
import type { Reading } from './attempt.ts';
import type { Lane, Output } from './lane.ts';
import { RelayLane } from './relay-lane.ts';
import { type ClientSide, TranslateLane } from './translate-lane.ts';

/** The lane for this answer: bytes, when the protocol is the client's and no interceptor is armed. */
export function chooseLane(reading: Reading): Lane {
  const { prepared, client, common } = reading;
  const { protocol, hop } = reading.attempt;
  if (common.same && prepared.interceptors.length === 0 && hop.number === 1) {
    return new RelayLane(protocol, prepared.context, client);
  }
  return translateLane(reading, common.same && hop.number === 1);
}

export function translateLane(reading: Reading, keepsBytes: boolean): TranslateLane {
  const { prepared } = reading;
  const { protocol, hop } = reading.attempt;
  return new TranslateLane({
    decoder: protocol.decodeStream(prepared.context),
    interceptors: prepared.interceptors,
    client: hop.client ?? clientSide(reading),
    keepsBytes,
    continues: hop.client !== undefined,
  });
}

function clientSide({ attempt: { ask, keepsAnswer }, client }: Reading): ClientSide {
  const encoder = ask.protocol.encodeStream(client);
  return { encoder, context: client, fold: keepsAnswer ? new Fold() : undefined };
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
    if (lane.failure !== undefined && !lane.semantic) throw lane.failure;
    if (lane.semantic) return { kind: 'stream', ...common, lane, first, source };
  }
  first.push(lane.end());
  const error = lane.next === undefined ? failureOf(lane.digest, common) : undefined;
  if (error !== undefined) return fault(error, common);
  return { kind: 'stream', ...common, lane, first, source: undefined };
}

const failureOf = (digest: Digest, { target }: Reading['common']) =>
  digest.error ?? emptyOrCut(digest, target.provider);

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

/** A failure inside a 200, by what the vendor's codes mean. */
export function fault(said: GatewayError, common: Reading['common']): Failed {
  const { target, notes } = common;
  const error = vendorError(target.profile, said);
  return { kind: 'failed', error, remedy: remedyForError(error), target, notes };
}

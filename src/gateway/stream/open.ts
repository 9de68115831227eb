/** Reads a stream until it has said something: before that a failure costs only another try. */

import type { Digest } from '../../codecs/codec.ts';
import { GatewayError } from '../../conversation/errors.ts';
import { Fold } from '../../conversation/fold.ts';
import { madeLarge } from '../../lib/loop/large-garbage.ts';
import { othersTurn } from '../../lib/loop/tick-end.ts';
import { remedyForError } from '../../upstream/classify.ts';
import { TargetError } from '../../upstream/target-error.ts';
import { aboutOurKey, maskedError, vendorError } from '../../upstream/vendor-error.ts';
import { asksForJob } from '../client-request.ts';
import type { FailedOutcome, Outcome } from '../outcome.ts';
import type { Reading } from '../types.ts';
import { isNatural } from './answer-progress.ts';
import { withFastPath } from './fast/fast-translator.ts';
import { Passthrough } from './passthrough.ts';
import type { ClientSide, Output, StreamPipeline } from './pipeline.ts';
import { PreviousResponsePipeline } from './previous-response.ts';
import { type Bounds, frameLimit } from './quiet-bytes.ts';
import { Translator, type TranslatorOptions } from './translator.ts';

/** The pipeline for this answer: bytes, if the protocol is the client's and no interceptor is armed. */
export function choosePipeline(reading: Reading): StreamPipeline {
  const pipeline = passthroughOrTranslator(reading);
  const { previous } = reading.prepared;
  const edit = reading.attempt.protocol.withPrevious;
  if (previous === undefined || edit === undefined) return pipeline;
  const limit = frameLimit(boundsOf(reading));
  return new PreviousResponsePipeline(pipeline, (json) => edit(json, previous, 'frame'), limit);
}

function passthroughOrTranslator(reading: Reading): StreamPipeline {
  const { prepared, client, common } = reading;
  const { protocol, hop } = reading.attempt;
  const preserveBytes = common.same && hop.number === 1;
  if (preserveBytes && prepared.interceptors.length === 0) {
    return new Passthrough(protocol, prepared.context, client, boundsOf(reading));
  }
  const options = translatorOptions(reading, preserveBytes);
  return withFastPath(new Translator(options), options);
}

export const boundsOf = ({ attempt: { upstream, secrets }, common }: Reading): Bounds => ({
  secrets,
  provider: common.target.provider,
  limits: upstream.config.answers,
  contentMs: upstream.config.timeouts.contentMs,
});

export function translatorOptions(reading: Reading, preserveBytes: boolean): TranslatorOptions {
  const { prepared } = reading;
  const { protocol, hop } = reading.attempt;
  return {
    decoder: protocol.decodeStream(prepared.context),
    interceptors: prepared.interceptors,
    client: hop.client ?? clientSide(reading),
    preserveBytes,
    continues: hop.client !== undefined,
    bounds: boundsOf(reading),
  };
}

function clientSide({ attempt: { ask, keepsAnswer }, client }: Reading): ClientSide {
  const encoder = ask.protocol.encodeStream(client);
  const fold = keepsAnswer ? new Fold() : undefined;
  return { encoder, context: client, fold, tells: ask.protocol.tellsItem };
}

/** Bytes that say nothing, looked through between two turns of the event loop. */
const SLICE = 128 * 1024;
const SLICES_COUNTED = 8;

export async function openStream(reading: Reading): Promise<Outcome> {
  const { source, common } = reading;
  const lane = choosePipeline(reading);
  const first: Output[] = [];
  // A job runs, and is paid for, from the vendor's first word on: no other try, and the client needs its id.
  let job: boolean | undefined;
  let looked = 0;
  let slices = 0;
  for (;;) {
    const chunks = await source.next();
    if (chunks === undefined) break;
    for (const chunk of chunks) {
      looked += chunk.length;
      if (looked > SLICE) {
        // The next one is there already where a vendor floods: nobody else would have a turn between them.
        await othersTurn();
        looked = 0;
        if (++slices % SLICES_COUNTED === 0) madeLarge(SLICE * SLICES_COUNTED);
      }
      const out = lane.push(chunk);
      if (out.length > 0) first.push(out);
    }
    if (lane.error !== undefined && !lane.semantic) {
      source.cancel();
      return fault(lane.error, reading);
    }
    if (lane.failure !== undefined && !lane.semantic) throw lane.failure;
    if (lane.semantic) return { kind: 'stream', ...common, lane, first, source };
    if (first.length === 0 || !common.same) continue;
    job ??= asksForJob(reading.attempt.ask);
    if (job) return { kind: 'stream', ...common, lane, first, source };
  }
  first.push(lane.end());
  const error = lane.next === undefined ? failureOf(lane.digest, common) : undefined;
  if (error !== undefined) return fault(error, reading);
  return { kind: 'stream', ...common, lane, first, source: undefined };
}

const failureOf = (digest: Digest, { target }: Reading['common']) =>
  digest.error ?? incompleteAnswerError(digest, target.provider);

/**
 * What is wrong with an answer that ended: cut off, or ended although nothing (or only reasoning) was
 * said. A vendor that gives a reason other than a natural stop is believed.
 */
export function incompleteAnswerError(digest: Digest, provider: string): GatewayError | undefined {
  if (!digest.complete) {
    return new GatewayError(
      'upstream',
      `The connection to provider ${provider} ended before the answer was complete.`,
    );
  }
  if (digest.answered ?? digest.semantic) return undefined;
  if (!isNatural(digest.finish)) return undefined;
  // The same request is likely to be answered in the same way, here as from the client.
  return new TargetError(
    'once',
    'upstream',
    digest.semantic
      ? `Provider ${provider} reasoned, but answered nothing.`
      : `Provider ${provider} answered with nothing at all.`,
    { retryable: false },
  );
}

/** A failure inside a 200, by what the vendor's codes mean. */
export function fault(said: GatewayError, { common, attempt }: Reading): FailedOutcome {
  const { target, notes } = common;
  const meant = vendorError(target.profile, maskedError(said, attempt.secrets ?? []));
  const error = aboutOurKey(target.provider, meant);
  return { kind: 'failed', error, remedy: remedyForError(meant), target, notes };
}

/** Reads a stream until the answer has begun: before that a failure costs only another attempt. */

import type { Digest } from '../../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../../conversation/errors.ts';
import { madeLarge } from '../../lib/loop/large-garbage.ts';
import { othersTurn } from '../../lib/loop/steps.ts';
import { remedyForError } from '../../upstream/classify.ts';
import { repeatsRequest } from '../../upstream/repeated-words.ts';
import { TargetError } from '../../upstream/target-error.ts';
import { aboutModel, aboutOurKey, maskedError, vendorError } from '../../upstream/vendor-error.ts';
import { asksForJob } from '../client-request.ts';
import { endOf, endTry, streamEnd } from '../tries/try-account.ts';
import type { FailedOutcome, Outcome, Reading } from '../types.ts';
import { isNatural } from './answer-progress.ts';
import { choosePipeline } from './choose-pipeline.ts';
import type { Output, StreamPipeline } from './pipeline.ts';

/** Bytes that say nothing, looked through between two turns of the event loop. */
const SLICE = 128 * 1024;
const SLICES_COUNTED = 8;
const NO_DIGEST: Digest = { complete: false, semantic: false };

export async function openStream(reading: Reading): Promise<Outcome> {
  const pipeline = choosePipeline(reading);
  const { source, common, account } = reading;
  const first: Output[] = [];
  // A job runs, and is paid for, from the vendor's first word on: no other try, and the client needs its id.
  let job: boolean | undefined;
  let looked = 0;
  let slices = 0;
  // From the content on: what stands before it says nothing of the answer's length.
  let bytes = 0;
  try {
    for (;;) {
      const more = source.read();
      const chunks = more instanceof Promise ? await more : more;
      if (chunks === undefined) return endedStream(reading, pipeline, first, bytes);
      for (const chunk of chunks) {
        looked += chunk.length;
        if (looked > SLICE) {
          // A vendor that floods has the next chunk ready: without this, other exchanges would get no turn.
          await othersTurn();
          looked = 0;
          if (++slices % SLICES_COUNTED === 0) madeLarge(SLICE * SLICES_COUNTED);
        }
        const out = pipeline.push(chunk);
        if (out.length > 0) first.push(out);
        if (pipeline.semantic) bytes += chunk.length;
      }
      if (pipeline.error !== undefined && !pipeline.semantic) {
        source.cancel();
        return failedAnswer(pipeline.error, reading, pipeline.digest);
      }
      if (pipeline.failure !== undefined && !pipeline.semantic) throw pipeline.failure;
      if (pipeline.semantic) {
        return { kind: 'stream', ...common, pipeline, first, source, account, bytes };
      }
      if (first.length === 0 || !common.same) continue;
      job ??= asksForJob(reading.attempt.request);
      if (job) return { kind: 'stream', ...common, pipeline, first, source, account, bytes };
    }
  } catch (thrown) {
    if (account !== undefined) {
      endTry(account, endOf(asGatewayError(thrown)), pipeline.digest, 0);
    }
    throw thrown;
  }
}

/** The stream is over already. */
function endedStream(
  reading: Reading,
  pipeline: StreamPipeline,
  first: Output[],
  bytes: number,
): Outcome {
  const { common, account } = reading;
  first.push(pipeline.end());
  const { digest } = pipeline;
  const error = pipeline.continuation === undefined ? failureOf(digest, common) : undefined;
  if (account !== undefined) {
    const cut = digest.complete ? undefined : error;
    endTry(account, streamEnd(digest.error, cut), digest, bytes - pipeline.terminalBytes);
  }
  if (error !== undefined) return failedAnswer(error, reading);
  return { kind: 'stream', ...common, pipeline, first, source: undefined };
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
  const what = digest.semantic ? 'reasoned, but answered nothing' : 'answered with nothing at all';
  const why = digest.explanation === undefined ? '.' : `: ${digest.explanation}`;
  // The same request is likely to be answered in the same way, here as from the client.
  return new TargetError('once', 'upstream', `Provider ${provider} ${what}${why}`, {
    retryable: false,
  });
}

/** A failure inside a 200, by what the vendor's codes mean. */
export function failedAnswer(
  given: GatewayError,
  { common, attempt, account, prepared: { body } }: Reading,
  digest: Digest = NO_DIGEST,
): FailedOutcome {
  if (account !== undefined) endTry(account, 'error', digest, 0);
  const { target, notes } = common;
  const meant = vendorError(target.profile, maskedError(given, attempt.secrets ?? []));
  const names = { asked: attempt.request.model, route: attempt.routeName };
  const error = aboutModel(target, names, aboutOurKey(target.provider, meant));
  const { headers, search } = attempt.exchange;
  const repeats = repeatsRequest(meant, { body, headers, search }, 200);
  return { kind: 'failed', error, remedy: remedyForError(meant), target, notes, repeats };
}

/** Vendors' answers about files and batches: the object in them, whether a batch is over, and a path that is not there. */

import { GatewayError } from '../../conversation/errors.ts';
import type { FailedOutcome } from '../../gateway/types.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import type { FormSpool } from '../form/spool.ts';
import type { AnswerOutcome } from '../types.ts';
import type { VendorApi } from './vendor-objects.ts';

export function jsonOf({ first, source, target }: AnswerOutcome): JsonObject {
  const value = source === undefined ? tryParse(Buffer.concat(first).toString()) : undefined;
  if (isObject(value)) return value;
  throw new GatewayError('upstream', `Provider ${target.provider} sent JSON that cannot be read.`);
}

export const noId = ({ target }: AnswerOutcome) =>
  new GatewayError('upstream', `Provider ${target.provider} answered without an id.`);

/** A provider that does not know the path has no such endpoint. */
export function withoutEndpoint(
  failed: FailedOutcome,
  status: number,
  path: string,
): FailedOutcome {
  const { error, target, raw: _, ...rest } = failed;
  // It may also miss the file of the requests, or a model.
  const isMissing = (status === 404 || status === 405) && !/\bfile\b|model/i.test(error.message);
  if (!isMissing || target === undefined) return failed;
  const said = error.fromUpstream && error.message !== '' ? `: ${error.message}` : '.';
  const message = `Provider ${target.provider} has no /v1${path}. It answered ${status}${said}`;
  const own = new GatewayError('not_found', message, {
    code: 'endpoint_not_served',
    retryable: false,
  });
  return { ...rest, target, error: own };
}

const OVER = ['completed', 'failed', 'expired', 'cancelled'];

export const isOver = (object: JsonObject, api: VendorApi): boolean =>
  api === 'anthropic'
    ? object.processing_status === 'ended'
    : OVER.includes(typeof object.status === 'string' ? object.status : '');

export function hasNoAnswers(object: JsonObject, api: VendorApi): boolean {
  if (api === 'openai') return typeof object.output_file_id !== 'string';
  const counts = object.request_counts;
  return isObject(counts) && counts.succeeded === 0;
}

export async function* chunksOf({ first, source }: AnswerOutcome): AsyncGenerator<Uint8Array> {
  yield* first;
  for (;;) {
    const more = await source?.read();
    if (more === undefined) return;
    yield* more;
  }
}

export function streamOf(spool: FormSpool): ReadableStream<Uint8Array> {
  const pieces = spool.read(0, spool.size);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) {
        controller.close();
        await spool.close();
      } else controller.enqueue(value);
    },
    cancel: () => spool.close(),
  });
}

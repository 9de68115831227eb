/** The client's response of an endpoint: the vendor's bytes, whole or as they come, with this gateway's headers. */

import type { TryEnd } from '../conversation/account/payer.ts';
import { departure, type GatewayError } from '../conversation/errors.ts';
import { forwardedHeaders, ownHeaders } from '../gateway/response-headers.ts';
import { endOf } from '../gateway/tries/try-account.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { answerStream } from './answer-stream.ts';
import { MediaTap } from './media.ts';
import type { AnswerOutcome, RunningEndpoint } from './types.ts';

export function answerResponse(
  { exchange, endpoint, summary, secrets }: RunningEndpoint,
  answer: AnswerOutcome,
  onStream: (open: boolean) => void,
): Response {
  const { status, target, notes, first, source, usage, filters, paid } = answer;
  const { recording } = summary;
  const headers = forwardedHeaders(answer.headers, secrets);
  ownHeaders(headers, { requestId: exchange.id, target, notes });
  recording?.clientStart(status, headers);
  const tap = recording && new MediaTap(headers, (bytes) => recording.clientChunk(bytes));
  let bytes = 0;
  const endTry = (ended: TryEnd) => {
    const found = usage.found;
    paid?.end({
      ended,
      usage: found,
      final: found !== undefined,
      content: true,
      unmeasured: found === undefined && endpoint.media === true,
      // Only the text of completions is tokens.
      bytes: endpoint.name === 'completions' ? bytes : 0,
    });
  };
  const end = (error: GatewayError | undefined) => {
    tap?.end();
    const left = error?.status === 499;
    summary.end(left ? 499 : status, usage.found, left ? undefined : error);
  };
  summary.firstByte();
  if (source === undefined) {
    for (const chunk of first) {
      bytes += chunk.length;
      tap?.chunk(chunk);
    }
    endTry('done');
    const { signal } = exchange;
    end(signal.aborted ? departure(signal) : undefined);
    summary.addHeaders(headers, true);
    const body = Buffer.concat(first);
    return new Response(status === 204 ? null : body, { status, headers: nativeHeaders(headers) });
  }
  const isStream = (headers.get('content-type') ?? '').includes('event-stream');
  if (isStream) headers.set('x-accel-buffering', 'no');
  summary.addHeaders(headers, false);
  onStream(true);
  const body = answerStream({
    first,
    source,
    filters,
    fail(error) {
      if (!isStream) return '';
      const { body } = exchange.protocol.encodeError(error, exchange.id);
      return `data: ${JSON.stringify(body)}\n\n`;
    },
    signal: exchange.signal,
    onRead(chunk) {
      bytes += chunk.length;
      usage.push(chunk);
    },
    onChunk: (chunk) => tap?.chunk(chunk),
    outlives: () => paid?.outlives?.() === true,
    onEnd(error, isRead) {
      onStream(false);
      if (!isRead) endTry(error === undefined ? 'done' : endOf(error));
      end(error);
    },
    onRest: () => endTry('client_gone'),
  });
  return new Response(body, { status, headers: nativeHeaders(headers) });
}

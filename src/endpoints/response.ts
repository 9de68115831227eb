/** The client's response of an endpoint: the vendor's bytes, whole or as they come, with this gateway's headers. */

import type { TryEnd } from '../conversation/account/payer.ts';
import { departure, type GatewayError } from '../conversation/errors.ts';
import type { Usage } from '../conversation/usage.ts';
import { forwardedHeaders, ownHeaders } from '../gateway/response-headers.ts';
import { endOf } from '../gateway/tries/try-account.ts';
import { lateBody } from '../lib/http/late-body.ts';
import { nativeHeaders } from '../lib/http/native-headers.ts';
import { maskedError } from '../upstream/vendor-error.ts';
import { answerStream } from './answer-stream.ts';
import { cutOff } from './begin-answer.ts';
import type { ChunkFilter } from './event-filters.ts';
import { MediaTap } from './media.ts';
import type { AnswerOutcome, RunningEndpoint } from './types.ts';

export function answerResponse(
  { exchange, endpoint, summary, secrets }: RunningEndpoint,
  answer: AnswerOutcome,
  onStream: (open: boolean) => void,
): Response {
  const { status, target, notes, first, source, usage, filters, paid } = answer;
  const streamEnd = answer.end;
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
      unmeasured: endpoint.media === true && (found === undefined || hasNoTokens(found)),
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
    const body = filtered(first, filters);
    for (const chunk of first) bytes += chunk.length;
    tap?.chunk(body);
    const said = streamEnd?.error;
    endTry(said === undefined ? 'done' : 'error');
    const { signal } = exchange;
    end(signal.aborted ? departure(signal) : said && maskedError(said, secrets));
    summary.addHeaders(headers, true);
    return new Response(status === 204 ? null : (lateBody(body) as ReadableStream), {
      status,
      headers: nativeHeaders(headers),
    });
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
      streamEnd?.push(chunk);
    },
    checkEnd() {
      if (streamEnd?.isCut === true) throw cutOff(target.provider);
    },
    onChunk: (chunk) => tap?.chunk(chunk),
    outlives: () => paid?.outlives?.() === true,
    onEnd(thrown, isRead) {
      onStream(false);
      // A vendor's own error event has gone out as it came: no failure here, but no success either.
      const said = streamEnd?.error;
      const error = thrown ?? (said && maskedError(said, secrets));
      if (!isRead) endTry(error === undefined ? 'done' : endOf(error));
      end(error);
    },
    onRest: () => endTry('client_gone'),
  });
  return new Response(body, { status, headers: nativeHeaders(headers) });
}

/** The vendor tells what it costs, or how long it is, and no tokens. */
const hasNoTokens = ({ input, unknown, nanoUsd, seconds }: Usage): boolean =>
  (nanoUsd ?? seconds) !== undefined && unknown === 'output' && input === 0;

/** A whole body through its filters. */
function filtered(chunks: readonly Uint8Array[], filters: readonly ChunkFilter[]): Buffer {
  let body: Uint8Array = Buffer.concat(chunks);
  for (const filter of filters) {
    const parts = [filter.push(body), filter.end()];
    body = Buffer.concat(parts.filter((part) => part !== undefined));
  }
  return body as Buffer;
}

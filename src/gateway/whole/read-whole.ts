/** Reads an answer that is not streamed, or that the client does not want streamed. */

import type { Digest } from '../../codecs/codec.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import { ReplyBuilder, replyEvents } from '../../conversation/reply-builder.ts';
import type { Interceptor } from '../../features/feature.ts';
import { Pieces, withoutByteOrderMark } from '../../lib/bytes/bytes.ts';
import { startIdleTimer } from '../../lib/loop/idle-timer.ts';
import { madeLarge } from '../../lib/loop/large-garbage.ts';
import { TargetError, tooMuch } from '../../upstream/target-error.ts';
import { asksForJob } from '../client-request.ts';
import { type Intercepted, intercept } from '../intercept.ts';
import { AnswerProgress } from '../stream/answer-progress.ts';
import { boundsOf, translateWhole } from '../stream/choose-pipeline.ts';
import { failedAnswer, incompleteAnswerError } from '../stream/open.ts';
import { firstNonBlank, QuietLimit } from '../stream/quiet-bytes.ts';
import { END_SILENCE_MS } from '../stream/upstream-body.ts';
import { endTry, wholeEnd } from '../tries/try-account.ts';
import type { Outcome, Reading, WholeOutcome } from '../types.ts';
import { asAsked, encodedReply, foreignJson, wholeReply } from './whole-reply.ts';

/** @throws GatewayError upstream if what came is no answer in the upstream's protocol */
export function wholeAnswer(
  reading: Reading,
  contentType: string,
  status: number,
): Outcome | Promise<Outcome> {
  const bytes = wholeBody(reading);
  return bytes instanceof Promise
    ? readLater(reading, bytes, contentType, status)
    : read(reading, bytes, contentType, status);
}

async function readLater(
  reading: Reading,
  bytes: Promise<Uint8Array>,
  contentType: string,
  status: number,
): Promise<Outcome> {
  return read(reading, await bytes, contentType, status);
}

function read(
  reading: Reading,
  given: Uint8Array,
  contentType: string,
  status: number,
): Outcome | Promise<Outcome> {
  const { common, prepared } = reading;
  const bytes = withoutByteOrderMark(given);
  const { protocol, request, hop } = reading.attempt;
  // Its pieces, its text and its values.
  madeLarge(3 * bytes.length);
  const whole = wholeReply(reading, bytes, contentType);
  const streamed = whole.reply !== undefined;
  const { digest } = whole;
  if (reading.account !== undefined) {
    endTry(reading.account, wholeEnd(digest), digest, bytes.length);
  }
  const { provider } = common.target;
  // What an interceptor may make an answer of (a call in the reasoning), or take for none, is judged behind it.
  const guarded = prepared.interceptors.length > 0 && !isIgnored(prepared.interceptors, digest);
  const sound = guarded ? { ...digest, answered: true } : digest;
  const direct = common.same && !streamed && !request.stream && hop.number === 1;
  // Without a content type the server would make one up for a text.
  const sent = (contentType !== '' && whole.ascii) || bytes;
  const body = direct ? asAsked(reading, sent) : sent;
  const asIs: WholeOutcome = { kind: 'whole', ...common, status, body, digest };
  if (digest.pending !== undefined && digest.error === undefined) {
    // The job runs, and is paid for: the same request once more would be another one.
    const asked = digest.pending === 'background' || asksForJob(request);
    return direct && asked ? asIs : failedAnswer(onlyAJob(provider), reading);
  }
  const foreign = streamed || digest.complete || digest.semantic ? undefined : whole.text;
  const error =
    digest.error ??
    (foreign === undefined
      ? incompleteAnswerError(sound, provider)
      : foreignJson(reading, foreign));
  if (error !== undefined) return failedAnswer(error, reading);
  if (direct && !guarded) return asIs;
  const reply = whole.reply ?? protocol.decodeReply(whole.value, prepared.context);
  if (request.stream) {
    const { pipeline, first } = translateWhole(reading, [...replyEvents(reply)]);
    const { continuation, digest } = pipeline;
    const empty = continuation === undefined ? incompleteAnswerError(digest, provider) : undefined;
    if (empty !== undefined) return failedAnswer(empty, reading);
    return { kind: 'stream', ...common, same: false, pipeline, first, source: undefined };
  }
  // Plain words are the same reply without their events.
  return !guarded && digest.texts !== undefined && hop.number === 1
    ? encodedAnswer(reading, asIs, reply)
    : interceptedAnswer(reading, asIs, reply, direct);
}

/** @param direct the client gets the vendor's own bytes where no interceptor changes anything */
function interceptedAnswer(
  reading: Reading,
  asIs: WholeOutcome,
  reply: Reply,
  direct: boolean,
): Outcome | Promise<Outcome> {
  const { common, prepared } = reading;
  const { hop } = reading.attempt;
  const { digest } = asIs;
  const before = [...replyEvents(reply)];
  const intercepted = intercept(before, prepared.interceptors);
  const judge = ({ events, next }: Intercepted): Outcome => {
    if (next !== undefined) {
      const all = [...(hop.events ?? []), ...events];
      const finish = (all: readonly StreamEvent[]) => finished(reading, asIs, all);
      return { ...asIs, same: false, continuation: { next, events: all, finish } };
    }
    const empty = incompleteAnswerError(
      { ...digest, ...progressOf(events) },
      common.target.provider,
    );
    if (empty !== undefined) return failedAnswer(empty, reading);
    if (direct && events === before) return asIs;
    return finished(reading, asIs, [...(hop.events ?? []), ...events]);
  };
  return intercepted instanceof Promise ? intercepted.then(judge) : judge(intercepted);
}

const onlyAJob = (provider: string): TargetError =>
  new TargetError(
    'never',
    'upstream',
    `Provider ${provider} took the request as a job that is answered later, which cannot be waited for here.`,
    { retryable: false },
  );

/** The answer that these events make, in the client's protocol. */
function finished(
  reading: Reading,
  asIs: WholeOutcome,
  events: readonly StreamEvent[],
): WholeOutcome {
  const fold = new ReplyBuilder();
  for (const event of events) fold.push(event);
  return encodedAnswer(reading, asIs, fold.reply);
}

function encodedAnswer(reading: Reading, asIs: WholeOutcome, reply: Reply): WholeOutcome {
  const body = encodedReply(reading, reply);
  const digest = { ...asIs.digest, usage: reply.usage };
  return { ...asIs, same: false, status: 200, body, digest };
}

/** For speed: does no interceptor want to see this reply? */
const isIgnored = (interceptors: readonly Interceptor[], { texts }: Digest): boolean =>
  texts !== undefined &&
  interceptors.every((interceptor) => interceptor.fast?.ignoresTexts?.(texts) === true);

/** Whether these events hold an answer, and how they end. */
function progressOf(
  events: readonly StreamEvent[],
): Pick<Digest, 'semantic' | 'answered' | 'finish'> {
  const progress = new AnswerProgress();
  for (const event of events) progress.observe(event);
  const { semantic, answered, finish } = progress;
  return { semantic, answered, finish };
}

/** @throws GatewayError if it breaks off, is too large, or is nothing but white space for too long */
export function wholeBody(reading: Reading): Uint8Array | Promise<Uint8Array> {
  const { source, common } = reading;
  const { provider, limits } = boundsOf(reading);
  // With a length the rest follows at once; without one the vendor may keep the line alive for minutes.
  const length = source.hasPeeked ? null : common.headers.get('content-length');
  if (length === null) return bodyOfUnknownLength(reading);
  if (Number(length) <= limits.bytes) return source.readAll();
  source.cancel();
  throw tooMuch(provider, 'an answer', limits.bytes, 'answer_bytes');
}

async function bodyOfUnknownLength(reading: Reading): Promise<Uint8Array> {
  const { source } = reading;
  const pieces = new Pieces();
  let seen = -1;
  let isOver = false;
  const silence = startIdleTimer(END_SILENCE_MS, () => {
    isOver = pieces.size === seen && isWholeAnswer(reading, pieces.joined());
    seen = pieces.size;
    if (isOver) source.cancel();
  });
  try {
    return await readAll(reading, pieces);
  } catch (thrown) {
    if (isOver) return pieces.joined();
    throw thrown;
  } finally {
    silence.stop();
  }
}

/** Is nothing more to come, although the vendor leaves its connection open? */
function isWholeAnswer(reading: Reading, bytes: Uint8Array): boolean {
  try {
    const type = reading.common.headers.get('content-type') ?? '';
    return (
      bytes.length > 0 && wholeReply(reading, withoutByteOrderMark(bytes), type).digest.complete
    );
  } catch {
    return false;
  }
}

async function readAll(reading: Reading, pieces: Pieces): Promise<Uint8Array> {
  const { source } = reading;
  const bounds = boundsOf(reading);
  let quiet: QuietLimit | undefined = new QuietLimit(bounds);
  for (;;) {
    const more = await source.read();
    if (more === undefined) return pieces.joined();
    for (const chunk of more) {
      pieces.push(chunk);
      // Some vendors send blank lines while a request waits for its turn.
      if (quiet !== undefined && firstNonBlank(chunk) >= 0) quiet = undefined;
    }
    const { bytes } = bounds.limits;
    const error =
      pieces.size > bytes
        ? tooMuch(bounds.provider, 'an answer', bytes, 'answer_bytes')
        : quiet?.timeError();
    if (error === undefined) continue;
    madeLarge(pieces.size);
    source.cancel();
    throw error;
  }
}

/** Reads an answer that is not streamed, or that the client does not want streamed. */

import type { Digest } from '../codecs/codec.ts';
import { GatewayError } from '../conversation/errors.ts';
import type { Reply, StreamEvent } from '../conversation/events.ts';
import { Fold, unfold } from '../conversation/fold.ts';
import type { Block } from '../conversation/types.ts';
import type { Interceptor } from '../features/feature.ts';
import { Pieces } from '../lib/bytes/bytes.ts';
import { SseParser } from '../lib/bytes/sse.ts';
import { type Json, parseJson } from '../lib/json/json.ts';
import { madeLarge } from '../lib/loop/large-garbage.ts';
import { TargetError, tooMuch } from '../upstream/target-error.ts';
import { asksForJob } from './client-request.ts';
import { type Intercepted, intercept } from './intercept.ts';
import type { Outcome, WholeOutcome } from './outcome.ts';
import { AnswerProgress } from './stream/answer-progress.ts';
import { boundsOf, fault, incompleteAnswerError, translatorOptions } from './stream/open.ts';
import { firstWord, Quiet } from './stream/quiet-bytes.ts';
import { Translator } from './stream/translator.ts';
import type { Reading } from './types.ts';

const utf8 = new TextDecoder();

/** @throws GatewayError upstream when what came is no answer in the upstream's protocol */
export function wholeAnswer(
  reading: Reading,
  contentType: string,
  status: number,
): Outcome | Promise<Outcome> {
  const { source, common } = reading;
  // With a length the rest follows at once; without one the vendor may keep the line alive for minutes.
  const length = common.headers.get('content-length');
  const { provider, limits } = boundsOf(reading);
  if (length !== null && Number(length) > limits.bytes) {
    source.cancel();
    throw tooMuch(provider, 'an answer', limits.bytes, 'answer_bytes');
  }
  const bytes = length !== null ? source.all() : collected(reading);
  return bytes instanceof Promise
    ? bytes.then((all) => read(reading, all, contentType, status))
    : read(reading, bytes, contentType, status);
}

function read(
  reading: Reading,
  bytes: Uint8Array,
  contentType: string,
  status: number,
): Outcome | Promise<Outcome> {
  const { common, prepared } = reading;
  const { protocol, ask, hop } = reading.attempt;
  // Its pieces, its text and its values.
  madeLarge(3 * bytes.length);
  const streamed = contentType.includes('event-stream');
  const found = streamed ? fromStream(reading, bytes) : fromJson(reading, bytes, contentType);
  const { digest } = found;
  const { provider } = common.target;
  // What an interceptor may make an answer of (a call in the reasoning), or take for none, is judged behind it.
  const guarded = prepared.interceptors.length > 0;
  const sound = guarded ? { ...digest, answered: true } : digest;
  const direct = common.same && !streamed && !ask.stream && hop.number === 1;
  // Without a content type the server would make one up for a text.
  const told = (contentType !== '' && found.ascii) || bytes;
  const body = direct ? withPrevious(reading, told) : told;
  const asIs: WholeOutcome = { kind: 'whole', ...common, status, body, digest };
  if (digest.pending !== undefined && digest.error === undefined) {
    // The job runs, and is paid for: the same request once more would be another one.
    const asked = digest.pending === 'background' || asksForJob(ask);
    return direct && asked ? asIs : fault(onlyAJob(provider), reading);
  }
  const error = digest.error ?? incompleteAnswerError(sound, provider);
  if (error !== undefined) return fault(error, reading);
  if (direct && prepared.interceptors.length === 0) return asIs;
  const { texts } = digest;
  if (direct && texts !== undefined) {
    if (ignoredByAll(prepared.interceptors, texts)) return asIs;
  }
  const reply = found.reply ?? protocol.decodeReply(found.value, prepared.context);
  if (ask.stream) {
    const lane = new Translator(translatorOptions(reading, false));
    const first = [lane.feed([...unfold(reply)]), lane.end()];
    const empty =
      lane.next === undefined ? incompleteAnswerError(lane.digest, provider) : undefined;
    if (empty !== undefined) return fault(empty, reading);
    return { kind: 'stream', ...common, same: false, lane, first, source: undefined };
  }
  const before = [...unfold(reply)];
  const intercepted = intercept(before, prepared.interceptors);
  const judge = ({ events, next }: Intercepted): Outcome => {
    if (next !== undefined) {
      const all = [...(hop.events ?? []), ...events];
      const finish = (told: readonly StreamEvent[]) => finished(reading, asIs, told);
      return { ...asIs, same: false, continuation: { next, events: all, finish } };
    }
    const empty = incompleteAnswerError({ ...digest, ...heard(events) }, provider);
    if (empty !== undefined) return fault(empty, reading);
    if (direct && events === before) return asIs;
    return finished(reading, asIs, [...(hop.events ?? []), ...events]);
  };
  return intercepted instanceof Promise ? intercepted.then(judge) : judge(intercepted);
}

/** The vendor's answer, which names the response before it as the client did. */
function withPrevious({ attempt, prepared }: Reading, body: Uint8Array | string) {
  const { previous } = prepared;
  const edit = attempt.protocol.withPrevious;
  if (previous === undefined || edit === undefined) return body;
  const text = edit(typeof body === 'string' ? body : utf8.decode(body), previous, 'answer');
  return Buffer.from(text);
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
  { attempt, client }: Reading,
  asIs: WholeOutcome,
  told: readonly StreamEvent[],
): WholeOutcome {
  const fold = new Fold();
  for (const event of told) fold.push(event);
  const { reply } = fold;
  const body = JSON.stringify(attempt.ask.protocol.encodeReply(reply, client));
  const digest = { ...asIs.digest, usage: reply.usage };
  return { ...asIs, same: false, status: 200, body, digest };
}

function ignoredByAll(interceptors: readonly Interceptor[], texts: readonly string[]): boolean {
  for (const one of interceptors) if (one.fast?.ignoresTexts?.(texts) !== true) return false;
  return true;
}

/** Whether these events hold an answer, and how they end. */
function heard(events: readonly StreamEvent[]): Pick<Digest, 'semantic' | 'answered' | 'finish'> {
  const watch = new AnswerProgress();
  let finish: Digest['finish'];
  for (const event of events) {
    watch.observe(event);
    if (event.type === 'finish') finish = event.reason;
  }
  return { semantic: watch.semantic, answered: watch.answered, finish };
}

/** @throws GatewayError when it is too much, or nothing but white space for too long */
async function collected(reading: Reading): Promise<Uint8Array> {
  const { source } = reading;
  const bounds = boundsOf(reading);
  const pieces = new Pieces();
  let quiet: Quiet | undefined = new Quiet(bounds);
  for (;;) {
    const more = await source.next();
    if (more === undefined) return pieces.joined();
    for (const chunk of more) {
      pieces.push(chunk);
      // Some vendors send blank lines while a request waits for its turn.
      if (quiet !== undefined && firstWord(chunk) >= 0) quiet = undefined;
    }
    const { bytes } = bounds.limits;
    const error =
      pieces.size > bytes
        ? tooMuch(bounds.provider, 'an answer', bytes, 'answer_bytes')
        : quiet?.lasts();
    if (error === undefined) continue;
    madeLarge(pieces.size);
    source.cancel();
    throw error;
  }
}

interface Found {
  readonly value: Json;
  readonly digest: Digest;
  readonly reply?: Reply;
  /** The very answer, where bytes and characters are the same: a text goes out without another copy. */
  readonly ascii?: string;
}

function fromJson(reading: Reading, bytes: Uint8Array, contentType: string): Found {
  let value: Json;
  const text = utf8.decode(bytes);
  try {
    value = parseJson(text);
  } catch (thrown) {
    const type = contentType.split(';')[0] || 'no content type';
    throw new GatewayError(
      'upstream',
      `Provider ${reading.common.target.provider} answered with something that is not JSON (${type}).`,
      { cause: thrown },
    );
  }
  // A character of more bytes, or a mark for bytes that are none, would be fewer or stand out.
  const ascii = text.length === bytes.length && !text.includes('\ufffd') ? text : undefined;
  return { value, digest: reading.attempt.protocol.digestReply(value), ascii };
}

/** The upstream streamed although nobody asked it to. */
function fromStream(reading: Reading, bytes: Uint8Array): Found {
  const parser = new SseParser();
  const decoder = reading.attempt.protocol.decodeStream(reading.prepared.context);
  const fold = new Fold();
  let error: GatewayError | undefined;
  const take = (events: readonly StreamEvent[]) => {
    for (const event of events) {
      if (event.type === 'error') error = event.error;
      fold.push(event);
    }
  };
  for (const frame of [...parser.push(bytes), ...parser.end()]) take(decoder.push(frame));
  take(decoder.end());
  const { reply } = fold;
  const digest: Digest = {
    complete: fold.complete,
    semantic: reply.blocks.some(says),
    answered: reply.blocks.some((block) => block.type !== 'reasoning' && says(block)),
    usage: reply.usage,
    finish: reply.finish,
    error,
  };
  return { value: null, digest, reply };
}

const says = (block: Block) => !('text' in block) || block.text !== '';

/** The events behind the interceptors; the same list when none of them touched anything. */

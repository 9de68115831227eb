/** Reads the beginning of an endpoint's answer: as far as a failure may still cost only one try. */

import type { AskedUsage, Codec } from '../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import { estimatedTokens } from '../conversation/usage.ts';
import { decoded } from '../gateway/response-body.ts';
import { UpstreamBody } from '../gateway/stream/upstream-body.ts';
import { SseParser } from '../lib/bytes/sse.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import type { RoutedTarget } from '../routing/index.ts';
import type { HopRecording } from '../samples/recording.ts';
import { TargetError, tooMuch } from '../upstream/target-error.ts';
import type { UpstreamAnswer } from '../upstream/transport.ts';
import type { Upstream, UpstreamCall } from '../upstream/upstream.ts';
import { maskedError, vendorError } from '../upstream/vendor-error.ts';
import { EmbeddingFilter, holdsLists } from './embedding-filter.ts';
import { type EmbeddingTry, embeddingAnswer } from './embeddings.ts';
import type { Endpoint } from './endpoint.ts';
import { type ChunkFilter, eventFilters } from './event-filters.ts';
import { MediaTap } from './media.ts';
import { StreamEnd } from './stream-end.ts';
import type { AnswerOutcome } from './types.ts';
import { UsageScan } from './usage.ts';

/** Of an answer that is no stream: what is shorter is known whole before the client gets any of it. */
const WHOLE_BYTES = 256 * 1024;

export interface ArrivedAnswer {
  readonly answer: UpstreamAnswer;
  readonly routed: RoutedTarget;
  readonly protocol: Codec;
  readonly upstream: Upstream;
  readonly notes: Notes;
  readonly abort: Abort;
  readonly call: UpstreamCall;
  readonly recorded: HopRecording | undefined;
  readonly secrets: readonly string[];
  readonly paid: AnswerOutcome['paid'];
  /** Usage that the client does not get. */
  readonly hides: AskedUsage | undefined;
  readonly endpoint: Endpoint;
  /** The answer is read whole, and written in the client's form. */
  readonly embedding?: EmbeddingTry | undefined;
  /** Of the client's request. */
  readonly bytes: number;
  /** As {@link EndpointRequest.wantsBase64}. */
  readonly wantsBase64: boolean;
}

/** @throws GatewayError if the answer breaks off, is empty, or is an error in disguise */
export async function beginAnswer(arrived: ArrivedAnswer): Promise<AnswerOutcome> {
  const { routed, upstream, notes, abort, call, recorded, paid, secrets } = arrived;
  const { target } = routed;
  const { status, headers, body } = decoded(arrived.answer);
  const source = new UpstreamBody(body, {
    provider: target.provider,
    idleMs: upstream.config.timeouts.idleMs,
    abort,
    call,
    recording: recorded && withoutMedia(recorded, headers),
  });
  const type = headers.get('content-type') ?? '';
  const { endpoint, protocol, embedding } = arrived;
  const { bytes: most } = upstream.config.answers;
  const isFile = endpoint.isFile === true;
  const isStream = !isFile && embedding === undefined && type.includes('event-stream');
  const isText = !isFile && !isStream && /json|^text\//i.test(type);
  const opening = isStream ? new StreamOpening(protocol, secrets) : undefined;
  const enough = embedding !== undefined ? most + 1 : isText ? WHOLE_BYTES : 1;
  let first: Uint8Array[] = [];
  let size = 0;
  try {
    let over = false;
    while (!over && (opening === undefined ? size < enough : opening.isOpen)) {
      const more = await source.read();
      over = more === undefined;
      for (const chunk of more ?? []) {
        size += chunk.length;
        if (chunk.length > 0) first.push(chunk);
        opening?.push(chunk);
      }
    }
    if (opening?.error !== undefined) throw vendorError(target.profile, opening.error);
    const end = isStream ? new StreamEnd(endpoint, protocol) : undefined;
    const usage = new UsageScan(endpoint.isTranscript === true);
    if (embedding !== undefined) {
      if (!over) throw tooMuch(target.provider, 'an answer', most, 'answer_bytes');
      const given = Buffer.concat(first);
      checkWhole(arrived, given);
      const answer = embeddingAnswer(given, embedding, () => estimatedFor(arrived));
      if (answer === undefined) throw emptyAnswer(target.provider);
      usage.told = answer.usage;
      first = [answer.body];
    } else if (over) {
      if (!isFile) checkWhole(arrived, Buffer.concat(first));
      for (const chunk of first) {
        usage.push(chunk);
        end?.push(chunk);
      }
      if (end?.isCut === true) throw cutOff(target.provider);
    }
    const filters: ChunkFilter[] = [];
    if (isStream) filters.push(...eventFilters(upstream, secrets, arrived.hides));
    if (arrived.wantsBase64 && first[0] !== undefined && holdsLists(Buffer.concat(first))) {
      notes.add('parameter_mapped', 'encoding_format', 'the vendor gave lists: base64 made here');
      filters.push(new EmbeddingFilter());
    }
    const head = { status, headers, target, notes, upstreamKey: call.key.label };
    const rest = over ? undefined : source;
    return { kind: 'answer', ...head, first, source: rest, usage, end, paid, filters };
  } catch (thrown) {
    source.giveUp(asGatewayError(thrown));
    throw thrown;
  }
}

/** The tokens of a prompt for a client that reads them, where the vendor does not tell them. */
function estimatedFor({ notes, bytes }: ArrivedAnswer): number {
  notes.add('tokens_estimated', 'usage.prompt_tokens', 'the vendor does not tell them');
  return estimatedTokens(bytes);
}

/** The recording of a try, which gets no media. */
function withoutMedia(recorded: HopRecording, headers: UpstreamAnswer['headers']): HopRecording {
  const tap = new MediaTap(headers, (bytes) => recorded.chunk(bytes));
  return {
    connected: () => recorded.connected(),
    start: (status, sent) => recorded.start(status, sent),
    chunk: (chunk) => tap.chunk(chunk),
    end(error) {
      tap.end();
      recorded.end(error);
    },
  };
}

/** The stream of a vendor ended in its middle. */
export const cutOff = (provider: string): GatewayError =>
  new GatewayError(
    'upstream',
    `The connection to provider ${provider} ended before the answer was complete.`,
  );

/** A frame that says that nothing comes is short; images are not. */
const OPENING_BYTES = 16 * 1024;

/** Looks at the first frame: it may be an error, which then costs one try. A comment keeps the client's connection. */
class StreamOpening {
  error: GatewayError | undefined;
  isOpen = true;
  readonly #parser = new SseParser();
  readonly #protocol: Codec;
  readonly #secrets: readonly string[];
  #bytes = 0;

  constructor(protocol: Codec, secrets: readonly string[]) {
    this.#protocol = protocol;
    this.#secrets = secrets;
  }

  push(chunk: Uint8Array): void {
    if (!this.isOpen) return;
    this.#bytes += chunk.length;
    const frames = this.#bytes > OPENING_BYTES ? [] : this.#parser.push(chunk);
    const [said] = frames;
    this.isOpen = said === undefined && this.#bytes <= OPENING_BYTES;
    const failed = said && this.#protocol.digestStream([said]).error;
    this.error = failed && maskedError(failed, this.#secrets);
  }
}

/** Members of which an answer has one, however it wraps it. */
const CONTENT = [
  'data',
  'results',
  'text',
  'choices',
  'output',
  'segments',
  'embeddings',
  'embedding',
  'predictions',
];

/** Endpoints whose answer is the list `data`: an empty one, as where a filter took all images out, is no answer. */
const LISTS = /^(?:embeddings|images-)/;

/**
 * @throws GatewayError for an empty answer, a web page, broken JSON, an error with a status of success, and no vector or image
 */
function checkWhole(
  { routed, protocol, answer, secrets, endpoint }: ArrivedAnswer,
  body: Buffer,
): void {
  const { provider, profile } = routed.target;
  const type = answer.headers.get('content-type') ?? '';
  const mayBeEmpty = endpoint.mayBeEmpty === true && !/json|event-stream/i.test(type);
  if (body.length === 0 && answer.status !== 204 && !mayBeEmpty) throw emptyAnswer(provider);
  if (/^text\/html\b/i.test(type)) {
    throw new GatewayError('upstream', `Provider ${provider} answered with a web page.`);
  }
  if (!type.includes('json')) return;
  const text = maskLiterals(body.toString(), secrets);
  const value = tryParse(text);
  if (value === undefined) {
    throw new GatewayError('upstream', `Provider ${provider} sent JSON that cannot be read.`);
  }
  if (!isObject(value)) return;
  const has = (name: string) => value[name] !== undefined && value[name] !== null;
  if (value.error || !CONTENT.some(has)) {
    const said = protocol.digestReply(value).error;
    if (said !== undefined) throw vendorError(profile, said);
  }
  const { data } = value;
  if (LISTS.test(endpoint.name) && Array.isArray(data) && data.length === 0) {
    throw emptyAnswer(provider);
  }
}

const emptyAnswer = (provider: string): TargetError =>
  new TargetError('once', 'upstream', `Provider ${provider} sent an empty answer.`);

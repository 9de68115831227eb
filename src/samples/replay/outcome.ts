/** The outcome of one request, read from its answer: status, failure, tokens; and whether two failures are the same. */

import type { Codec, Digest, UpstreamContext } from '../../codecs/codec.ts';
import { Notes } from '../../conversation/notes.ts';
import { NO_PROFILE } from '../../conversation/profile-facts.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import { totalInput, totalOutput, type Usage } from '../../conversation/usage.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import type { ReadonlyHeaders } from '../../lib/http/headers.ts';
import { parseJson, tryParse } from '../../lib/json/json.ts';

export interface AnswerFailure {
  /** `error`: reported as one; `cut`: ended early; `empty`: a regular end without an answer. */
  readonly how: 'error' | 'cut' | 'empty';
  readonly kind: string;
  readonly message: string;
  readonly code?: string;
}

export interface RequestOutcome {
  readonly status: number;
  readonly failure: AnswerFailure | undefined;
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** As the answer reports it. */
  readonly usage: Usage | undefined;
}

export interface CompleteAnswer {
  readonly status: number;
  readonly headers: ReadonlyHeaders;
  readonly body: Uint8Array;
  /** The connection broke during the body. */
  readonly reset: boolean;
}

/** What became of a request: an answer is a failure, too, if it was cut off or reports an error in itself. */
export function outcomeOf(protocol: Codec, answered: CompleteAnswer): RequestOutcome {
  const { status, headers, body, reset } = answered;
  const none = { promptTokens: undefined, outputTokens: undefined, usage: undefined };
  const text = () => new TextDecoder().decode(body);
  if (status >= 400) {
    const { kind, message, code } = protocol.decodeError(status, text(), headers);
    return { status, failure: { how: 'error', kind, message, code }, ...none };
  }
  const sse = (headers.get('content-type') ?? '').includes('event-stream');
  const digest = digestOf(protocol, body, sse);
  const { error, usage, finish } = digest;
  const natural = finish === undefined || finish === 'stop' || finish === 'tool-calls';
  const failure: AnswerFailure | undefined =
    error !== undefined
      ? { how: 'error', kind: error.kind, message: error.message, code: error.code }
      : reset || !digest.complete
        ? { how: 'cut', kind: 'cut', message: 'the answer was cut off' }
        : (digest.answered ?? digest.semantic) || !natural
          ? undefined
          : { how: 'empty', kind: 'empty', message: 'the answer is empty' };
  return {
    status,
    failure,
    promptTokens: usage === undefined ? undefined : totalInput(usage),
    outputTokens: usage === undefined ? undefined : totalOutput(usage),
    usage,
  };
}

/** What a codec reads from an answer's body without converting it. @param sse it is an event stream */
export function digestOf(protocol: Codec, body: Uint8Array, sse: boolean): Digest {
  if (!sse) return protocol.digestReply(tryParse(new TextDecoder().decode(body)) ?? null);
  const parser = new SseParser();
  return protocol.digestStream([...parser.push(body), ...parser.end()]);
}

/** Characters of an error message that are compared. */
const COMPARED_CHARACTERS = 2000;

/** A message without what differs between requests: ids, numbers, places. */
const normalized = (message: string) =>
  message
    .slice(0, COMPARED_CHARACTERS)
    .toLowerCase()
    .replace(/\b(?=[0-9a-z_-]*\d)[0-9a-z_-]{8,}\b/g, '#')
    .replace(/\d+/g, '#');

/** Whether both are the same failure: equal status, and equal message or code. */
export function sameFailure(a: RequestOutcome, b: RequestOutcome): boolean {
  const [x, y] = [a.failure, b.failure];
  if (x === undefined || y === undefined) return x === y;
  if (a.status !== b.status || x.how !== y.how) return false;
  if (normalized(x.message) === normalized(y.message)) return true;
  return x.code !== undefined && x.code === y.code && x.kind === y.kind;
}

/** Characters of an answer that are kept; the rest is cut off and counted. */
export const ANSWER_CHARACTERS = 100_000;

const EMPTY: Conversation = {
  model: '',
  system: [],
  turns: [],
  tools: [],
  settings: { stream: false },
};

/**
 * The text of an answer in `protocol`, at most {@link ANSWER_CHARACTERS} characters. Undefined when the
 * answer is an error or cannot be read. A cut stream gives the text up to the cut.
 * @param request the body of the request, in the same protocol: decoders look up tool names in it
 */
export function answerText(
  protocol: Codec,
  request: Uint8Array,
  { status, headers, body }: CompleteAnswer,
): string | undefined {
  if (status >= 400) return undefined;
  const streamed = (headers.get('content-type') ?? '').includes('event-stream');
  try {
    const context = contextOf(protocol, request);
    const blocks = streamed
      ? streamedBlocks(protocol, context, body)
      : protocol.decodeReply(parseJson(new TextDecoder().decode(body)), context).blocks;
    const text = blocks.flatMap(textsOf).join('\n\n');
    const more = text.length - ANSWER_CHARACTERS;
    if (more <= 0) return text;
    return `${text.slice(0, ANSWER_CHARACTERS)}\n… ${more} more characters`;
  } catch {
    return undefined;
  }
}

function contextOf(protocol: Codec, request: Uint8Array): UpstreamContext {
  const target = { provider: '', model: '', protocol: protocol.name, profile: NO_PROFILE };
  let sent = EMPTY;
  try {
    sent = protocol.decodeRequest(tryParse(new TextDecoder().decode(request)) ?? null);
  } catch {
    // The answer can be decoded without its request.
  }
  return { sent, target, notes: new Notes() };
}

function streamedBlocks(
  protocol: Codec,
  context: UpstreamContext,
  body: Uint8Array,
): readonly Block[] {
  const parser = new SseParser();
  const decoder = protocol.decodeStream(context);
  const fold = new ReplyBuilder();
  for (const frame of [...parser.push(body), ...parser.end()]) {
    for (const event of decoder.push(frame)) fold.push(event);
  }
  for (const event of decoder.end()) fold.push(event);
  return fold.reply.blocks;
}

function textsOf(block: Block): readonly string[] {
  switch (block.type) {
    case 'text':
    case 'refusal':
      return block.text === '' ? [] : [block.text];
    case 'tool-call':
      return [`→ ${block.name} ${block.input}`];
    default:
      return [];
  }
}

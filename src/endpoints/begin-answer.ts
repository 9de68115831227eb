/** Reads the beginning of an endpoint's answer: as far as a failure may still cost only one try. */

import type { AskedUsage, Codec } from '../codecs/codec.ts';
import { asGatewayError, GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import type { Target } from '../conversation/target.ts';
import { decoded } from '../gateway/response-body.ts';
import { UpstreamBody } from '../gateway/stream/upstream-body.ts';
import { isObject, tryParse } from '../lib/json/json.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { maskLiterals } from '../lib/text/secret-literals.ts';
import type { RoutedTarget } from '../routing/index.ts';
import type { HopRecording } from '../samples/recording.ts';
import { TargetError } from '../upstream/target-error.ts';
import type { UpstreamAnswer } from '../upstream/transport.ts';
import type { Upstream, UpstreamCall } from '../upstream/upstream.ts';
import { vendorError } from '../upstream/vendor-error.ts';
import { eventFilters } from './event-filters.ts';
import { MediaTap } from './media.ts';
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
  readonly isFile?: boolean | undefined;
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
  const isText = arrived.isFile !== true && /json|^text\/(?!event-stream)/i.test(type);
  const first: Uint8Array[] = [];
  let size = 0;
  try {
    let over = false;
    while (!over && size < (isText ? WHOLE_BYTES : 1)) {
      const more = await source.read();
      over = more === undefined;
      for (const chunk of more ?? []) {
        size += chunk.length;
        if (chunk.length > 0) first.push(chunk);
      }
    }
    if (over && arrived.isFile !== true) {
      const { answer, protocol } = arrived;
      checkWhole({ target, protocol, answer, body: Buffer.concat(first), secrets });
    }
    const usage = new UsageScan();
    if (over) for (const chunk of first) usage.push(chunk);
    const rest = over ? undefined : source;
    const isStream = !over && type.includes('event-stream');
    const filters = isStream ? eventFilters(upstream, secrets, arrived.hides) : [];
    const head = { status, headers, target, notes, upstreamKey: call.key.label };
    return { kind: 'answer', ...head, first, source: rest, usage, paid, filters };
  } catch (thrown) {
    source.giveUp(asGatewayError(thrown));
    throw thrown;
  }
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

interface WholeAnswer {
  readonly target: Target;
  readonly protocol: Codec;
  readonly answer: Pick<UpstreamAnswer, 'status' | 'headers'>;
  readonly body: Buffer;
  readonly secrets: readonly string[];
}

/** @throws GatewayError for an empty answer, a web page, broken JSON, and an error with a status of success */
function checkWhole({ target, protocol, answer, body, secrets }: WholeAnswer): void {
  const { provider, profile } = target;
  const type = answer.headers.get('content-type') ?? '';
  if (body.length === 0 && answer.status !== 204) {
    throw new TargetError('once', 'upstream', `Provider ${provider} sent an empty answer.`);
  }
  if (/^text\/html\b/i.test(type)) {
    throw new GatewayError('upstream', `Provider ${provider} answered with a web page.`);
  }
  if (!type.includes('json')) return;
  const text = maskLiterals(body.toString(), secrets);
  const value = tryParse(text);
  if (value === undefined) {
    throw new GatewayError('upstream', `Provider ${provider} sent JSON that cannot be read.`);
  }
  if (!isObject(value) || !isObject(value.error)) return;
  throw vendorError(profile, protocol.decodeError(502, text, answer.headers));
}

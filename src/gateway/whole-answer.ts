/** Reads an answer that is not streamed, or that the client does not want streamed. */

import { GatewayError } from '../conversation/errors.ts';
import type { Reply, StreamEvent } from '../conversation/events.ts';
import { Fold, unfold } from '../conversation/fold.ts';
import type { Block } from '../conversation/types.ts';
import type { Interceptor } from '../features/feature.ts';
import { type Json, parseJson } from '../lib/json.ts';
import { SseParser } from '../lib/sse.ts';
import type { Digest } from '../protocols/protocol.ts';
import type { Answer } from './answer.ts';
import type { Reading } from './attempt.ts';
import type { Lane, Output, Said } from './lane.ts';
import { emptyOrCut, fault } from './open-stream.ts';

export interface WholeReading extends Reading {
  readonly contentType: string;
  readonly status: number;
}

/** @throws GatewayError upstream when what came is no answer in the upstream's protocol */
export async function wholeAnswer(reading: WholeReading): Promise<Answer> {
  const { source, protocol, ask, common, prepared, client } = reading;
  const chunks: Uint8Array[] = [];
  for (;;) {
    const more = await source.next();
    if (more === undefined) break;
    chunks.push(...more);
  }
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  const streamed = reading.contentType.includes('event-stream');
  const found = streamed ? fromStream(reading, bytes) : fromJson(reading, bytes);
  const { digest } = found;
  const error = digest.error ?? emptyOrCut(digest, common.target.provider);
  if (error !== undefined) return fault(error, common);

  const { interceptors } = prepared;
  const direct = common.same && !streamed && !ask.stream;
  if (direct && interceptors.length === 0) {
    return { kind: 'whole', ...common, status: reading.status, body: bytes, digest };
  }
  const reply = found.reply ?? protocol.decodeReply(found.value, prepared.context);
  const passed = intercept(reply, interceptors);
  if (direct && passed === reply) {
    return { kind: 'whole', ...common, status: reading.status, body: bytes, digest };
  }
  if (!ask.stream) {
    const body = JSON.stringify(ask.protocol.encodeReply(passed, client()));
    return { kind: 'whole', ...common, same: false, status: 200, body, digest };
  }
  const encoder = ask.protocol.encodeStream(client());
  const first: Output[] = [];
  for (const event of unfold(passed)) first.push(encoder.event(event));
  const said: Said = { kind: 'reply', reply: passed, client: client() };
  const lane = finishedLane(digest, said, () => encoder.ping());
  return { kind: 'stream', ...common, same: false, lane, first, source: undefined };
}

interface Found {
  readonly value: Json;
  readonly digest: Digest;
  readonly reply?: Reply;
}

function fromJson(reading: WholeReading, bytes: Uint8Array): Found {
  let value: Json;
  try {
    value = parseJson(new TextDecoder().decode(bytes));
  } catch (thrown) {
    const type = reading.contentType.split(';')[0] || 'no content type';
    throw new GatewayError(
      'upstream',
      `Provider ${reading.common.target.provider} answered with something that is not JSON (${type}).`,
      { cause: thrown },
    );
  }
  return { value, digest: reading.protocol.digestReply(value) };
}

/** The upstream streamed although nobody asked it to. */
function fromStream(reading: WholeReading, bytes: Uint8Array): Found {
  const parser = new SseParser();
  const decoder = reading.protocol.decodeStream(reading.prepared.context);
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

/** The reply behind the interceptors; the same reference when none of them touched anything. */
function intercept(reply: Reply, interceptors: readonly Interceptor[]): Reply {
  if (interceptors.length === 0) return reply;
  const before = [...unfold(reply)];
  let current: readonly StreamEvent[] = before;
  for (const interceptor of interceptors) {
    const next: StreamEvent[] = [];
    for (const event of current) {
      const out = interceptor.event(event);
      if (Array.isArray(out)) next.push(...(out as readonly StreamEvent[]));
      else next.push(out as StreamEvent);
    }
    next.push(...interceptor.end());
    current = next;
  }
  if (current.length === before.length && current.every((event, at) => event === before[at])) {
    return reply;
  }
  const fold = new Fold();
  for (const event of current) fold.push(event);
  return fold.reply;
}

/** A lane whose stream is over: all there was to say is in `first`. */
function finishedLane(digest: Digest, said: Said, ping: () => string): Lane {
  return {
    push: () => '',
    end: () => '',
    semantic: true,
    error: undefined,
    ended: true,
    between: true,
    digest,
    said,
    ping,
    fail: () => '',
  };
}

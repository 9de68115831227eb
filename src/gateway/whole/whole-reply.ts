/** Decodes the body of an answer that was read whole, JSON or a stream. */

import type { Digest } from '../../codecs/codec.ts';
import { GatewayError } from '../../conversation/errors.ts';
import type { Reply, StreamEvent } from '../../conversation/events.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Block } from '../../conversation/types.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { type Json, parseJson } from '../../lib/json/json.ts';
import { printableLine } from '../../lib/text/printable-text.ts';
import { redactText } from '../../lib/text/redact.ts';
import { maskLiterals } from '../../lib/text/secret-literals.ts';
import { isEvents } from '../stream/quiet-bytes.ts';
import { editOf } from '../tries/edit-answer.ts';
import type { Reading } from '../types.ts';

const utf8 = new TextDecoder();

export interface WholeReply {
  readonly value: Json;
  readonly digest: Digest;
  readonly reply?: Reply;
  /** Of JSON: the answer as it came. */
  readonly text?: string;
  /** The answer as a text, if each byte is one character: then it can go out without another copy. */
  readonly ascii?: string;
}

/** The answer in these bytes, JSON or a stream. @throws GatewayError upstream where it is neither */
export const wholeReply = (reading: Reading, bytes: Uint8Array, contentType: string): WholeReply =>
  isEvents(contentType, bytes)
    ? replyFromStream(reading, bytes)
    : replyFromJson(reading, bytes, contentType);

/** An answer that should be JSON. @throws GatewayError upstream where it is not */
function replyFromJson(reading: Reading, bytes: Uint8Array, contentType: string): WholeReply {
  let value: Json;
  const text = utf8.decode(bytes);
  try {
    value = parseJson(text);
  } catch (thrown) {
    const what = notJson(text, contentType);
    throw new GatewayError(
      'upstream',
      `Provider ${reading.common.target.provider} answered with ${what}.`,
      { cause: thrown },
    );
  }
  // A character of several bytes makes the text shorter; broken bytes leave the replacement mark.
  const ascii = text.length === bytes.length && !text.includes('\ufffd') ? text : undefined;
  return { value, digest: reading.attempt.protocol.digestReply(value), text, ascii };
}

function notJson(text: string, contentType: string): string {
  if (text.trim() === '') return 'an empty body';
  const type = contentType.split(';')[0] || 'no content type';
  return type.endsWith('json')
    ? `broken JSON (${text.length} characters)`
    : `something that is not JSON (${type})`;
}

const QUOTED_CHARS = 300;
// Where a secret may begin that a cut at the end of what is quoted would halve.
const MASKED_CHARS = 4096;

/** JSON that is no answer: often a relay's own error with status 200, whose meaning counts. */
export function foreignJson({ attempt, common }: Reading, text: string): GatewayError {
  const { protocol, secrets = [] } = attempt;
  const { kind, code, retryable } = protocol.decodeError(200, text, common.headers);
  const masked = redactText(maskLiterals(text.slice(0, MASKED_CHARS), secrets)).text;
  const { provider } = common.target;
  return new GatewayError(
    kind,
    `Provider ${provider} answered with JSON that is no answer in its protocol (${protocol.name}): ${printableLine(masked.trim(), QUOTED_CHARS)}`,
    { code, retryable, fromUpstream: true },
  );
}

/** The upstream streamed although the request asked for no stream. */
function replyFromStream(reading: Reading, bytes: Uint8Array): WholeReply {
  const parser = new SseParser();
  const decoder = reading.attempt.protocol.decodeStream(reading.prepared.context);
  const fold = new ReplyBuilder();
  let error: GatewayError | undefined;
  const add = (events: readonly StreamEvent[]) => {
    for (const event of events) {
      if (event.type === 'error') error = event.error;
      fold.push(event);
    }
  };
  for (const frame of [...parser.push(bytes), ...parser.end()]) add(decoder.push(frame));
  add(decoder.end());
  const { reply } = fold;
  const digest: Digest = {
    complete: fold.complete,
    semantic: reply.blocks.some(says),
    answered: reply.blocks.some((block) => block.type !== 'reasoning' && says(block)),
    usage: reply.usage,
    model: reply.model,
    finish: reply.finish,
    error,
  };
  return { value: null, digest, reply };
}

const says = (block: Block) => !('text' in block) || block.text !== '';

/** The answer in the client's protocol. */
export function encodedReply(reading: Reading, reply: Reply): string {
  const { attempt, client } = reading;
  const { protocol } = attempt.request;
  const json =
    protocol.encodeReplyText?.(reply, client) ??
    JSON.stringify(protocol.encodeReply(reply, client));
  return editOf(reading)?.json(json, 'answer') ?? json;
}

/**
 * The vendor's answer, which names the response before it and its model as the client did, without usage that it did
 * not ask for.
 */
export function asAsked(reading: Reading, body: Uint8Array | string) {
  const { attempt, prepared } = reading;
  const edit = editOf(reading);
  const { previous } = prepared;
  const named = previous === undefined ? undefined : attempt.protocol.withPreviousResponseId;
  if (edit === undefined && named === undefined) return body;
  const json = typeof body === 'string' ? body : utf8.decode(body);
  const left = edit === undefined ? json : edit.json(json, 'answer');
  const text = named === undefined ? left : named(left, previous!, 'answer');
  return text === json ? body : Buffer.from(text);
}

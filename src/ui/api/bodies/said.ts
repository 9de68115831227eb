/** The two sides of an exchange between client and gateway, decoded: its request and its answer. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Conversation } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import {
  contextFor,
  EMPTY,
  type ReadingParts,
  type ReadReply,
  readReply,
  readRequest,
} from '../../../samples/decode/decode-body.ts';
import { readableBody } from '../../../samples/decode/readable-body.ts';
import type { SampleMeta, SampleStore } from '../../../samples/sample.ts';

/** Undefined: a body that is missing, too large or of another endpoint. */
export interface Said {
  readonly sent: Conversation | undefined;
  readonly reply: ReadReply | undefined;
}

export function* saidIn(store: SampleStore, meta: SampleMeta, parts: ReadingParts): Steps<Said> {
  const sent = yield* sentIn(store, meta, parts);
  const reply = yield* readable(function* () {
    const body = readableBody(store, meta, 'client-response');
    return yield* readReply(body, contextFor(sent ?? EMPTY, meta, body), parts);
  });
  return { sent, reply };
}

export const sentIn = (
  store: SampleStore,
  meta: SampleMeta,
  parts: ReadingParts,
): Steps<Conversation | undefined> =>
  readable(function* () {
    const body = readableBody(store, meta, 'client-request');
    return (yield* readRequest(body, parts)).conversation;
  });

function* readable<T>(read: () => Steps<T>): Steps<T | undefined> {
  try {
    return yield* read();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return undefined;
    throw thrown;
  }
}

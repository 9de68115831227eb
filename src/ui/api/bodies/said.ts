/** The two sides of an exchange between client and gateway, decoded: its request and its answer. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Conversation } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import {
  contextFor,
  EMPTY,
  type ReadingParts,
  type ReadReply,
  readableBody,
  readReply,
  readRequest,
} from '../../../samples/decode/decode-body.ts';
import type { SampleMeta, SampleStore } from '../../../samples/sample.ts';

/** A recorded exchange: where its bodies are, and what reads them. */
export interface Recorded {
  readonly store: SampleStore;
  readonly meta: SampleMeta;
  readonly parts: ReadingParts;
}

/** Undefined: a body that is missing, too large or of another endpoint. */
export interface Said {
  readonly sent: Conversation | undefined;
  readonly reply: ReadReply | undefined;
}

export function* saidIn(recorded: Recorded): Steps<Said> {
  const { store, meta, parts } = recorded;
  const sent = yield* sentIn(recorded);
  const reply = yield* readable(function* () {
    const body = readableBody(store, meta, 'client-response');
    return yield* readReply(body, contextFor(sent ?? EMPTY, meta, body), parts);
  });
  return { sent, reply };
}

export const sentIn = ({ store, meta, parts }: Recorded): Steps<Conversation | undefined> =>
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

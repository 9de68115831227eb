/** From what was asked to what is sent: the request passes, then the target's own words. */

import type { Notes } from '../conversation/notes.ts';
import { CARRIER_PREFIX } from '../conversation/seal.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation } from '../conversation/types.ts';
import type { Feature, FeatureContext, Interceptor } from '../features/feature.ts';
import type { Protocol, UpstreamContext } from '../protocols/protocol.ts';
import type { Ask } from './ask.ts';
import type { Hop } from './attempt.ts';
import { shapeBody, shapeBytes } from './shape-params.ts';

const utf8 = new TextEncoder();

export interface Prepared {
  readonly body: Uint8Array;
  /** Neither the passes nor another protocol changed anything: these are the client's bytes. */
  readonly untouched: boolean;
  readonly interceptors: readonly Interceptor[];
  readonly context: UpstreamContext;
}

/**
 * The one place that chooses the lane of the request: when no pass changed the conversation and the
 * target speaks the client's protocol, the client's bytes go out, the model name spliced in.
 */
export function prepare(
  ask: Ask,
  target: Target,
  protocol: Protocol,
  features: readonly Feature[],
  notes: Notes,
  hop: Hop,
): Prepared {
  const same = protocol === ask.protocol;
  const context: FeatureContext = { target, client: ask.protocol.name, notes, hop: hop.number };
  // The bytes are those of the first hop: what follows it is looked at by everybody.
  const armed = features.filter(
    (feature) => hop.number > 1 || (feature.looksAt?.(ask.bytes, context) ?? true),
  );
  let sent: Conversation | undefined = hop.conversation;
  for (const feature of armed) {
    if (feature.request !== undefined) {
      sent = feature.request(sent ?? ask.conversation, context);
    }
  }
  const interceptors = armed
    .map((feature) => feature.intercept?.(sent ?? ask.conversation, context))
    .filter((interceptor) => interceptor !== undefined);
  const upstream: UpstreamContext = {
    get sent() {
      return sent ?? ask.conversation;
    },
    target,
    notes,
  };
  const asAsked = sent === undefined || sent === ask.conversation;
  if (same && asAsked && !carriesSeal(ask.bytes)) {
    const bytes = ask.bytesFor(target.model);
    const body = shapeBytes(bytes, target.profile, notes);
    return { body, untouched: body === bytes, interceptors, context: upstream };
  }
  const conversation = { ...(sent ?? ask.conversation), model: target.model };
  const value = protocol.encodeRequest(conversation, target, notes);
  const body = utf8.encode(JSON.stringify(shapeBody(value, target.profile, notes)));
  return { body, untouched: false, interceptors, context: upstream };
}

/** Seals that other vendors made travel inside the client's bytes; only an encoder takes them out. */
function carriesSeal(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(CARRIER_PREFIX);
}

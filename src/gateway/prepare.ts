/** From what was asked to what is sent: the request passes, then the target's own words. */

import type { GatewayError } from '../conversation/errors.ts';
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
// Seals that other vendors made travel inside the client's bytes; only an encoder takes them out.
const CARRIER = Buffer.from(CARRIER_PREFIX);

export interface Prepared {
  readonly body: Uint8Array;
  readonly interceptors: readonly Interceptor[];
  readonly context: UpstreamContext;
}

interface Job {
  readonly ask: Ask;
  readonly target: Target;
  readonly protocol: Protocol;
  readonly features: readonly Feature[];
  readonly notes: Notes;
  readonly hop: Hop;
  readonly refusal?: GatewayError | undefined;
  /** Fires when the answer is no longer wanted. */
  readonly signal: AbortSignal;
}

/** Waits only where a feature has something to find out first; otherwise the work is done on return. */
export function prepare(job: Job): Prepared | Promise<Prepared> {
  const { ask, target, notes, hop, refusal } = job;
  const context: FeatureContext = {
    target,
    client: ask.protocol.name,
    notes,
    hop: hop.number,
    ...(refusal === undefined ? {} : { refusal }),
  };
  // The bytes are those of the first hop: what follows it is looked at by everybody.
  const armed = job.features.filter(
    (feature) => hop.number > 1 || (feature.looksAt?.(ask.bytes, context) ?? true),
  );
  const asked = armed.filter((feature) => feature.before !== undefined);
  if (asked.length === 0) return pass(job, armed, context);
  const conversation = hop.conversation ?? ask.conversation;
  return Promise.all(
    asked.map((feature) => feature.before?.(conversation, context, job.signal)),
  ).then(() => pass(job, armed, context));
}

/**
 * The one place that chooses the lane of the request: when no pass changed the conversation and the
 * target speaks the client's protocol, the client's bytes go out, the model name spliced in.
 */
function pass(job: Job, armed: readonly Feature[], context: FeatureContext): Prepared {
  const { ask, target, protocol, notes, hop } = job;
  const same = protocol === ask.protocol;
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
  notes.join(ask.mended);
  if (same && asAsked && ask.mended.length === 0 && !ask.bytes.includes(CARRIER)) {
    const bytes = ask.bytesFor(target.model);
    const body = shapeBytes(bytes, target.profile, notes);
    return { body, interceptors, context: upstream };
  }
  const conversation = { ...(sent ?? ask.conversation), model: target.model };
  const value = protocol.encodeRequest(conversation, target, notes);
  const body = utf8.encode(JSON.stringify(shapeBody(value, target.profile, notes)));
  return { body, interceptors, context: upstream };
}

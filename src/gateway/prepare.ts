/** From what was asked to what is sent: the request passes, then the target's own words. */

import type { Codec, UpstreamContext } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import { historyRefusal } from '../conversation/refusal.ts';
import { withoutFields } from '../conversation/refused-fields.ts';
import { SEAL_ENVELOPE_PREFIX } from '../conversation/seal.ts';
import type { Target } from '../conversation/target.ts';
import type { Conversation } from '../conversation/types.ts';
import type { Feature, FeatureContext, Interceptor } from '../features/feature.ts';
import type { JsonObject } from '../lib/json/json.ts';
import type { Abort } from '../lib/loop/abort.ts';
import type { ClientRequest } from './client-request.ts';
import { shapeBody, shapeBytes } from './parameters.ts';
import type { Hop, Prepared } from './types.ts';

const utf8 = new TextEncoder();
// Seals that other vendors made travel inside the client's bytes; only an encoder takes them out.
const CARRIER = Buffer.from(SEAL_ENVELOPE_PREFIX);

interface Job {
  readonly ask: ClientRequest;
  readonly target: Target;
  readonly protocol: Codec;
  readonly features: readonly Feature[];
  readonly notes: Notes;
  readonly hop: Hop;
  readonly refusal?: GatewayError | undefined;
  /** When the answer is no longer wanted. */
  readonly abort: Abort;
}

/** Waits only where a feature has something to find out first; otherwise the work is done on return. */
export function prepare(job: Job): Prepared | Promise<Prepared> {
  const { ask, target, notes, hop, refusal } = job;
  const client = ask.protocol.name;
  const context: FeatureContext = { target, client, notes, hop: hop.number, refusal };
  // The bytes are those of the first hop: what follows it is looked at by everybody.
  const armed: Feature[] = [];
  let asks = false;
  for (const feature of job.features) {
    if (hop.number === 1 && feature.mayApply?.(ask.bytes, context) === false) continue;
    armed.push(feature);
    asks ||= feature.prepare !== undefined;
  }
  if (!asks) return pass(job, armed, context);
  const conversation = hop.conversation ?? ask.conversation;
  const { signal } = job.abort;
  return Promise.all(armed.map((feature) => feature.prepare?.(conversation, context, signal))).then(
    () => pass(job, armed, context),
  );
}

/** What is needed of a request to read its answer. */
class SentRequest implements UpstreamContext {
  readonly target: Target;
  readonly notes: Notes;
  readonly #sent: Conversation | undefined;
  readonly #ask: ClientRequest;

  constructor(sent: Conversation | undefined, { ask, target, notes }: Job) {
    this.#sent = sent;
    this.#ask = ask;
    this.target = target;
    this.notes = notes;
  }

  // Decoding a large body can wait until something of it is really asked for.
  get sent(): Conversation {
    return this.#sent ?? this.#ask.conversation;
  }
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
  const interceptors: Interceptor[] = [];
  for (const feature of armed) {
    const interceptor = feature.intercept?.(sent ?? ask.conversation, context);
    if (interceptor !== undefined) interceptors.push(interceptor);
  }
  const upstream = new SentRequest(sent, job);
  const asAsked = sent === undefined || sent === ask.conversation;
  const { mended } = ask;
  if (mended.length > 0) notes.join(mended);
  const asItIs = same && asAsked && mended.length === 0 && job.refusal === undefined;
  if (asItIs && !ask.bytes.includes(CARRIER)) {
    const bytes = ask.bytesFor(target.model);
    const body = shapeBytes(bytes, target.profile, notes);
    return { body, interceptors, context: upstream };
  }
  const conversation = { ...(sent ?? ask.conversation), model: target.model };
  const encoded = protocol.encodeRequest(conversation, target, notes);
  const value = job.refusal === undefined ? encoded : unrefused(encoded, job.refusal, job);
  const body = utf8.encode(JSON.stringify(shapeBody(value, target.profile, notes)));
  const named = same ? ask.conversation.settings.previousResponseId : undefined;
  const previous = value.previous_response_id === named ? undefined : named;
  return { body, interceptors, context: upstream, previous };
}

/** The body without the fields that the target has just said it does not know, and without their like. */
function unrefused(body: JsonObject, error: GatewayError, { protocol, notes }: Job): JsonObject {
  const refusal = historyRefusal(error);
  if (refusal?.kind !== 'fields') return body;
  const left = withoutFields(body, refusal.paths, (path, count) => {
    notes.add('stripped_after_refusal', path, `a field that is unknown there, ${count} times`);
  });
  return protocol.withoutUnknownFields?.(left, 'leftovers', notes) ?? left;
}

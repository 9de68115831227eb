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
import { othersTurn } from '../lib/loop/tick-end.ts';
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
  if (!asks) return passOf(job, armed, context);
  const conversation = hop.conversation ?? ask.conversation;
  const { signal } = job.abort;
  return Promise.all(armed.map((feature) => feature.prepare?.(conversation, context, signal))).then(
    () => passOf(job, armed, context),
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

/** A larger body may hold thousands of turns: each pass over them is a turn of the event loop. */
const LARGE = 256 * 1024;

const passOf = (job: Job, armed: readonly Feature[], context: FeatureContext) =>
  job.ask.bytes.length > LARGE ? passInTurns(job, armed, context) : pass(job, armed, context);

function pass(job: Job, armed: readonly Feature[], context: FeatureContext): Prepared {
  let sent = job.hop.conversation;
  for (const feature of armed) sent = passed(feature, sent, job, context);
  const parts = partsOf(job, armed, context, sent);
  return asItCame(job, parts) ?? written(job, parts, encoded(job, parts));
}

/** The same, with everybody else's turn between two steps. */
async function passInTurns(
  job: Job,
  armed: readonly Feature[],
  context: FeatureContext,
): Promise<Prepared> {
  let sent = job.hop.conversation;
  for (const feature of armed) {
    if (feature.request === undefined) continue;
    if (sent === undefined) {
      sent = job.ask.conversation;
      await othersTurn();
    }
    sent = passed(feature, sent, job, context);
    await othersTurn();
  }
  const parts = partsOf(job, armed, context, sent);
  const asIs = asItCame(job, parts);
  if (asIs !== undefined) return asIs;
  await othersTurn();
  const value = encoded(job, parts);
  await othersTurn();
  return written(job, parts, value);
}

const passed = (
  feature: Feature,
  sent: Conversation | undefined,
  { ask }: Job,
  context: FeatureContext,
): Conversation | undefined =>
  feature.request === undefined ? sent : feature.request(sent ?? ask.conversation, context);

interface Parts {
  /** Undefined: no pass has looked at what was asked. */
  readonly sent: Conversation | undefined;
  readonly interceptors: readonly Interceptor[];
  readonly upstream: UpstreamContext;
}

function partsOf(
  job: Job,
  armed: readonly Feature[],
  context: FeatureContext,
  sent: Conversation | undefined,
): Parts {
  const interceptors: Interceptor[] = [];
  for (const feature of armed) {
    const interceptor = feature.intercept?.(sent ?? job.ask.conversation, context);
    if (interceptor !== undefined) interceptors.push(interceptor);
  }
  return { sent, interceptors, upstream: new SentRequest(sent, job) };
}

/**
 * The one place that chooses the lane of the request: when no pass changed the conversation and the
 * target speaks the client's protocol, the client's bytes go out, the model name spliced in.
 */
function asItCame(job: Job, { sent, interceptors, upstream }: Parts): Prepared | undefined {
  const { ask, target, protocol, notes } = job;
  const asAsked = sent === undefined || sent === ask.conversation;
  const { mended } = ask;
  if (mended.length > 0) notes.join(mended);
  const same = protocol === ask.protocol;
  const asItIs = same && asAsked && mended.length === 0 && job.refusal === undefined;
  if (!asItIs || ask.bytes.includes(CARRIER)) return undefined;
  const body = shapeBytes(ask.bytesFor(target.model), target.profile, notes);
  return { body, interceptors, context: upstream };
}

function encoded(job: Job, { sent }: Parts): JsonObject {
  const { ask, target, protocol, notes } = job;
  const conversation = { ...(sent ?? ask.conversation), model: target.model };
  const value = protocol.encodeRequest(conversation, target, notes);
  return job.refusal === undefined ? value : unrefused(value, job.refusal, job);
}

function written(job: Job, { interceptors, upstream }: Parts, value: JsonObject): Prepared {
  const { ask, target, protocol, notes } = job;
  const body = utf8.encode(JSON.stringify(shapeBody(value, target.profile, notes)));
  const same = protocol === ask.protocol;
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

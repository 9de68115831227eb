/** Makes the request that is sent: the features' passes, then the codec of the target. */

import type { Codec, UpstreamContext } from '../codecs/codec.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Notes } from '../conversation/notes.ts';
import { targetAfterRefusals } from '../conversation/refusal/refusal.ts';
import { type FieldPath, withoutFields } from '../conversation/refusal/refused-fields.ts';
import { mayHoldEnvelope } from '../conversation/seal.ts';
import type { Target } from '../conversation/target.ts';
import { mentionsTools } from '../conversation/tools/mentions-tools.ts';
import type { Conversation } from '../conversation/types.ts';
import type { AnswerWatch, Feature, FeatureContext, Interceptor } from '../features/feature.ts';
import { containsAny, needles } from '../lib/bytes/bytes.ts';
import { isObject, type JsonObject } from '../lib/json/json.ts';
import type { Abort } from '../lib/loop/abort.ts';
import { othersTurn, Rests, runInSlices } from '../lib/loop/steps.ts';
import type { ClientRequest } from './client-request.ts';
import { shapeBody, shapeBytes } from './parameters.ts';
import { SoundAnswer } from './sound-answer.ts';
import type { Hop, Prepared } from './types.ts';

const utf8 = new TextEncoder();

interface Preparation {
  readonly request: ClientRequest;
  readonly target: Target;
  readonly protocol: Codec;
  readonly features: readonly Feature[];
  readonly notes: Notes;
  readonly hop: Hop;
  readonly refusals?: readonly GatewayError[] | undefined;
  readonly payer?: FeatureContext['payer'];
  readonly owner?: string | undefined;
  /** When the answer is no longer wanted. */
  readonly abort: Abort;
}

/** Waits only where a feature has something to find out first; otherwise the work is done on return. */
export function prepare(preparation: Preparation): Prepared | Promise<Prepared> {
  const { request, target, notes, hop, refusals, payer, owner } = preparation;
  const client = request.protocol.name;
  const context: FeatureContext = {
    target,
    client,
    owner,
    notes,
    hop: hop.number,
    refusals,
    payer,
  };
  // The bytes are those of the first hop: for later ones every feature has to look.
  const armed: Feature[] = [];
  let asks = false;
  for (const feature of preparation.features) {
    if (hop.number === 1 && feature.mayApply?.(request.bytes, context) === false) continue;
    armed.push(feature);
    asks ||= feature.prepare !== undefined;
  }
  return asks ? askFirst(preparation, armed, context) : runPasses(preparation, armed, context);
}

function askFirst(
  preparation: Preparation,
  armed: readonly Feature[],
  context: FeatureContext,
): Prepared | Promise<Prepared> {
  const { hop, request, abort } = preparation;
  const conversation = hop.conversation ?? request.conversation;
  const { signal } = abort;
  const waits = armed.map((feature) => feature.prepare?.(conversation, context, signal));
  if (waits.every((one) => one === undefined)) return runPasses(preparation, armed, context);
  return Promise.all(waits).then(() => runPasses(preparation, armed, context));
}

/** What is needed of a request to read its answer. */
class SentRequest implements UpstreamContext {
  readonly target: Target;
  readonly notes: Notes;
  readonly #sent: Conversation | undefined;
  readonly #request: ClientRequest;

  constructor(sent: Conversation | undefined, { request, target, notes }: Preparation) {
    this.#sent = sent;
    this.#request = request;
    this.target = target;
    this.notes = notes;
  }

  // A getter: a large body is decoded only where it is needed.
  get sent(): Conversation {
    return this.#sent ?? this.#request.conversation;
  }
}

/** A larger body may hold thousands of turns: each pass over them is a turn of the event loop. */
const LARGE = 256 * 1024;

const runPasses = (preparation: Preparation, armed: readonly Feature[], context: FeatureContext) =>
  preparation.request.bytes.length > LARGE
    ? passInTurns(preparation, armed, context)
    : pass(preparation, armed, context);

function pass(
  preparation: Preparation,
  armed: readonly Feature[],
  context: FeatureContext,
): Prepared {
  let sent = preparation.hop.conversation;
  for (const feature of armed) sent = passed(feature, sent, preparation, context);
  const parts = partsOf(preparation, armed, context, sent);
  return asItCame(preparation, parts) ?? written(preparation, parts, encoded(preparation, parts));
}

/** The same, with a turn of the event loop between two steps; in a known session, only where they have taken long. */
async function passInTurns(
  preparation: Preparation,
  armed: readonly Feature[],
  context: FeatureContext,
): Promise<Prepared> {
  const rest = preparation.request.history?.goesOn === true ? new Rests().rest : othersTurn;
  let sent = preparation.hop.conversation;
  for (const feature of armed) {
    if (feature.request === undefined) continue;
    if (sent === undefined) {
      await preparation.request.readAhead();
      sent = preparation.request.conversation;
      await rest();
    }
    sent =
      feature.requestSteps === undefined
        ? feature.request(sent, context)
        : await runInSlices(feature.requestSteps(sent, context));
    await rest();
  }
  const parts = partsOf(preparation, armed, context, sent);
  const asIs = asItCame(preparation, parts);
  if (asIs !== undefined) return asIs;
  await rest();
  const value = encoded(preparation, parts);
  await rest();
  return written(preparation, parts, value);
}

const passed = (
  feature: Feature,
  sent: Conversation | undefined,
  { request }: Preparation,
  context: FeatureContext,
): Conversation | undefined =>
  feature.request === undefined ? sent : feature.request(sent ?? request.conversation, context);

interface Parts {
  /** Undefined: no pass has looked at what was asked. */
  readonly sent: Conversation | undefined;
  readonly interceptors: readonly Interceptor[];
  readonly watch: AnswerWatch | undefined;
  readonly upstream: UpstreamContext;
}

function partsOf(
  preparation: Preparation,
  armed: readonly Feature[],
  context: FeatureContext,
  sent: Conversation | undefined,
): Parts {
  const interceptors: Interceptor[] = [];
  let watch: AnswerWatch | undefined;
  for (const feature of armed) {
    const interceptor = feature.intercept?.(sent ?? preparation.request.conversation, context);
    if (interceptor !== undefined) interceptors.push(interceptor);
    watch ??= feature.watch?.(sent ?? preparation.request.conversation, context);
  }
  if (isLookedThrough(preparation, interceptors)) {
    interceptors.unshift(new SoundAnswer(preparation.notes));
  }
  return { sent, interceptors, watch, upstream: new SentRequest(sent, preparation) };
}

/** May the client get what the vendor wrote, which may be wrong? Streams without tools are not read for that. */
const isLookedThrough = (
  { request, target, protocol }: Preparation,
  interceptors: readonly Interceptor[],
): boolean => {
  if (protocol !== request.protocol) return false;
  if (interceptors.length > 0) return true;
  const { exactStreams } = target.profile;
  if (exactStreams !== undefined) return !exactStreams;
  return !request.stream || protocol.refusesOtherLines === true || mentionsTools(request.bytes);
};

/**
 * The one place that decides whether the client's bytes are sent: when no pass changed the conversation and the
 * target speaks the client's protocol, the client's bytes go out, the model name spliced in.
 */
function asItCame(
  preparation: Preparation,
  { sent, interceptors, watch, upstream }: Parts,
): Prepared | undefined {
  const { request, target, protocol, notes } = preparation;
  const asAsked = sent === undefined || sent === request.conversation;
  const { repairs } = request;
  if (repairs.length > 0) notes.join(repairs);
  const same = protocol === request.protocol;
  const asItIs = same && asAsked && repairs.length === 0 && preparation.refusals === undefined;
  if (!asItIs || mayHoldEnvelope(request.bytes)) return undefined;
  if (mayHoldRefused(request.bytes, target)) return undefined;
  const body = shapeBytes(request, target, notes);
  return { body, interceptors, watch, context: upstream };
}

function encoded(preparation: Preparation, { sent }: Parts): JsonObject {
  const { request, target, protocol, notes } = preparation;
  const conversation = { ...(sent ?? request.conversation), model: target.model };
  const { known } = request.history ?? {};
  const shown = targetAfterRefusals(target, preparation.refusals);
  const value = protocol.encodeRequest(conversation, shown, notes, known);
  return withoutRefused(value, shown, protocol, notes, preparation.refusals !== undefined);
}

/** https://platform.claude.com/docs/en/build-with-claude/preserved-thinking */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

function written(
  preparation: Preparation,
  { interceptors, watch, upstream }: Parts,
  value: JsonObject,
): Prepared {
  const { request, target, protocol, notes } = preparation;
  const shaped = shapeBody(value, target.profile, notes);
  const body = request.history?.write(protocol.name, shaped) ?? utf8.encode(JSON.stringify(shaped));
  const same = protocol === request.protocol;
  const named = same ? request.conversation.settings.previousResponseId : undefined;
  const previous = value.previous_response_id === named ? undefined : named;
  const { thinking } = shaped;
  const beta =
    isObject(thinking) && thinking.block_binding !== undefined ? BINDING_BETA : undefined;
  const stream = shaped.stream === true;
  return { body, stream, interceptors, watch, context: upstream, previous, beta };
}

const namesOf = new WeakMap<readonly FieldPath[], readonly Buffer[]>();

/** Can the body have a field that the target has refused? */
function mayHoldRefused(body: Buffer, { refusedFields }: Target): boolean {
  if (refusedFields === undefined) return false;
  let names = namesOf.get(refusedFields);
  if (names === undefined) {
    names = needles(...new Set(refusedFields.map((path) => `"${path.at(-1)}"`)));
    namesOf.set(refusedFields, names);
  }
  return containsAny(body, names);
}

/**
 * The body without the fields that the target has refused, and without others of their kind.
 * @param again the target has just refused something, so that others of their kind are looked for in any case
 */
function withoutRefused(
  body: JsonObject,
  { refusedFields }: Target,
  protocol: Codec,
  notes: Notes,
  again: boolean,
): JsonObject {
  if (refusedFields === undefined) return body;
  const left = withoutFields(body, refusedFields, (path, count) => {
    notes.add(
      'stripped_after_refusal',
      path,
      `refused there, ${count === 1 ? 'once' : `${count} times`}`,
    );
  });
  if (left === body && !again) return body;
  return protocol.withoutUnknownFields?.(left, 'leftovers', notes) ?? left;
}

/** Joins the Responses protocol and the response store: continuation, keeping, and who may refer to what. */

import { openaiResponses } from '../../codecs/openai-responses/index.ts';
import {
  inputItems,
  outputItems,
  prependItems,
} from '../../codecs/openai-responses/stored-items.ts';
import type { GatewayError } from '../../conversation/errors.ts';
import { asGatewayError } from '../../conversation/errors.ts';
import type { Conversation } from '../../conversation/types.ts';
import type { Feature, FeatureContext } from '../../features/feature.ts';
import {
  chainItems,
  conversationNotFound,
  type Due,
  earlierItems,
  isOwnId,
  isVendorReference,
  ownerOf,
  previousNotFound,
  type ReferenceContext,
  type ResponseReads,
  type ResponseStore,
  record,
  referredItems,
  resolveReferences,
} from '../../features/response-store/index.ts';
import type { ClientRequest } from '../../gateway/client-request.ts';
import type { ConnectionMemory, RememberedChain } from '../../gateway/stream/client-lane.ts';
import type { FinalAnswer } from '../../gateway/stream/pipeline.ts';
import type { AnswerSession, AnswerSessions } from '../../gateway/tries/answer-sessions.ts';
import type { Exchange, ExchangeFeatures, Spent } from '../../gateway/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { isObject, type JsonObject } from '../../lib/json/json.ts';
import {
  type Answer,
  type DeliveredResponse,
  deliveredBy,
  responseBegun,
} from './delivered-response.ts';

const PREVIOUS = Buffer.from('"previous_response_id"');
const REFERENCE = Buffer.from('"item_reference"');
const CONVERSATION = Buffer.from('"conversation"');
const INPUT = Buffer.from('"input"');
const CONTINUES = [PREVIOUS, REFERENCE];
// Members that may name what belongs to another owner: items too, and field names written with escapes.
const STORE = needles('"store"');
const ESCAPED = needles('\\u005', '\\u006', '\\u007');
const NAMES = [...CONTINUES, CONVERSATION, Buffer.from('"id"'), ...ESCAPED];

export interface ResponseStateOptions {
  readonly store: ResponseStore;
  readonly sessions: AnswerSessions;
}

/** What was found out before a try. */
interface Found {
  readonly body: JsonObject;
  /** The history that is sent; undefined: nothing is continued, or the vendor itself knows it. */
  readonly items?: readonly JsonObject[] | undefined;
  readonly error?: GatewayError;
}

const bodyOf = (ask: ClientRequest): JsonObject => ask.conversation.origin?.value ?? {};

/** The provider that keeps what it answers: then its own ids mean something to it. */
const keeperOf = ({ target, client }: FeatureContext): string | undefined =>
  target.protocol === client && target.profile.storesResponses === true
    ? target.provider
    : undefined;

/**
 * What acts on one exchange.
 *
 * With gateway keys, all clients share the vendor's account: a response, an item or a conversation that
 * this owner did not create here is not found, and the vendor is not asked. Without keys, what is not
 * known goes to a vendor of the same protocol, which may know it.
 */
export function responseState({ store, sessions }: ResponseStateOptions) {
  return (
    exchange: Exchange,
    ask: ClientRequest,
    space: string | undefined,
    session: AnswerSession,
  ): ExchangeFeatures | undefined => {
    if (ask.protocol !== openaiResponses) return undefined;
    const owner = ownerOf(exchange.owner);
    const began = performance.timeOrigin + exchange.started;
    let keeper: string | undefined;
    let model = '';
    let found: Found | undefined;
    const { lane } = exchange;
    /** What the request continues; undefined where only the vendor knows it. */
    let before: RememberedChain | readonly JsonObject[] | undefined = [];
    const isGuarded = ({ target, client }: FeatureContext) =>
      owner !== '' && target.protocol === client;

    async function lookUp(context: FeatureContext): Promise<Found> {
      const body = bodyOf(ask);
      const guarded = isGuarded(context);
      try {
        const named = guarded && conversationId(body);
        if (named) throw conversationNotFound(named);
        const asked: ReferenceContext = {
          keeper,
          mayKnow: owner === '' && context.target.protocol === context.client,
          guarded: guarded && keeper !== undefined,
        };
        const reads = await fetched(body, asked);
        const items = await history(body, guarded, reads);
        return { body: resolveReferences(body, reads, owner, asked), items };
      } catch (thrown) {
        return { body, error: asGatewayError(thrown) };
      }
    }

    /** Everything that the body names, in one go. */
    function fetched(body: JsonObject, asked: ReferenceContext) {
      const id = body.previous_response_id;
      const recalled = typeof id === 'string' ? lane?.recall(id) : undefined;
      // What the connection remembers is enough, unless the vendor may know it better.
      const wants = typeof id === 'string' && (recalled === undefined || keeper !== undefined);
      // Without keys, the vendor may know what cannot be looked up here: never what this gateway named itself.
      const lenient =
        recalled !== undefined || (owner === '' && keeper !== undefined && !(wants && isOwnId(id)));
      const responses = wants ? [id] : [];
      return store.fetch(
        { responses, chains: true, items: referredItems(body, asked) },
        owner,
        lenient,
      );
    }

    async function history(body: JsonObject, guarded: boolean, reads: ResponseReads) {
      const id = body.previous_response_id;
      // What is not an id is refused in words.
      if (typeof id !== 'string') return earlierItems(body, reads, owner);
      const recalled = lane?.recall(id);
      const kept = reads.known(id, owner);
      before = recalled;
      if (keeper !== undefined && kept?.keeper === keeper) {
        if (lane !== undefined) before ??= await storedChain(id, reads);
        return undefined;
      }
      if (recalled !== undefined) {
        return recalled.items().filter((item) => !isVendorReference(item));
      }
      if (kept === undefined) {
        if (keeper !== undefined && !guarded) return undefined;
        throw previousNotFound(id);
      }
      const chain = await reads.chain(id, owner);
      if (lane !== undefined) before = chainItems(chain);
      return chainItems(chain, keeper);
    }

    async function storedChain(
      id: string,
      reads: ResponseReads,
    ): Promise<readonly JsonObject[] | undefined> {
      const chain = await reads.chain(id, owner);
      return 'missing' in chain ? undefined : chainItems(chain);
    }

    const continuation: Feature = {
      name: 'response-state',
      mayApply(bytes, context) {
        found = undefined;
        before = [];
        keeper = keeperOf(context);
        model = context.target.model;
        return containsAny(bytes, isGuarded(context) ? NAMES : CONTINUES);
      },
      async prepare(conversation, context) {
        if (context.hop === 1 && conversation === ask.conversation) found = await lookUp(context);
      },
      request(conversation: Conversation, context): Conversation {
        // The answer is made of several of the vendor's: none of those that it keeps is the whole.
        if (context.hop > 1) keeper = undefined;
        if (conversation !== ask.conversation || found === undefined) return conversation;
        const { body, items, error } = found;
        if (error !== undefined) throw error;
        const own = body === bodyOf(ask) ? conversation : openaiResponses.decodeRequest(body);
        const left = countOf(bodyOf(ask)) - countOf(body);
        if (left > 0) context.notes.add('reasoning_dropped', 'input', `${left} items`);
        if (items === undefined) {
          // A body that can be read in two ways goes out as it was read here.
          return isGuarded(context) && own === conversation && isAmbiguous(ask.bytes)
            ? { ...own }
            : own;
        }
        const { target, notes } = context;
        notes.add('previous_response_expanded', 'previous_response_id', `${items.length} items`);
        const whole = prependItems(own, items.filter(isObject));
        if (target.protocol === openaiResponses.name) return whole;
        // Said in full now: another protocol's encoder must not report the id as lost.
        const { previousResponseId: _, ...settings } = whole.settings;
        return { ...whole, settings };
      },
    };
    return {
      features: [continuation],
      // Codex and other agents keep their own history; what is not to be stored costs nothing here.
      ...(storeOff(ask)
        ? lane === undefined
          ? {}
          : { onAnswer: (answer) => remember(lane, learned(answer)) }
        : {
            onAnswer: keep,
            onPartialAnswer: keepJob,
          }),
    };
    /** The response that the client got; a request that continues it belongs to this session. */
    function learned(answer: Answer): DeliveredResponse | undefined {
      const delivered = deliveredBy(answer);
      const id = delivered?.response.id;
      if (typeof id === 'string') sessions.learn(id, exchange.owner, session);
      return delivered;
    }
    /** The connection can go on from this answer, whether it is stored or not. */
    function remember(memory: ConnectionMemory, delivered: DeliveredResponse | undefined): void {
      const id = delivered?.response.id;
      if (delivered === undefined || before === undefined || typeof id !== 'string') return;
      const asked = inputItems(found?.body ?? bodyOf(ask));
      memory.remember(id, before, [...asked, ...delivered.output]);
    }
    /** A background job goes on at the vendor after the client leaves; the client fetches it later by its id. */
    function keepJob({ frames }: FinalAnswer, spent: Spent | undefined): void {
      if (keeper === undefined || bodyOf(ask).background !== true) return;
      const response = responseBegun(frames);
      if (response === undefined) return;
      const body = bodyOf(ask);
      const due = dueFor(spent);
      record(store, { body, response, owner, space, began, keeper, due, inputItems, outputItems });
    }
    function dueFor(spent: Spent | undefined): Due {
      const { id: request, sessionId } = exchange;
      const session = sessionId || undefined;
      return { request, session, spent, countedAt: began, asked: ask.model, model };
    }
    function keep(answer: Answer, spent: Spent | undefined): Promise<void> | undefined {
      const delivered = learned(answer);
      if (lane !== undefined) remember(lane, delivered);
      if (delivered === undefined) return undefined;
      const { response, output } = delivered;
      const stored = record(store, {
        body: bodyOf(ask),
        response,
        owner,
        space,
        began,
        keeper,
        due: dueFor(spent),
        inputItems,
        outputItems: () => output,
      });
      return stored ? store.sent() : undefined;
    }
  };
}

/** `store: false`: the text is searched first, so that a body that must be kept is not decoded for it. */
function storeOff(ask: ClientRequest): boolean {
  return containsAny(ask.bytes, STORE) && ask.conversation.settings.store === false;
}

const countOf = ({ input }: JsonObject): number => (Array.isArray(input) ? input.length : 0);

function conversationId({ conversation }: JsonObject): string | undefined {
  const id = isObject(conversation) ? conversation.id : conversation;
  return typeof id === 'string' ? id : undefined;
}

/** Might another parser read other references in it: a field twice, or a name in escapes? */
function isAmbiguous(bytes: Buffer): boolean {
  const twice = (mark: Buffer) => {
    const first = bytes.indexOf(mark);
    return first >= 0 && bytes.includes(mark, first + 1);
  };
  return (
    bytes.includes(REFERENCE) ||
    twice(PREVIOUS) ||
    twice(CONVERSATION) ||
    twice(INPUT) ||
    containsAny(bytes, ESCAPED)
  );
}

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
import type { RememberedChain } from '../../gateway/stream/client-lane.ts';
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

/** The provider that keeps what it answers: then its own ids mean something to it. */
const keeperOf = ({ target, client }: FeatureContext): string | undefined =>
  target.protocol === client && target.profile.storesResponses === true
    ? target.provider
    : undefined;

/** An exchange of the Responses protocol. */
interface Asked {
  readonly exchange: Exchange;
  readonly ask: ClientRequest;
  readonly space: string | undefined;
  readonly session: AnswerSession;
}

/** Makes the state of one exchange; undefined for one of another protocol. */
export const responseState =
  (options: ResponseStateOptions) =>
  (
    exchange: Exchange,
    ask: ClientRequest,
    space: string | undefined,
    session: AnswerSession,
  ): ExchangeFeatures | undefined => {
    return ask.protocol === openaiResponses
      ? stateOf(options, { exchange, ask, space, session })
      : undefined;
  };

function stateOf(options: ResponseStateOptions, asked: Asked): ExchangeFeatures {
  const state = new ResponseState(options, asked);
  const features = [state];
  if (!storeOff(asked.ask)) {
    return {
      features,
      onAnswer: (answer, spent) => state.keep(answer, spent),
      onPartialAnswer: (answer, spent) => state.keepJob(answer, spent),
    };
  }
  // Codex and other agents keep their own history; what is not to be stored costs nothing here.
  return asked.exchange.lane === undefined
    ? { features }
    : { features, onAnswer: (answer) => void state.learned(answer) };
}

/**
 * With gateway keys, all clients share the vendor's account: a response, an item or a conversation that
 * this owner did not create here is not found, and the vendor is not asked. Without keys, what is not
 * known goes to a vendor of the same protocol, which may know it.
 */
class ResponseState implements Feature {
  readonly name = 'response-state';
  readonly #owner: string;
  readonly #began: number;
  #keeper: string | undefined;
  #model = '';
  #found: Found | undefined;
  /** The answers that the request continues; undefined where only the vendor knows them. */
  #before: RememberedChain | readonly JsonObject[] | undefined = [];

  constructor(
    private readonly options: ResponseStateOptions,
    private readonly asked: Asked,
  ) {
    const { exchange } = asked;
    this.#owner = ownerOf(exchange.owner);
    this.#began = performance.timeOrigin + exchange.started;
  }

  get #body(): JsonObject {
    return this.asked.ask.conversation.origin?.value ?? {};
  }

  #isGuarded({ target, client }: FeatureContext): boolean {
    return this.#owner !== '' && target.protocol === client;
  }

  mayApply(bytes: Buffer, context: FeatureContext): boolean {
    this.#found = undefined;
    this.#before = [];
    this.#keeper = keeperOf(context);
    this.#model = context.target.model;
    return containsAny(bytes, this.#isGuarded(context) ? NAMES : CONTINUES);
  }

  async prepare(conversation: Conversation, context: FeatureContext): Promise<void> {
    if (context.hop === 1 && conversation === this.asked.ask.conversation) {
      this.#found = await this.#lookUp(context);
    }
  }

  request(conversation: Conversation, context: FeatureContext): Conversation {
    const { ask } = this.asked;
    // The answer is made of several of the vendor's: none of those that it keeps is the whole.
    if (context.hop > 1) this.#keeper = undefined;
    if (conversation !== ask.conversation || this.#found === undefined) return conversation;
    const { body, items, error } = this.#found;
    if (error !== undefined) throw error;
    const own = body === this.#body ? conversation : openaiResponses.decodeRequest(body);
    const left = countOf(this.#body) - countOf(body);
    if (left > 0) context.notes.add('reasoning_dropped', 'input', `${left} items`);
    if (items === undefined) {
      // A body that can be read in two ways goes out as it was read here.
      return this.#isGuarded(context) && own === conversation && isAmbiguous(ask.bytes)
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
  }

  async #lookUp(context: FeatureContext): Promise<Found> {
    const body = this.#body;
    const owner = this.#owner;
    const guarded = this.#isGuarded(context);
    try {
      const named = guarded && conversationId(body);
      if (named) throw conversationNotFound(named);
      const asked: ReferenceContext = {
        keeper: this.#keeper,
        mayKnow: owner === '' && context.target.protocol === context.client,
        guarded: guarded && this.#keeper !== undefined,
      };
      const reads = await this.#fetched(body, asked);
      const items = await this.#history(body, guarded, reads);
      return { body: resolveReferences(body, reads, owner, asked), items };
    } catch (thrown) {
      return { body, error: asGatewayError(thrown) };
    }
  }

  /** Everything that the body names, in one go. */
  #fetched(body: JsonObject, asked: ReferenceContext) {
    const { keeper } = asked;
    const id = body.previous_response_id;
    const recalled = typeof id === 'string' ? this.asked.exchange.lane?.recall(id) : undefined;
    // The connection's own memory is enough, unless a vendor keeps the response.
    const wants = typeof id === 'string' && (recalled === undefined || keeper !== undefined);
    // Without keys, the vendor may know an id that cannot be looked up here, but none that this gateway made.
    const lenient =
      recalled !== undefined ||
      (this.#owner === '' && keeper !== undefined && !(wants && isOwnId(id)));
    return this.options.store.fetch(
      { responses: wants ? [id] : [], chains: true, items: referredItems(body, asked) },
      this.#owner,
      lenient,
    );
  }

  async #history(body: JsonObject, guarded: boolean, reads: ResponseReads) {
    const { lane } = this.asked.exchange;
    const owner = this.#owner;
    const keeper = this.#keeper;
    const id = body.previous_response_id;
    // `earlierItems` refuses a value that is no id.
    if (typeof id !== 'string') return earlierItems(body, reads, owner);
    const recalled = lane?.recall(id);
    const kept = reads.known(id, owner);
    this.#before = recalled;
    if (keeper !== undefined && kept?.keeper === keeper) {
      if (lane !== undefined) this.#before ??= await this.#storedChain(id, reads);
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
    if (lane !== undefined) this.#before = chainItems(chain);
    return chainItems(chain, keeper);
  }

  async #storedChain(id: string, reads: ResponseReads): Promise<readonly JsonObject[] | undefined> {
    const chain = await reads.chain(id, this.#owner);
    return 'missing' in chain ? undefined : chainItems(chain);
  }

  /**
   * The response that the client got; a request that continues it belongs to this session, and the connection can go on
   * from it, whether it is stored or not.
   */
  learned(answer: Answer): DeliveredResponse | undefined {
    const { exchange, session } = this.asked;
    const delivered = deliveredBy(answer);
    const id = delivered?.response.id;
    if (delivered === undefined || typeof id !== 'string') return delivered;
    this.options.sessions.learn(id, exchange.owner, session);
    if (exchange.lane !== undefined && this.#before !== undefined) {
      const asked = inputItems(this.#found?.body ?? this.#body);
      exchange.lane.remember(id, this.#before, [...asked, ...delivered.output]);
    }
    return delivered;
  }

  keep(answer: Answer, spent: Spent | undefined): Promise<void> | undefined {
    const delivered = this.learned(answer);
    if (delivered === undefined) return undefined;
    const { response, output } = delivered;
    const stored = this.#record(response, spent, () => output);
    return stored ? this.options.store.sent() : undefined;
  }

  /** A background job goes on at the vendor after the client leaves; the client fetches it later by its id. */
  keepJob({ frames }: FinalAnswer, spent: Spent | undefined): void {
    if (this.#keeper === undefined || this.#body.background !== true) return;
    const response = responseBegun(frames);
    if (response !== undefined) this.#record(response, spent, outputItems);
  }

  #record(response: JsonObject, spent: Spent | undefined, output: typeof outputItems): boolean {
    const { exchange, ask, space } = this.asked;
    const began = this.#began;
    const session = exchange.sessionId || undefined;
    const due: Due = {
      request: exchange.id,
      session,
      spent,
      countedAt: began,
      asked: ask.model,
      model: this.#model,
    };
    return record(this.options.store, {
      body: this.#body,
      response,
      owner: this.#owner,
      space,
      began,
      keeper: this.#keeper,
      due,
      inputItems,
      outputItems: output,
    });
  }
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

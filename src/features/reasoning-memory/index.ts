/** Remembers the reasoning and signatures of answers, and adds them to later requests if the client leaves them out. */

import { callKey, textKeys } from '../../conversation/session/answer-keys.ts';
import type { Target } from '../../conversation/target.ts';
import { mentionsTools } from '../../conversation/tools/mentions-tools.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import {
  type Feature,
  type FeatureContext,
  type Interceptor,
  lazyInterceptor,
  type ReadAhead,
  readAhead,
} from '../feature.ts';
import { answerCollector, type CollectedAnswer } from './answer-collector.ts';
import { isReplayed, replayRules } from './replay-rules.ts';
import { historyKeys, restore, scopeOf, textBefore } from './restore.ts';
import type { SessionLedger } from './session-ledger.ts';

export { ANSWERS, type LedgerEntry, type SessionLedger } from './session-ledger.ts';

export interface ReasoningMemoryOptions {
  readonly ledger: SessionLedger;
  /** The name of the gateway key; '' without auth. Owners never see each other's entries. */
  readonly owner: string;
  /** For a ledger that is read ahead. */
  readonly restored?: ReadAhead['restored'];
}

/**
 * The feature for one exchange. Place it after features that recover and run calls, and before those that
 * repair the history and fit it to the vendor, so that they see the complete history.
 */
export function reasoningMemory(options: ReasoningMemoryOptions): Feature {
  const { prefetch } = options.ledger;
  if (prefetch === undefined) return new ReasoningMemory(options);
  return new ReadingAhead(options, { prefetch, restored: options.restored });
}

/** A class, because it is created for each exchange: one object instead of four closures. */
class ReasoningMemory implements Feature {
  readonly name = 'session-ledger';
  readonly #ledger: SessionLedger;
  readonly #owner: string;
  /** The turns that the request pass of this try saw; the text before the expected answer is read from them. */
  #seen: { readonly by: FeatureContext; readonly turns: Conversation['turns'] } | undefined;

  constructor({ ledger, owner }: ReasoningMemoryOptions) {
    this.#ledger = ledger;
    this.#owner = owner;
  }

  mayApply(body: Buffer, { client, target }: FeatureContext): boolean {
    if (!mayLoseReasoning(client, target)) return false;
    if (client !== target.protocol || replayRules(target).text === 'all') return true;
    return mentionsTools(body);
  }

  request(conversation: Conversation, context: FeatureContext): Conversation {
    const { target, notes, client } = context;
    if (!mayLoseReasoning(client, target)) return conversation;
    this.#seen = { by: context, turns: conversation.turns };
    if (this.#ledger.empty) return conversation;
    const scope = scopeOf(this.#owner, target);
    return restore(conversation, { ledger: this.#ledger, scope, target, notes });
  }

  intercept(sent: Conversation, context: FeatureContext): Interceptor | undefined {
    const { target, client } = context;
    if (!mayLoseReasoning(client, target)) return undefined;
    const { turns } = this.#seen?.by === context ? this.#seen : sent;
    const ledger = this.#ledger;
    const owner = this.#owner;
    const before = () => textBefore(turns, turns.length);
    return lazyInterceptor(textsAreIgnored, () =>
      answerCollector(
        (answer) => storeAnswer(ledger, owner, target, answer, before),
        target.protocol === 'google-gemini' || target.profile.callSignatures === true,
      ),
    );
  }
}

/** The same with a ledger that is elsewhere. */
class ReadingAhead extends ReasoningMemory {
  readonly #owner: string;
  /** Whose entries this exchange has read ahead; what it adds itself is here. */
  readonly #providers = new Set<string>();

  constructor(
    options: ReasoningMemoryOptions,
    private readonly ahead: ReadAhead,
  ) {
    super(options);
    this.#owner = options.owner;
  }

  prepare(conversation: Conversation, context: FeatureContext): Promise<void> | undefined {
    const { target, client } = context;
    const { provider } = target;
    if (!mayLoseReasoning(client, target) || this.#providers.has(provider)) return undefined;
    this.#providers.add(provider);
    const scope = scopeOf(this.#owner, target);
    return readAhead(this.ahead, conversation, context, (turns) =>
      historyKeys(turns, conversation, { scope, target }),
    );
  }
}

/** Text alone is nothing to remember. */
const textsAreIgnored = () => true;

/**
 * If client and vendor speak the same protocol, only Chat clients lose reasoning. Clients of Messages and
 * Responses keep sealed reasoning, or the vendor stores it.
 */
const mayLoseReasoning = (client: ProtocolName, target: Target): boolean =>
  client !== target.protocol || client === 'openai-chat';

function storeAnswer(
  ledger: SessionLedger,
  owner: string,
  target: Target,
  { pieces, text }: CollectedAnswer,
  before: () => string,
): void {
  const { provider, protocol, model } = target;
  const rules = replayRules(target);
  const ids = pieces.flatMap((piece) => (piece.type === 'call' ? [piece.id] : []));
  const useful = pieces.some((piece) => {
    if (piece.type === 'call') return piece.sealed !== undefined;
    if (piece.type === 'sealed-text') return true;
    return piece.type === 'reasoning' && isReplayed(piece.block, target, rules, ids.length > 0);
  });
  if (!useful) return;
  const scope = scopeOf(owner, target);
  const keys =
    ids.length > 0
      ? ids.map((id) => callKey(scope, id, before))
      : text === undefined
        ? []
        : textKeys(scope, text, before);
  if (keys.length === 0) return;
  const id = Bun.hash(keys.join()).toString(36);
  ledger.put(keys, { id, provider, protocol, model, pieces });
}

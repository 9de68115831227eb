/** The session ledger: what a vendor wants back of its own answers is remembered for clients that do not send it. */

import type { Target } from '../../conversation/target.ts';
import { mentionsTools } from '../../conversation/tools/tool-texts.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import {
  type Feature,
  type FeatureContext,
  type Interceptor,
  lazyInterceptor,
} from '../feature.ts';
import { collector, type Heard } from './collect.ts';
import { callKey, textKeys, wordsBefore } from './keys.ts';
import type { SessionLedger } from './ledger.ts';
import { restore } from './restore.ts';
import { isWanted, wantedBy } from './wanted.ts';

export { memorySessionLedger, type SessionLedger } from './ledger.ts';
export { openSessionLedger } from './session-ledger-store.ts';

export interface SessionLedgerOptions {
  readonly ledger: SessionLedger;
  /** The name of the gateway key; '' without auth. What one owner's answers left is not another's. */
  readonly owner: string;
}

/**
 * The feature of one exchange. It stands behind features that recover and run calls, and before those
 * that repair the history and fit it to the vendor, which then find it complete.
 */
export const sessionLedger = (options: SessionLedgerOptions): Feature => new Remembering(options);

/** One object for each exchange: as functions that close over it there would be four. */
class Remembering implements Feature {
  readonly name = 'session-ledger';
  readonly #ledger: SessionLedger;
  readonly #owner: string;
  /** Where the words before the answer that is awaited are read, as the pass of the same try saw them. */
  #seen: { readonly by: FeatureContext; readonly turns: Conversation['turns'] } | undefined;

  constructor({ ledger, owner }: SessionLedgerOptions) {
    this.#ledger = ledger;
    this.#owner = owner;
  }

  mayApply(body: Buffer, { client, target }: FeatureContext): boolean {
    if (!concerns(client, target)) return false;
    if (client !== target.protocol || wantedBy(target).text === 'all') return true;
    return mentionsTools(body);
  }

  request(conversation: Conversation, context: FeatureContext): Conversation {
    const { target, notes, client } = context;
    if (!concerns(client, target)) return conversation;
    this.#seen = { by: context, turns: conversation.turns };
    if (this.#ledger.empty) return conversation;
    const scope = { owner: this.#owner, provider: target.provider };
    return restore(conversation, { ledger: this.#ledger, scope, target, notes });
  }

  intercept(sent: Conversation, context: FeatureContext): Interceptor | undefined {
    const { target, client } = context;
    if (!concerns(client, target)) return undefined;
    const { turns } = this.#seen?.by === context ? this.#seen : sent;
    const ledger = this.#ledger;
    const owner = this.#owner;
    const words = () => wordsBefore(turns, turns.length);
    return lazyInterceptor(textsAreIgnored, () =>
      collector((heard) => remember(ledger, owner, target, heard, words)),
    );
  }
}

/** Text alone is nothing to remember. */
const textsAreIgnored = () => true;

/**
 * Between a client and a vendor of the same protocol only Chat loses anything: clients of Messages and
 * Responses hold what was sealed, or have left it to the vendor.
 */
const concerns = (client: ProtocolName, target: Target): boolean =>
  client !== target.protocol || client === 'openai-chat';

function remember(
  ledger: SessionLedger,
  owner: string,
  target: Target,
  { pieces, said }: Heard,
  before: () => string,
): void {
  const { provider, protocol, model } = target;
  const wanted = wantedBy(target);
  const ids = pieces.flatMap((piece) => (piece.type === 'call' ? [piece.id] : []));
  const useful = pieces.some((piece) => {
    if (piece.type === 'call') return piece.sealed !== undefined;
    return piece.type === 'reasoning' && isWanted(piece.block, target, wanted, ids.length > 0);
  });
  if (!useful) return;
  const scope = { owner, provider };
  const keys =
    ids.length > 0
      ? ids.map((id) => callKey(scope, id, before))
      : said === undefined
        ? []
        : textKeys(scope, said, before);
  if (keys.length === 0) return;
  const id = Bun.hash(keys.join()).toString(36);
  ledger.put(keys, { id, provider, protocol, model, pieces });
}

/** Server tools as a feature: made for one exchange, it offers, intercepts, runs and re-enters. */

import { withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import type { Conversation, Turn } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { MINT } from './citations/sources.ts';
import { makeForced, withPreface } from './forced.ts';
import { restoreHistory } from './history.ts';
import { hopInterceptor } from './hop.ts';
import { inject } from './inject.ts';
import { nestedSearch } from './nested-search.ts';
import { isNative, latestUserText, NOTHING, type Offered } from './offer.ts';
import { runRound } from './round.ts';
import { type ServerToolOptions, Session } from './session.ts';

export { openHopLedger } from './hop-ledger-store.ts';
export { type HopEntry, type HopLedger, memoryLedger } from './ledger.ts';
export { liveRegistry } from './live-registry.ts';
export { type ToolRegistry, toolRegistry } from './registry.ts';
export type { ServerToolOptions } from './session.ts';

const MINTED = Buffer.from(MINT);
const ANSWERED = needles('"assistant"', '_call"');
// Searches, fetches and code, as all protocols' declarations of them begin (Kimi's is `$web_search`). Two looks through each body, and
// no more: those of large ones take long.
const HOSTED = needles('web_', '"code_');

/**
 * May this body declare a tool that the vendor runs itself? It may pause its turn in the middle of one, and
 * somebody has to ask it to go on: work for this feature even where no tool is configured.
 */
export const mayDeclareHosted = (body: Buffer): boolean => containsAny(body, HOSTED);

/**
 * The feature of one exchange. It stands behind features that complete the request (stored responses)
 * and that turn text into calls, and before those that repair and fit it to the target.
 */
export function serverTools(options: ServerToolOptions): Feature {
  const { registry, ledger } = options;
  const session = new Session(options);
  const offerable = () =>
    registry.starting === true || registry.tools.some((tool) => tool.inject !== 'declared');
  /** Restored histories by what they were restored from, for one kind of target. */
  let histories: WeakMap<readonly Turn[], Map<string, readonly Turn[]>> | undefined;
  /** What was made here, so that a second pass changes nothing. */
  const made: Conversation[] = [];
  let input: Conversation | undefined;
  const lead: StreamEvent[] = [];

  function historyOf(turns: readonly Turn[], context: FeatureContext): readonly Turn[] {
    const kind = registry.tools
      .map(({ hosted: name }) => (name !== undefined && isNative(name, context.target) ? 1 : 0))
      .join('');
    histories ??= new WeakMap();
    const known = histories.get(turns) ?? new Map<string, readonly Turn[]>();
    histories.set(turns, known);
    const before = known.get(kind);
    if (before !== undefined) return before;
    const { sources } = session;
    const { target, notes } = context;
    const restored = restoreHistory(turns, {
      ledger,
      owner: options.owner,
      registry,
      target,
      sources,
      notes,
    });
    known.set(kind, restored);
    return restored;
  }

  const offerOf = (asked: Conversation, context: FeatureContext) => {
    const turns = (session.base ?? asked).turns;
    return session.offer(asked, context.target, () => historyOf(turns, context));
  };
  const offerOn = (asked: Conversation, context: FeatureContext) =>
    options.limits.rounds > 0 || lead.length > 0 ? offerOf(asked, context) : NOTHING;

  function request(conversation: Conversation, context: FeatureContext): Conversation {
    if (made.includes(conversation)) return conversation;
    if (session.base === undefined) input = conversation;
    const base = session.base ?? conversation;
    const turns = withPreface(allTurns(conversation, base, context), session.preface);
    for (const block of session.preface[0]?.blocks ?? []) {
      if (block.type === 'tool-call')
        context.notes.add('tool_call_forced', '/messages', block.name);
    }
    const whole = turns === conversation.turns ? conversation : withParts(conversation, { turns });
    const offer = offerOn(base, context);
    const changed = inject(whole, offer, {
      last: session.isLast(context.hop),
      followUp: session.delta.length > 0,
      notes: context.notes,
    });
    if (changed !== conversation) made.push(changed);
    return changed;
  }

  /** The original's turns restored, and behind them what this exchange added, as it was added. */
  function allTurns(
    conversation: Conversation,
    base: Conversation,
    context: FeatureContext,
  ): readonly Turn[] {
    const { delta } = session;
    const history = historyOf(base.turns, context);
    if (delta.length === 0) {
      return conversation === base ? history : historyOf(conversation.turns, context);
    }
    const follows =
      conversation.turns.length === base.turns.length + delta.length &&
      conversation.turns.at(-1) === delta.at(-1);
    if (follows || conversation === base) {
      return history === base.turns && follows ? conversation.turns : [...history, ...delta];
    }
    // Somebody else has rebuilt the conversation on the way: theirs is sent, not ours.
    options.log('chat.process.hop3.fallback', { reason: 'conversation_rebuilt' });
    return conversation.turns;
  }

  /** A search that the request itself spells out is made at once, whatever the model would do. */
  async function prefetch(
    asked: Conversation,
    context: FeatureContext,
    signal: AbortSignal,
  ): Promise<void> {
    const found = nestedSearch(asked);
    if (found === undefined) return;
    const offered = offerOf(asked, context).list.find(
      ({ declared }) => declared?.name === 'web_search',
    );
    if (offered === undefined || session.delta.length > 0) return;
    session.base = asked;
    const call = callFor(offered, found);
    const block = {
      type: 'tool-call',
      id: call.id,
      name: offered.name,
      kind: 'function',
      input: call.input,
      by: 'client',
    } as const;
    const events: StreamEvent[] = [];
    await runRound(session, [block], [call], {
      signal,
      emit: (more) => events.push(...more),
    });
    // The stream has not begun: its blocks are counted when it does.
    session.blocks = 0;
    lead.push(...events);
  }

  return {
    name: 'server-tools',
    mayApply(body, { hop }) {
      if (hop > 1 || offerable()) return true;
      if (mayDeclareHosted(body) || body.includes(MINTED)) return true;
      return !ledger.empty && containsAny(body, ANSWERED);
    },
    async prepare(conversation, context, signal) {
      if (context.hop > 1) return;
      const offer = () => offerOf(conversation, context);
      lead.push(...((await makeForced(session, conversation, offer, signal)) ?? []));
      if (options.limits.rounds === 0) return;
      await registry.ready?.(signal, () => latestUserText(conversation.turns));
      await prefetch(conversation, context, signal);
    },
    request,
    intercept(sent, context) {
      const { target, hop } = context;
      let base = session.base ?? input;
      if (base === undefined) {
        // No pass has seen the original: what was sent is all there is to go on from.
        base = sent;
        options.log('chat.process.hop3.fallback', { reason: 'missing_chat_process_raw' });
      }
      const offer = offerOn(base, context);
      const paused = sent.tools.some(
        (tool) => tool.type === 'hosted' && isNative(tool.name, target),
      );
      if (hop === 1 && offer.list.length === 0 && lead.length === 0 && !paused) return undefined;
      const last = session.isLast(hop);
      return hopInterceptor({ session, offer, base, sent, hop, last, lead: hop === 1 ? lead : [] });
    },
  };
}

function callFor(offered: Offered, query: string) {
  return { id: prefixedId('call_'), offered, input: JSON.stringify({ query }) };
}

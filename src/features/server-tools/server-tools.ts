/** The server-tools feature of one exchange: offers tools, intercepts their calls and asks for the next hop. */

import { withParts } from '../../conversation/edit.ts';
import type { StreamEvent } from '../../conversation/events.ts';
import { refusesTools } from '../../conversation/refusal/refused-tools.ts';
import type { Conversation, ProtocolName, Turn } from '../../conversation/types.ts';
import { containsAny, needles } from '../../lib/bytes/bytes.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { MINT } from './citations/sources.ts';
import { runForcedCalls, runNestedSearch, saidIn, withPreface } from './early-calls.ts';
import { historyKeys, restoreHistory } from './history.ts';
import { HopInterceptor } from './hop-interceptor.ts';
import { type Declared, EMPTY_OFFER, inject, isNative, latestUserText } from './offer.ts';
import { type ServerToolOptions, Session } from './session.ts';

const MINTED = needles(MINT);
const ANSWERED = needles('"assistant"', '_call"');
const ANSWERED_GEMINI = needles('"model"');
// How declarations of searches, fetches and code execution begin (Kimi's is `$web_search`). Only two needles: each
// one is a pass over the whole body.
const HOSTED = needles('web_', '"code_');
// Google's in both spellings: googleSearch, urlContext, codeExecution.
const HOSTED_GEMINI = needles('"google', '"url', '"code');

/**
 * May this body declare a tool that the vendor runs itself? The vendor may pause its turn in the middle
 * of such a call and must then be asked to continue. This feature does that, even without tools of its own.
 */
export const mayDeclareHosted = (body: Buffer, client: ProtocolName): boolean =>
  containsAny(body, client === 'google-gemini' ? HOSTED_GEMINI : HOSTED);

export interface ServerToolsFeature extends Feature {
  /** The history as the request pass restores it, for {@link ReadAhead.restored}. */
  restored(
    conversation: Conversation,
    context: FeatureContext,
  ): Promise<readonly Turn[]> | undefined;
}

/**
 * The feature of one exchange. It comes after the features that complete the request (stored responses)
 * and that turn text into calls, and before those that repair the request and fit it to the target.
 */
export function serverTools(options: ServerToolOptions): ServerToolsFeature {
  const { registry, ledger } = options;
  const session = new Session(options);
  const hasOffers = () =>
    registry.starting === true || registry.tools.some((tool) => tool.inject !== 'declared');
  /** Restored histories by the original turns, then by which hosted tools the target runs itself. */
  let histories: WeakMap<readonly Turn[], Map<string, readonly Turn[]>> | undefined;
  /** Conversations made here: a second pass leaves them unchanged. */
  const made: Conversation[] = [];
  let input: Conversation | undefined;
  /** What is read ahead of this conversation. */
  let reading: { readonly of: Conversation; readonly done: Promise<void> | undefined } | undefined;
  /** Events of the calls made before the model was asked. */
  const lead: StreamEvent[] = [];

  function historyOf(
    turns: readonly Turn[],
    context: FeatureContext,
    declared: Declared,
  ): readonly Turn[] {
    const { target, notes } = context;
    const natives = registry.tools
      .map(({ hosted: name }) => (name !== undefined && isNative(name, target, declared) ? 1 : 0))
      .join('');
    histories ??= new WeakMap();
    const byNatives = histories.get(turns) ?? new Map<string, readonly Turn[]>();
    histories.set(turns, byNatives);
    const cached = byNatives.get(natives);
    if (cached !== undefined) return cached;
    const { sources } = session;
    const { owner } = options;
    const given = { ledger, owner, registry, target, declared, sources, notes };
    const restored = restoreHistory(turns, given);
    byNatives.set(natives, restored);
    return restored;
  }

  const offerOf = (original: Conversation, context: FeatureContext) => {
    const { turns } = session.base ?? original;
    return session.offer(original, context.target, () => historyOf(turns, context, original));
  };
  const activeOffer = (original: Conversation, context: FeatureContext) =>
    options.limits.rounds > 0 || lead.length > 0 ? offerOf(original, context) : EMPTY_OFFER;

  function request(conversation: Conversation, context: FeatureContext): Conversation {
    if (made.includes(conversation)) return conversation;
    if (session.base === undefined) input = conversation;
    const base = session.base ?? conversation;
    const { preface } = session;
    const takesTools = context.target.profile.maxTools !== 0;
    const turns = withPreface(
      allTurns(conversation, base, context),
      takesTools ? preface : saidIn(preface),
    );
    for (const block of preface[0]?.blocks ?? []) {
      if (block.type === 'tool-call') {
        context.notes.add('tool_call_forced', '/messages', block.name);
      }
    }
    if (!takesTools && preface.length > 0) {
      context.notes.add('content_bridged', '/messages', 'results of forced calls');
    }
    const offer = activeOffer(base, context);
    const given = takesTools ? offer : { ...offer, tools: [] };
    const changed = inject(withParts(conversation, { turns }), given, {
      last: session.isLast(context.hop),
      followUp: session.addedTurns.length > 0,
      notes: context.notes,
    });
    if (changed !== conversation) made.push(changed);
    return changed;
  }

  /** The restored turns of the original, then the turns that this exchange added. */
  function allTurns(
    conversation: Conversation,
    base: Conversation,
    context: FeatureContext,
  ): readonly Turn[] {
    const { addedTurns } = session;
    const history = historyOf(base.turns, context, base);
    if (addedTurns.length === 0) {
      return conversation === base ? history : historyOf(conversation.turns, context, base);
    }
    const endsWithAdded =
      conversation.turns.length === base.turns.length + addedTurns.length &&
      conversation.turns.at(-1) === addedTurns.at(-1);
    if (endsWithAdded || conversation === base) {
      return history === base.turns && endsWithAdded
        ? conversation.turns
        : [...history, ...addedTurns];
    }
    // Another feature has rebuilt the conversation: its turns are sent as they are.
    options.log('chat.process.hop3.fallback', { reason: 'conversation_rebuilt' });
    return conversation.turns;
  }

  return {
    name: 'server-tools',
    mayApply(body, { hop, client }) {
      if (hop > 1 || hasOffers()) return true;
      if (mayDeclareHosted(body, client) || containsAny(body, MINTED)) return true;
      return (
        !ledger.empty && containsAny(body, client === 'google-gemini' ? ANSWERED_GEMINI : ANSWERED)
      );
    },
    // All of them were the gateway's: the next try comes without.
    repairsRefusal: (refusal) =>
      refusesTools(refusal) && hasOffers() && (session.base ?? input)?.tools.length === 0,
    restored(conversation, context) {
      if (context.hop > 1 || reading?.of !== conversation) return undefined;
      return (reading.done ?? Promise.resolve()).then(() =>
        historyOf(conversation.turns, context, conversation),
      );
    },
    async prepare(conversation, context, signal) {
      if (context.hop > 1) return;
      if (ledger.prefetch !== undefined) {
        // Another try of the same request has them.
        if (reading?.of !== conversation) {
          const done = ledger.prefetch(historyKeys(conversation.turns, options.owner));
          reading = { of: conversation, done };
        }
        if (reading.done !== undefined) await reading.done;
      }
      const offer = () => offerOf(conversation, context);
      lead.push(...(await runForcedCalls(session, conversation, offer, signal)));
      if (options.limits.rounds === 0) return;
      await registry.ready?.(signal, () => latestUserText(conversation.turns));
      lead.push(...(await runNestedSearch(session, conversation, offer, signal)));
    },
    request,
    intercept(sent, context) {
      const { target, hop } = context;
      let base = session.base ?? input;
      if (base === undefined) {
        // No request pass saw the original, so the next hop continues what was sent.
        base = sent;
        options.log('chat.process.hop3.fallback', { reason: 'missing_chat_process_raw' });
      }
      const offer = activeOffer(base, context);
      const mayPause = sent.tools.some(
        (tool) => tool.type === 'hosted' && isNative(tool.name, target, sent),
      );
      if (hop === 1 && offer.tools.length === 0 && lead.length === 0 && !mayPause) return undefined;
      const { notes } = context;
      const given = { session, offer, base, sent, hop, lead: hop === 1 ? lead : [], notes };
      return new HopInterceptor({ ...given, last: session.isLast(hop) });
    },
  };
}

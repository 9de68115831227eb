/** Has the vendor keep the prompt of a session for its next turn, where the client cannot ask for that itself. */

import {
  cacheMarks,
  MAX_CACHE_MARKS,
  withFewerCacheMarks,
} from '../../conversation/cache-marks.ts';
import { withParts } from '../../conversation/edit.ts';
import { sessionKey } from '../../conversation/session/session-id.ts';
import type { Target } from '../../conversation/target.ts';
import type { CacheMark, Conversation, ProtocolName, Turn } from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { markInstructions, markPlaces } from './marks.ts';
import type { RequestTails } from './request-tails.ts';

export { RequestTails } from './request-tails.ts';

/** The exchange, as far as it is needed here. */
export interface Asker {
  readonly owner: string;
  /** The client's own; '' where it sends none. */
  readonly sessionId: string;
}

/** Protocols whose clients may set marks. */
const MARKING: ReadonlySet<ProtocolName> = new Set(['anthropic-messages', 'openai-chat']);

const MARK = Buffer.from('"cache_control"');
const TOOLS = Buffer.from('"tools"');
const ASSISTANT = Buffer.from('"assistant"');

/**
 * Of one exchange. Place it behind every pass that changes turns, tools or instructions: the marks stand where the request
 * ends that is sent.
 */
export class PromptCache implements Feature {
  readonly name = 'prompt-cache';
  #tried = false;

  /** @param tails where the requests of other exchanges ended */
  constructor(
    private readonly asker: Asker,
    private readonly tails: RequestTails,
  ) {}

  mayApply(body: Buffer, { client, target }: FeatureContext): boolean {
    if (this.#tried) this.tails.failed(this.asker);
    const { cacheMarks: takesMarks, breakpointsAt } = target.profile;
    if (target.promptCache === 'off') return false;
    if (client !== target.protocol && breakpointsAt) return true;
    if (takesMarks !== true) return false;
    // Clients of Messages set their own. Within its protocol, tool pairing removes those that are too many.
    if (client === 'anthropic-messages') return client !== target.protocol && hasTooMany(body);
    if (client !== target.protocol) return true;
    if (body.includes(MARK)) return hasTooMany(body);
    return body.includes(TOOLS) || body.includes(ASSISTANT);
  }

  request(conversation: Conversation, context: FeatureContext): Conversation {
    const { target, client } = context;
    if (target.promptCache === 'off') return conversation;
    if (target.profile.cacheMarks === true) {
      this.#tried = true;
      return withMarks(conversation, context, this.asker, this.tails);
    }
    return target.profile.breakpointsAt && client !== target.protocol
      ? withKey(conversation, context, this.asker)
      : conversation;
  }
}

/** May there be more marks than vendors take? */
function hasTooMany(body: Buffer): boolean {
  let count = 0;
  for (let at = body.indexOf(MARK); at >= 0; at = body.indexOf(MARK, at + MARK.length)) {
    if (++count > MAX_CACHE_MARKS) return true;
  }
  return false;
}

function withMarks(
  given: Conversation,
  { target, client, notes, hop }: FeatureContext,
  asker: Asker,
  tails: RequestTails,
): Conversation {
  const { conversation, removed } = withFewerCacheMarks(given);
  if (removed > 0) notes.add(`removed_${removed}_cache_control_fields`);
  const marks = MARKING.has(client) ? [...cacheMarks(conversation)] : [];
  const root = rootMark(conversation, target);
  const last = marks.at(-1);
  if (root === undefined && (last !== undefined || client === 'anthropic-messages')) {
    // The client sets its own. What this gateway has added behind them is read again by the next hop.
    const adds = hop > 1 && last !== undefined && marks.length < MAX_CACHE_MARKS;
    return adds ? markPlaces(conversation, target, last, ['end'], 1, notes) : conversation;
  }
  if (root === 'taken') return conversation;
  const mark = root ?? (target.promptCache === '1h' ? { ttl: '1h' } : {});
  const { tools, turns } = conversation;
  // A single question is not cached: no later request would read it.
  if (root === undefined && tools.length === 0 && hop === 1 && !turns.some(isAnswer)) {
    return conversation;
  }
  const previous = tails.previous(keyOf(asker, conversation), asker, target, turns);
  const bare = root === undefined ? conversation : withoutRootMark(conversation);
  // The tools are part of all prefixes: of more than four places they can go.
  const places = ['end', 'instructions', ...previous, 'tools'] as const;
  return markPlaces(bare, target, mark, places, MAX_CACHE_MARKS - marks.length, notes);
}

const isAnswer = ({ role }: Turn): boolean => role === 'assistant';

/**
 * The mark at the top of a Chat client's body, which asks for marks that move along. `taken`: the vendor places them
 * itself; not every place where Claude is served does.
 */
function rootMark(
  { origin, settings }: Conversation,
  { profile, protocol, refusedFields }: Target,
): CacheMark | 'taken' | undefined {
  const mark = settings.rest?.cache_control;
  if (origin?.protocol !== 'openai-chat' || !isObject(mark)) return undefined;
  const refused = refusedFields?.some((path) => path.length === 1 && path[0] === 'cache_control');
  if (protocol === 'openai-chat' || (profile.rootCacheMark !== false && !refused)) return 'taken';
  return typeof mark.ttl === 'string' ? { ttl: mark.ttl } : {};
}

function withoutRootMark(conversation: Conversation): Conversation {
  const { rest = {}, ...settings } = conversation.settings;
  const { cache_control: _, ...others } = rest;
  return withParts(conversation, { settings: { ...settings, rest: others } });
}

/** A vendor that finds a prompt again by a key, and by breakpoints in it. */
function withKey(
  conversation: Conversation,
  { target, notes }: FeatureContext,
  asker: Asker,
): Conversation {
  const marked = markInstructions(conversation);
  const refused = target.refusedFields?.some((path) => path.at(-1) === 'prompt_cache_key');
  if (marked.settings.cacheKey !== undefined || refused) return marked;
  notes.add('prompt_cache_key_added', 'prompt_cache_key', 'of this session');
  return withParts(marked, {
    settings: { ...marked.settings, cacheKey: keyOf(asker, conversation) },
  });
}

const keyOf = ({ owner, sessionId }: Asker, conversation: Conversation): string =>
  sessionKey(owner, sessionId, conversation);

/** The beginning of a history that pairing has let through before, and so need not look at again. */

import type { Profile } from '../../conversation/profile-facts.ts';
import type { Target } from '../../conversation/target.ts';
import type { Conversation, ProtocolName, Turn } from '../../conversation/types.ts';
import { isObject } from '../../lib/json/json.ts';

/** What the outcome depends on beside the turns. */
interface Circumstances {
  readonly protocol: ProtocolName;
  readonly origin: ProtocolName | undefined;
  readonly provider: string;
  readonly profile: Profile;
  readonly madeBy: string | undefined;
}

interface Settled extends Circumstances {
  readonly turns: readonly Turn[];
  /** Of their calls and results. */
  readonly ids: Set<string>;
}

/** Clients move cache marks over their newest messages, which are other turns then. */
const NEWEST = 4;
/** Turns that may have come since the last request. */
const MAX_NEW = 64;
/** A shorter history is looked at in no time. */
const MIN = 16;

/**
 * By the last turn of the prefix: a turn is one object for as long as its session is kept (decision 30), and of one
 * owner. A line of requests has one prefix, the longest.
 */
const prefixes = new WeakMap<Turn, Settled>();

/**
 * The turns behind the longest prefix that was let through unchanged in the same circumstances. The prefix stands for
 * itself: every call in it has its result in it, none is the vendor's own, and an answer of the model follows. So what
 * comes behind it can change it only by its ids: undefined where one of them stands in the prefix, too.
 */
export function unsettledTurns(
  conversation: Conversation,
  target: Target,
  madeBy: string | undefined,
): readonly Turn[] | undefined {
  const { turns } = conversation;
  if (turns.length < MIN) return undefined;
  const now = circumstances(conversation, target, madeBy);
  const found = prefixOf(turns, turns.length - 1, now);
  if (found === undefined || turns[found.turns.length]!.role !== 'assistant') return undefined;
  const rest = turns.slice(found.turns.length);
  return rest.some((turn) => idsOf(turn).some((id) => found.ids.has(id))) ? undefined : rest;
}

/** Keeps what was let through unchanged, as far as it stands for itself. */
export function keepSettled(
  conversation: Conversation,
  target: Target,
  madeBy: string | undefined,
): void {
  const { turns } = conversation;
  if (turns.length < MIN) return;
  let end = turns.length - NEWEST;
  while (end > 0 && !(turns[end]!.role === 'assistant' && turns[end - 1]!.role === 'user')) end--;
  if (end <= 0) return;
  const now = circumstances(conversation, target, madeBy);
  const before = prefixOf(turns, end, now);
  if (before?.turns.length === end) return;
  const added = turns.slice(before?.turns.length ?? 0, end);
  if (added.some(hasVendorsOwn)) return;
  const ids = before?.ids ?? new Set();
  for (const turn of added) for (const id of idsOf(turn)) ids.add(id);
  // Its ids have grown: requests that branch off there begin anew.
  if (before !== undefined) prefixes.delete(before.turns.at(-1)!);
  prefixes.set(turns[end - 1]!, { ...now, turns: turns.slice(0, end), ids });
}

/** @param most turns that it may hold */
function prefixOf(turns: readonly Turn[], most: number, now: Circumstances): Settled | undefined {
  for (let end = most; end > Math.max(0, most - MAX_NEW); end--) {
    const found = prefixes.get(turns[end - 1]!);
    if (found === undefined || found.turns.length !== end || !isSame(found, now)) continue;
    if (found.turns.every((turn, i) => turn === turns[i])) return found;
  }
  return undefined;
}

const circumstances = (
  { origin }: Conversation,
  { protocol, provider, profile }: Target,
  madeBy: string | undefined,
): Circumstances => ({ protocol, origin: origin?.protocol, provider, profile, madeBy });

const isSame = (one: Circumstances, other: Circumstances): boolean =>
  one.protocol === other.protocol &&
  one.origin === other.origin &&
  one.provider === other.provider &&
  one.profile === other.profile &&
  one.madeBy === other.madeBy;

/** Of its calls and results, and of an item of Responses its own. */
function idsOf({ blocks, wire }: Turn): readonly string[] {
  const ids: string[] = [];
  for (const block of blocks) {
    if (block.type === 'tool-call') ids.push(block.id);
    else if (block.type === 'tool-result') ids.push(block.callId);
  }
  const own = isObject(wire?.value) ? wire.value.id : undefined;
  if (typeof own === 'string') ids.push(`item ${own}`);
  return ids;
}

const hasVendorsOwn = ({ blocks }: Turn): boolean =>
  blocks.some(
    (block) =>
      (block.type === 'tool-call' || block.type === 'tool-result') && block.by === 'provider',
  );

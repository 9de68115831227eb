/** Where the vendor's prompt cache was lost between two exchanges of a conversation, and by which change. */

import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import { blockViews, type ViewOptions } from '../bodies/conversation-view.ts';
import type { UiRow } from '../list.ts';

export interface CacheLoss {
  /** Tokens that the exchange before had read from or written to the cache, and this one did not read. */
  readonly tokens: number;
  /** What changed in the prompt in front of the new turns; `none`: nothing did. */
  readonly change: 'target' | 'tools' | 'system' | 'turn' | 'none';
  /** In words, with the first difference. */
  readonly text: string;
}

interface Sent {
  readonly row: UiRow;
  readonly prompt: Prompt;
}

/** Vendors cache in blocks of up to so many tokens, so that a little less is no loss. */
const SLACK_TOKENS = 1500;
const SLACK_SHARE = 0.9;
/** Characters of a difference. */
const SHOWN = 60;

/**
 * Of an exchange whose vendor reports its prompt cache.
 * @param before the exchange before in the same conversation
 */
export function cacheOf(now: Sent, before: Sent | undefined) {
  const { input_tokens: input, cached_tokens: cached } = now.row;
  if (input === null || cached === null) return null;
  return {
    /** cached / input. */
    share: input === 0 ? 0 : cached / input,
    /** The cache of the exchange before was not used; null: it was, or there was none. */
    lost: before === undefined ? null : lossOf(now, before, cached),
  };
}

function lossOf(now: Sent, before: Sent, cached: number): CacheLoss | null {
  const { cached_tokens: read, cache_write_tokens: written } = before.row;
  const known = (read ?? 0) + (written ?? 0);
  if (known - cached <= SLACK_TOKENS && cached >= known * SLACK_SHARE) return null;
  if (known <= cached) return null;
  return { tokens: known - cached, ...changeOf(now, before) };
}

function changeOf(now: Sent, before: Sent): Pick<CacheLoss, 'change' | 'text'> {
  if (now.row.target !== before.row.target) {
    return {
      change: 'target',
      text: `It went to ${now.row.target}, the one before to ${before.row.target}.`,
    };
  }
  const tools = toolChange(now.prompt, before.prompt);
  if (tools !== undefined) return { change: 'tools', text: tools };
  if (now.prompt.system !== before.prompt.system) {
    return { change: 'system', text: systemChange(before.prompt.system, now.prompt.system) };
  }
  const shared = sharedTurns(now.prompt, before.prompt);
  const kept = before.prompt.turns.length;
  if (shared < kept) {
    return { change: 'turn', text: `Turn ${shared + 1} of ${kept} is not what it was before.` };
  }
  const minutes = Math.round((now.row.time - before.row.time) / 60_000);
  const age =
    minutes > 0
      ? ` The exchange before was ${minutes} min earlier: the entry may have expired.`
      : '';
  return { change: 'none', text: `The prompt in front of the new turns is the same.${age}` };
}

function toolChange(now: Prompt, before: Prompt): string | undefined {
  const names = (of: Prompt, not: Prompt) =>
    [...of.tools.keys()].filter((name) => !not.tools.has(name));
  const added = names(now, before);
  const removed = names(before, now);
  const changed = [...now.tools].filter(
    ([name, mark]) => before.tools.has(name) && before.tools.get(name) !== mark,
  );
  const parts = [
    added.length > 0 ? `added ${some(added)}` : '',
    removed.length > 0 ? `removed ${some(removed)}` : '',
    changed.length > 0 ? `changed ${some(changed.map(([name]) => name))}` : '',
  ].filter((part) => part !== '');
  if (parts.length > 0) return `The tools changed: ${parts.join(', ')}.`;
  const order = (of: Prompt) => [...of.tools.keys()].join('\n');
  return order(now) === order(before) ? undefined : 'The tools stand in another order.';
}

const some = (names: readonly string[]) =>
  names.length <= 4
    ? names.join(', ')
    : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;

function systemChange(before: string, now: string): string {
  let at = 0;
  while (at < before.length && before[at] === now[at]) at++;
  const shown = (text: string) =>
    JSON.stringify(text.slice(Math.max(0, at - 12), at + SHOWN).toWellFormed());
  return `The system prompt changed at character ${at + 1} of ${before.length}: ${shown(before)} became ${shown(now)}.`;
}

/** The parts of a prompt in the order in which vendors cache them. */
export interface Prompt {
  readonly tools: ReadonlyMap<string, string>;
  readonly system: string;
  /** One mark for each turn. */
  readonly turns: readonly string[];
}

const WHOLE: ViewOptions = { most: Number.MAX_SAFE_INTEGER, places: new Map() };

const markOf = (value: unknown): string => Bun.hash(JSON.stringify(value)).toString(36);

/** Marks say what a part says, whatever cache points and other fields stand beside it. */
export function* promptOf(conversation: Conversation): Steps<Prompt> {
  const turns: string[] = [];
  for (const turn of conversation.turns) {
    turns.push(turnMark(turn));
    yield;
  }
  return {
    tools: new Map(
      conversation.tools.map((tool) => {
        const { wire: _, ...said } = tool as typeof tool & { wire?: unknown };
        return [tool.name, markOf(said)];
      }),
    ),
    system: textOf(conversation.system),
    turns,
  };
}

const turnMark = ({ role, blocks }: Turn): string => markOf([role, blockMarks(blocks)]);

/** Media by their content as well: a view has only their size. */
const blockMarks = (blocks: readonly Block[]): unknown =>
  blocks.map((block) => {
    if (block.type === 'media') return markOf(block.source);
    if (block.type === 'tool-result')
      return [block.callId, block.isError, blockMarks(block.content)];
    return blockViews([block], WHOLE);
  });

const textOf = (blocks: readonly Block[]): string =>
  blocks.map((block) => ('text' in block ? (block.text ?? '') : '')).join('\n');

/** How many turns from the beginning two prompts share. */
export function sharedTurns(a: Prompt, b: Prompt): number {
  let i = 0;
  while (i < a.turns.length && i < b.turns.length && a.turns[i] === b.turns[i]) i++;
  return i;
}

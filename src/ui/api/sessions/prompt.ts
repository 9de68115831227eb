/** A prompt as marks of its parts, so that the prompts of a session can be compared: which one continues which. */

import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import { blockViews, type ViewOptions } from '../bodies/conversation-view.ts';

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

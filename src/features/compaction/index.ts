/** Compacts a conversation where the vendor cannot: the model writes a summary, which later turns read in place of the history. */

import { editNode, isInstruction, mapUnchanged, withParts } from '../../conversation/edit.ts';
import { invalid } from '../../conversation/errors.ts';
import { openSummary, SEAL_ENVELOPE_PREFIX } from '../../conversation/seal.ts';
import type { Block, Conversation, OpaqueBlock, Settings, Turn } from '../../conversation/types.ts';
import { containsAny } from '../../lib/bytes/bytes.ts';
import { isObject } from '../../lib/json/json.ts';
import type { Feature, FeatureContext } from '../feature.ts';
import { COMPACTION, SummaryInterceptor } from './summary.ts';

/** The input item that asks for a compaction; it must be the last one. */
export const TRIGGER = 'compaction_trigger';

// A request that names an earlier response may get these items from there.
const MARKS = [TRIGGER, SEAL_ENVELOPE_PREFIX, '"previous_response_id"'].map((text) =>
  Buffer.from(text),
);

/** Anthropic's block with its own summary. */
const SUMMARIZED = Buffer.from('"compaction"');

/** What the model is told in place of the trigger. */
const REQUEST = [
  'The conversation above becomes too long for its context window and will be deleted. Write a summary of it, from which another model can go on without having read it.',
  'State: what the user wants, with all requirements, limits and preferences that were named; what was done and decided, and why; files, commands, names, ids, values and error messages that are still needed, word for word; what is unfinished, and the next steps.',
  'Answer with the summary alone. Call no tools, and do not go on with the task.',
].join('\n\n');

const HEADING =
  'The conversation before this point was compacted. This is its summary, written by the model that led it:';

/** The attempts whose answer is a summary. */
const summaries = new WeakSet<FeatureContext>();

/**
 * Place it behind what prepends earlier items, and before everything else: no other feature should see the trigger,
 * nor take the summary for an answer.
 */
export const compaction: Feature = {
  name: 'compaction',
  mayApply: (body, { client, target }) =>
    client === 'openai-responses'
      ? containsAny(body, MARKS)
      : client === 'anthropic-messages' && client !== target.protocol && body.includes(SUMMARIZED),
  request(conversation, context) {
    if (conversation.origin?.protocol === 'anthropic-messages') {
      return context.target.protocol === 'anthropic-messages'
        ? conversation
        : withParts(conversation, { turns: fromSummary(conversation.turns, context) });
    }
    if (conversation.origin?.protocol !== 'openai-responses') return conversation;
    const turns = readable(withoutCompacted(conversation.turns, context), context);
    const last = turns.length - 1;
    if (!isItem(turns[last], TRIGGER) || context.target.profile.compaction === true) {
      return withParts(conversation, { turns });
    }
    summaries.add(context);
    context.notes.add('compacted_by_summary', `input[${last}]`, 'the model writes a summary');
    return toSummarize(conversation, turns.slice(0, -1));
  },
  intercept: (_sent, context) => (summaries.has(context) ? new SummaryInterceptor() : undefined),
};

/**
 * The turns from Anthropic's last summary on, which Anthropic reads in place of all that stands before it.
 * @see https://platform.claude.com/docs/en/build-with-claude/compaction
 */
function fromSummary(turns: readonly Turn[], { notes }: FeatureContext): readonly Turn[] {
  const at = turns.findLastIndex(({ blocks }) => blocks.some(isSummary));
  if (at < 0) return turns;
  const turn = turns[at]!;
  const from = turn.blocks.findLastIndex(isSummary);
  const summary = turn.blocks[from] as OpaqueBlock;
  const rest = turn.blocks.slice(from + 1);
  const said = turns.slice(0, at).filter(isInstruction);
  notes.add('compacted_turns_dropped', `/messages/${at}`, `${at - said.length} messages`);
  return [
    ...said,
    userText(`${HEADING}\n\n${summary.text}`),
    ...(rest.length > 0 ? [editNode(turn, { blocks: rest })] : []),
    ...turns.slice(at + 1),
  ];
}

const isSummary = (block: Block): boolean =>
  block.type === 'opaque' && block.name === COMPACTION && Boolean(block.text);

/** Is this turn an item of that type, which means nothing in the other protocols? */
function isItem(turn: Turn | undefined, type: string): boolean {
  const block = turn?.blocks[0];
  return block?.type === 'opaque' && block.name === type;
}

/**
 * The turns without those that a later compaction stands for: instructions and the user's own messages stay, as they do
 * in the answer of the vendor's compaction. The same list if nothing was compacted.
 * @throws GatewayError invalid_request for a trigger that is not last and was not answered
 */
function withoutCompacted(turns: readonly Turn[], { notes }: FeatureContext): readonly Turn[] {
  const at = turns.findLastIndex(
    (turn, index) => index < turns.length - 1 && isItem(turn, TRIGGER),
  );
  if (at < 0) return turns;
  const param = `input[${at}]`;
  if (!turns.slice(at).some((turn) => isItem(turn, COMPACTION))) {
    throw invalid(`'${TRIGGER}' must be the final input item.`, param);
  }
  const left = turns.filter((turn, index) => index > at || outlives(turn));
  notes.add('compacted_turns_dropped', param, `${turns.length - left.length} items`);
  return left;
}

const outlives = ({ role, blocks }: Turn): boolean =>
  role === 'system' || role === 'developer' || (role === 'user' && blocks.every(isOwnWord));

const isOwnWord = ({ type }: Block): boolean => type === 'text' || type === 'media';

/** The turns with summaries of this gateway as text of the user's. */
function readable(turns: readonly Turn[], { notes }: FeatureContext): readonly Turn[] {
  return mapUnchanged(turns, (turn, index) => {
    const summary = summaryIn(turn);
    if (summary === undefined) return turn;
    notes.add('summary_read', `input[${index}]`, `${summary.length} characters`);
    return userText(`${HEADING}\n\n${summary}`);
  });
}

function summaryIn(turn: Turn): string | undefined {
  const [block] = turn.blocks;
  if (block?.type !== 'opaque' || block.name !== COMPACTION) return undefined;
  const { value } = block.wire;
  const sealed = isObject(value) ? value.encrypted_content : undefined;
  return typeof sealed === 'string' ? openSummary(sealed) : undefined;
}

const userText = (text: string): Turn => ({ role: 'user', blocks: [{ type: 'text', text }] });

/**
 * The request for the summary. The tools stay declared, since vendors refuse calls of undeclared tools, but may not be
 * called; those that the vendor runs are left out.
 */
function toSummarize(conversation: Conversation, turns: readonly Turn[]): Conversation {
  const tools = conversation.tools.filter(({ type }) => type !== 'hosted');
  const { format: _, toolChoice: __, ...others } = conversation.settings;
  const settings: Settings =
    tools.length === 0 ? others : { ...others, toolChoice: { type: 'none' } };
  return withParts(conversation, { turns: [...turns, userText(REQUEST)], tools, settings });
}

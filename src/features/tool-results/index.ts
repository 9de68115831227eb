/** Shortens tool results and removes executed-tool records from assistant text, for vendors that fail on large ones. */

import { editNode, mapBlocks, mapUnchanged, withParts } from '../../conversation/edit.ts';
import type { Notes } from '../../conversation/notes.ts';
import type { Turn } from '../../conversation/types.ts';
import { type Feature, type ReadAhead, readAhead } from '../feature.ts';
import { withoutResidue } from './residue.ts';
import { residueInterceptor } from './residue-interceptor.ts';
import type { ShortResultLedger } from './short-result-ledger.ts';
import { resultKeys, shortenResults } from './shorten.ts';

export { SHORT_RESULTS, type ShortResultLedger } from './short-result-ledger.ts';

export interface ToolResultsOptions {
  /** Maximum characters of a result's text; 0 means no limit. A function is called for each request, since the value may be reloaded. */
  readonly limit: number | (() => number);
  /** Opened and closed by the caller. With one that is read ahead, the feature is for one exchange. */
  readonly ledger: ShortResultLedger;
  /** For a ledger that is read ahead. */
  readonly restored?: ReadAhead['restored'];
}

/**
 * Active if the target's profile sets `shortToolResults`. The texts of the last round's results become
 * short and stay short in later requests. Executed-tool records in the model's own text are removed and
 * never executed. Nothing else is removed, moved or given another role.
 */
export function toolResults(options: ToolResultsOptions): Feature {
  const limit = () => (typeof options.limit === 'function' ? options.limit() : options.limit);
  const { restored } = options;
  const { prefetch } = options.ledger;
  let isRead = false;
  return {
    ...(prefetch !== undefined && {
      prepare(conversation, context) {
        if (context.target.profile.shortToolResults !== true || isRead) return undefined;
        isRead = true;
        return readAhead({ prefetch, restored }, conversation, context, resultKeys);
      },
    }),
    name: 'tool-results',
    mayApply: (_body, { target }) => target.profile.shortToolResults === true,
    request(conversation, { target, notes }) {
      if (target.profile.shortToolResults !== true) return conversation;
      const clean = withoutRecords(conversation.turns, notes);
      const turns = shortenResults(clean, {
        limit: limit(),
        ledger: options.ledger,
        errorsAsText: target.protocol !== 'anthropic-messages',
        notes,
      });
      return withParts(conversation, { turns });
    },
    intercept: (_sent, { target, notes }) =>
      target.profile.shortToolResults === true ? residueInterceptor(notes) : undefined,
  };
}

/** Removes records from assistant text, and turns that held nothing else. */
function withoutRecords(turns: readonly Turn[], notes: Notes): readonly Turn[] {
  return mapUnchanged(turns, (turn) => {
    if (turn.role !== 'assistant') return turn;
    const left = mapBlocks(turn, (block) => {
      if (block.type !== 'text') return block;
      const text = withoutResidue(block.text);
      if (text === block.text) return block;
      notes.add('tool_residue_removed', '/messages');
      return text.trim() === '' ? undefined : editNode(block, { text });
    });
    const onlyReasoning = left.blocks.every((block) => block.type === 'reasoning');
    return onlyReasoning && left !== turn ? undefined : left;
  });
}

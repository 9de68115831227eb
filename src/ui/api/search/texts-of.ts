/** The texts of an exchange for the search: what its request says, what it adds to the conversation, and the answer. */

import type { Block } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import type { ReadingParts } from '../../../samples/decode/decode-body.ts';
import type { SaidText, SampleMeta, SampleStore } from '../../../samples/sample.ts';
import { saidIn } from '../bodies/said.ts';

/** Bodies that cannot be read have no texts. */
export function* textsOf(
  store: SampleStore,
  meta: SampleMeta,
  parts: ReadingParts,
): Steps<SaidText[]> {
  const { sent, reply } = yield* saidIn(store, meta, parts);
  const texts: SaidText[] = [];
  if (sent !== undefined) {
    addBlocks(sent.system, false, texts);
    // Earlier exchanges have said the turns up to the last one of the assistant.
    const last = sent.turns.findLastIndex(({ role }) => role === 'assistant');
    for (const [i, turn] of sent.turns.entries()) addBlocks(turn.blocks, i > last, texts);
  }
  if (reply !== undefined) {
    addBlocks(reply.reply.blocks, true, texts);
    if (reply.problem !== undefined) texts.push({ text: reply.problem.message, added: true });
  }
  if (meta.error !== undefined) texts.push({ text: meta.error.message, added: true });
  return texts;
}

function addBlocks(blocks: readonly Block[], added: boolean, texts: SaidText[]): void {
  for (const block of blocks) {
    if (block.type === 'text' || block.type === 'refusal' || block.type === 'reasoning') {
      if (block.text !== '') texts.push({ text: block.text, added });
    } else if (block.type === 'tool-call') {
      texts.push({ text: `${block.name} ${block.input}`, added });
    } else if (block.type === 'tool-result') addBlocks(block.content, added, texts);
    else if (block.type === 'opaque' && block.text !== undefined) {
      texts.push({ text: block.text, added });
    }
  }
}

/** The texts of an exchange for the search: what its request says, what it adds to the conversation, and the answer. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Block, Conversation } from '../../../conversation/types.ts';
import type { Steps } from '../../../lib/loop/steps.ts';
import {
  contextFor,
  EMPTY,
  type ReadingParts,
  readReply,
  readRequest,
} from '../../../samples/decode/decode-body.ts';
import { readableBody } from '../../../samples/decode/readable-body.ts';
import type { SaidText, SampleMeta, SampleStore } from '../../../samples/sample.ts';

/** Bodies that are missing, too large or of another endpoint have no texts. */
export function* textsOf(
  store: SampleStore,
  meta: SampleMeta,
  parts: ReadingParts,
): Steps<SaidText[]> {
  const sent = yield* decoded(function* () {
    const body = readableBody(store, meta, 'client-request');
    return (yield* readRequest(body, parts)).conversation;
  });
  const texts: SaidText[] = [];
  if (sent !== undefined) {
    addBlocks(sent.system, false, texts);
    const from = newTurns(sent);
    for (const [i, turn] of sent.turns.entries()) addBlocks(turn.blocks, i >= from, texts);
  }
  const reply = yield* decoded(function* () {
    const body = readableBody(store, meta, 'client-response');
    return yield* readReply(body, contextFor(sent ?? EMPTY, meta, body), parts);
  });
  if (reply !== undefined) {
    addBlocks(reply.reply.blocks, true, texts);
    if (reply.problem !== undefined) texts.push({ text: reply.problem.message, added: true });
  }
  if (meta.error !== undefined) texts.push({ text: meta.error.message, added: true });
  return texts;
}

/** Undefined for what has no body that can be read. */
export function* decoded<T>(read: () => Steps<T>): Steps<T | undefined> {
  try {
    return yield* read();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return undefined;
    throw thrown;
  }
}

/** Index of the first turn after the last one of the assistant: earlier exchanges have said the others. */
export const newTurns = ({ turns }: Conversation): number =>
  turns.findLastIndex(({ role }) => role === 'assistant') + 1;

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

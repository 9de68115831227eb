/** Seals of an answer's text: where they stood in the answer, and how they come back there. */

import { editNode, isClientCall, mapBlocks, mapUnchanged } from '../../conversation/edit.ts';
import type { TextSeal } from '../../conversation/events.ts';
import type { Block, ProtocolName, TextBlock, Turn } from '../../conversation/types.ts';
import type { AnswerPiece, SealedText } from './session-ledger.ts';

const digestOf = (text: string) => Bun.hash(text).toString(36);

/** Follows the texts and calls of one answer and places its seals. */
export class TextSeals {
  readonly #texts: string[] = [];
  #length = 0;
  /** A seal of its own in an open text: other features may still hold text back that stands before it. */
  #waiting: TextSeal[] = [];
  #open = false;
  #call: string | undefined;

  begin(head: 'text' | 'call' | undefined, id?: string): void {
    this.#open = head === 'text';
    if (this.#open) this.#call = undefined;
    else if (head === 'call') this.#call = id;
  }

  text(text: string): void {
    this.#texts.push(text);
    this.#length += text.length;
  }

  /** The piece of a seal; undefined: later, or its place is not known. */
  seal(seal: TextSeal): SealedText | undefined {
    if (seal.text === '' && this.#open) {
      this.#waiting.push(seal);
      return undefined;
    }
    return this.#placed(seal);
  }

  /** The open block ends. */
  stop(): readonly SealedText[] {
    this.#open = false;
    const pieces = this.#waiting.flatMap((seal) => this.#placed(seal) ?? []);
    this.#waiting = [];
    return pieces;
  }

  #placed({ sealed, text }: TextSeal): SealedText | undefined {
    const whole = this.whole;
    if (!whole.endsWith(text)) return undefined;
    const call = text === '' ? this.#call : undefined;
    return {
      type: 'sealed-text',
      sealed,
      start: this.#length - text.length,
      end: this.#length,
      digest: digestOf(whole),
      ...(call === undefined ? {} : { call }),
    };
  }

  /** All text so far. */
  get whole(): string {
    if (this.#texts.length > 1) this.#texts.splice(0, this.#texts.length, this.#texts.join(''));
    return this.#texts[0] ?? '';
  }
}

/**
 * The answer with its texts' seals, for the protocol that made them. A seal comes back only if the text up to it
 * is as it was; a sealed piece of a longer text becomes a block of its own again. The same list if none does.
 */
export function withTextSeals(
  run: readonly Turn[],
  pieces: readonly AnswerPiece[],
  protocol: ProtocolName,
): readonly Turn[] {
  const known = pieces.filter(
    (piece): piece is SealedText =>
      piece.type === 'sealed-text' && piece.sealed.protocol === protocol,
  );
  if (known.length === 0) return run;
  const whole = run
    .flatMap(({ blocks }) => blocks.map((block) => (block.type === 'text' ? block.text : '')))
    .join('');
  const seals = known.filter(
    ({ end, digest }) => end <= whole.length && digestOf(whole.slice(0, end)) === digest,
  );
  let next = 0;
  let at = 0;
  const atText = seals.filter(({ call }) => call === undefined);
  const behind = Map.groupBy(seals, ({ call }) => call);

  function ofText(block: TextBlock): Block | readonly Block[] {
    const from = at;
    at += block.text.length;
    const out: Block[] = [];
    let written = from;
    const upTo = (end: number) => {
      if (end > written)
        out.push(editNode(block, { text: block.text.slice(written - from, end - from) }));
      written = Math.max(written, end);
    };
    for (let seal = atText[next]; seal !== undefined && seal.end <= at; seal = atText[++next]) {
      // A client that cut the text elsewhere has no such piece.
      if (seal.start < written) continue;
      upTo(seal.start);
      const text = whole.slice(seal.start, seal.end);
      out.push(editNode(block, { text, sealed: seal.sealed }));
      written = seal.end;
    }
    if (out.length === 0) return block;
    upTo(at);
    return out;
  }

  return mapUnchanged(run, (turn) =>
    mapBlocks(turn, (block) => {
      if (block.type === 'text') return ofText(block);
      const own = isClientCall(block) ? behind.get(block.id) : undefined;
      if (own === undefined) return block;
      return [block, ...own.map(({ sealed }): Block => ({ type: 'text', text: '', sealed }))];
    }),
  );
}

/**
 * Thoughts that a vendor sends twice: in a field of their own, and in tags where the text begins. MiniMax does so unless
 * `reasoning_split` is asked for (github.com/vellum-ai/vellum-assistant/pull/34556, github.com/can1357/oh-my-pi/pull/2434).
 * The copy is left out: cut by the pieces of the field, its own pieces would be texts of the answer. So is what a piece of the
 * field repeats: MiniMax documents pieces that each begin with all before them (github.com/MiniMax-AI/MiniMax-M2/issues/95).
 */

import type { Notes } from '../../../conversation/notes.ts';

const OPENING = /^\s*<((?:mm:)?think(?:ing)?)>/;
/** The beginning of an opening tag, whose rest may be in the next piece. */
const BEGINNING = /^\s*(?:<[mthinkg:]{0,11})?$/;
/** So many characters without white space tell whether two thoughts are the same. */
const COMPARED = 200;
/** So much text, nearly all of it white space, is not waited for any longer. */
const MAX_HELD = 4 * COMPARED;
/** Shorter beginnings may come twice by chance. */
const MIN_REPEATED = 8;

const squeezed = (text: string): string =>
  text.slice(0, MAX_HELD).replace(/\s+/g, '').slice(0, COMPARED);

const solid = (text: string): number => text.replace(/\s+/g, '').length;

export class CopiedThoughts {
  /** How the thoughts in their own field begin, without white space. */
  #thoughts = '';
  #state: 'before' | 'inside' | 'behind' | 'over' = 'before';
  /** Text that is not known to be the answer's. */
  #held = '';
  #closing = '';
  /** Characters without white space: of the thoughts in their own field, and of the copy so far. */
  #size = 0;
  #copied = 0;
  /** How the thoughts in their own field begin, and how long they are. */
  #first = '';
  #length = 0;
  /** Text behind as many characters as the thoughts have: of the answer, if nothing closes the tag. */
  #beyond = '';
  #isCopy = false;
  /** Something was left out. */
  hasLeftOut = false;

  constructor(private readonly notes: Notes) {}

  /** The piece of the thoughts in their own field, without what it repeats. */
  thought(piece: string): string {
    if (this.isOver) return piece;
    const text = this.#repeats(piece) ? piece.slice(this.#length) : piece;
    if (this.#first.length < COMPARED) this.#first += text.slice(0, COMPARED);
    this.#length += text.length;
    if (this.#thoughts.length < COMPARED) this.#thoughts += squeezed(text);
    this.#size += solid(text);
    return text;
  }

  /** Does the piece begin with all that came before? */
  #repeats(piece: string): boolean {
    const length = this.#length;
    const repeats =
      length >= MIN_REPEATED && piece.length >= length && piece.startsWith(this.#first);
    if (repeats && !this.hasLeftOut) this.#leaveOut();
    return repeats;
  }

  #leaveOut(): void {
    this.hasLeftOut = true;
    this.notes.add('leaked_thinking_moved', undefined, 'a copy');
  }

  /** The text of the answer has begun: nothing is looked for any more. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Text waits for what follows. */
  get holds(): boolean {
    return this.#held !== '';
  }

  /** The text of the answer in this piece and in those that waited; the copy is left out. */
  text(piece: string): string {
    switch (this.#state) {
      case 'before':
        this.#held += piece;
        return this.#begin();
      case 'inside':
        this.#held += piece;
        return this.#close();
      case 'behind': {
        // White space between the thoughts and the text is of neither.
        const text = piece.trimStart();
        if (text !== '') this.#state = 'over';
        return text;
      }
      default:
        return piece;
    }
  }

  /** At the end of the answer: its text among what still waits. */
  rest(): string {
    if (this.#state === 'inside') this.#count(this.#held);
    const rest = this.#isCopy ? this.#beyond.trimStart() : this.#held;
    this.#state = 'over';
    this.#held = '';
    this.#beyond = '';
    return rest;
  }

  #begin(): string {
    const waits = this.#held.length < MAX_HELD;
    const opening = this.#thoughts === '' ? undefined : OPENING.exec(this.#held);
    if (!opening) {
      return this.#thoughts !== '' && waits && BEGINNING.test(this.#held) ? '' : this.rest();
    }
    const [tag, name] = opening;
    const closing = `</${name}>`;
    const end = this.#held.indexOf(closing, tag.length);
    const copy = squeezed(this.#held.slice(tag.length, end < 0 ? undefined : end));
    const size = Math.min(copy.length, this.#thoughts.length);
    if (copy.slice(0, size) !== this.#thoughts.slice(0, size)) return this.rest();
    if (end < 0 && size < COMPARED) return waits ? '' : this.rest();
    this.#isCopy = true;
    this.#leaveOut();
    this.#state = 'inside';
    this.#closing = closing;
    this.#held = this.#held.slice(tag.length);
    return this.#close();
  }

  #close(): string {
    const end = this.#held.indexOf(this.#closing);
    if (end < 0) {
      const known = Math.max(0, this.#held.length + 1 - this.#closing.length);
      this.#count(this.#held.slice(0, known));
      this.#held = this.#held.slice(known);
      return '';
    }
    this.#beyond = '';
    const behind = this.#held.slice(end + this.#closing.length);
    this.#held = '';
    this.#state = 'behind';
    return this.text(behind);
  }

  /** Text of the copy. */
  #count(text: string): void {
    const size = solid(text);
    if (this.#beyond === '' && this.#copied + size <= this.#size) {
      this.#copied += size;
      return;
    }
    let at = 0;
    for (; this.#copied < this.#size; at++) this.#copied += solid(text[at]!);
    this.#beyond += text.slice(at);
  }
}

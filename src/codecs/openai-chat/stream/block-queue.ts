/** Puts a Chat stream's fragments in the hub's order: one block open at a time, whatever the vendor interleaves. */

import type { BlockHead, DeltaEvent, StreamEvent } from '../../../conversation/events.ts';
import { unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, Citation, Sealed } from '../../../conversation/types.ts';
import type { Json } from '../../../lib/json/json.ts';
import { JsonEnd } from './json-end.ts';

/** What a fragment belongs to. */
interface QueuedBlock {
  readonly head: BlockHead;
  /** Not yet given out. */
  waiting: string[];
  /** Everything said by a call: whether its JSON is complete decides when the next block may open. */
  readonly input?: JsonEnd;
  /** Given out: what else it says comes too late. */
  closed?: boolean;
  /** Deltas come as they are; otherwise all of the input comes unwrapped at the end. */
  readonly bridged: boolean;
  /** Asked for when the block ends: the whole seal is known then. */
  sealed?: () => Sealed | undefined;
}

export type TextKind = 'text' | 'refusal' | 'reasoning';

/** A tool call of the stream; hold on to it to add arguments. */
export type QueuedCall = QueuedBlock;

/**
 * The first segment is open and streams; those behind it wait. Text, refusals and reasoning end when
 * something else begins; a call ends when its arguments are complete JSON and something waits, or at
 * the end of the answer: vendors may send the arguments of parallel calls in turns.
 */
export class BlockQueue {
  #queue: QueuedBlock[] = [];
  #open = false;
  #index = 0;
  #citations: Citation[] = [];

  /** Adds text to the block of this kind, opening one where another kind was last. */
  text(kind: TextKind, said: string, out: StreamEvent[], summary?: boolean): void {
    if (this.isOpen(kind)) {
      out.push(this.piece(said));
      return;
    }
    const last = this.#queue.at(-1);
    if (last?.head.type === kind) {
      last.waiting.push(said);
      return;
    }
    const head: BlockHead =
      kind === 'reasoning' ? (summary ? { type: kind, summary } : { type: kind }) : { type: kind };
    this.#queue.push({ head, waiting: [said], bridged: false });
    this.#advance(out);
  }

  /** A block of this kind is open, and nothing waits behind it. */
  isOpen(kind: TextKind): boolean {
    return this.#open && this.#queue.length === 1 && this.#queue[0]!.head.type === kind;
  }

  /** Of the open block, or of the next one. */
  get index(): number {
    return this.#index;
  }

  /** More text of the open block. */
  piece(said: string): DeltaEvent {
    return { type: 'delta', index: this.#index, text: said };
  }

  /** A block that comes whole. */
  whole(block: Block, out: StreamEvent[]): void {
    this.#queue.push({ head: { type: 'whole', block }, waiting: [], bridged: false });
    this.#advance(out);
  }

  /** Opens a call (or lets it wait). `bridged`: its arguments wrap the input of a freeform tool. */
  call(head: BlockHead & { type: 'tool-call' }, bridged: boolean, out: StreamEvent[]): QueuedCall {
    const segment: QueuedBlock = { head, waiting: [], input: new JsonEnd(), bridged };
    this.#queue.push(segment);
    this.#advance(out);
    return segment;
  }

  /** More arguments of a call. Behind the end of its block there is nothing left to say. */
  args(segment: QueuedCall, said: string, out: StreamEvent[]): void {
    segment.input?.push(said);
    if (segment.bridged) return;
    if (this.#open && this.#queue[0] === segment) {
      out.push({ type: 'delta', index: this.#index, text: said });
      return;
    }
    if (segment.closed === true) return;
    segment.waiting.push(said);
    this.#advance(out);
  }

  /** The seal of the reasoning that was last; a block of its own where none is at hand. */
  seal(sealed: () => Sealed | undefined, out: StreamEvent[]): void {
    const last = this.#queue.at(-1);
    if (last?.head.type === 'reasoning') {
      last.sealed = sealed;
      return;
    }
    this.#queue.push({
      head: { type: 'reasoning' },
      waiting: [],
      bridged: false,
      sealed,
    });
    this.#advance(out);
  }

  /** Sources: given out with the open text, or with the next. */
  cite(citations: readonly Citation[], out: StreamEvent[]): void {
    for (const citation of citations) this.#citations.push(citation);
    if (this.#open && this.#queue[0]?.head.type === 'text') this.#giveCitations(out);
  }

  /** Log-probabilities of the open text's last delta. */
  logprobs(content: readonly Json[], out: StreamEvent[]): void {
    if (this.#open && this.#queue[0]?.head.type === 'text') {
      out.push({ type: 'logprobs', index: this.#index, content });
    }
  }

  get openType(): BlockHead['type'] | undefined {
    return this.#open ? this.#queue[0]?.head.type : undefined;
  }

  /** Closes what is open and gives out all that waited. */
  close(out: StreamEvent[]): void {
    while (this.#queue.length > 0) {
      this.#begin(out);
      this.#end(out);
    }
  }

  #advance(out: StreamEvent[]): void {
    this.#begin(out);
    while (this.#queue.length > 1 && this.#complete(this.#queue[0]!)) {
      this.#end(out);
      this.#begin(out);
    }
  }

  #complete(segment: QueuedBlock): boolean {
    if (segment.head.type !== 'tool-call') return true;
    // Freeform text has no end of its own: such a call waits for the end of the answer.
    if (segment.head.kind === 'custom' && !segment.bridged) return false;
    return segment.input?.whole === true;
  }

  #begin(out: StreamEvent[]): void {
    const first = this.#queue[0];
    if (first === undefined) return;
    if (!this.#open) {
      out.push({ type: 'block-start', index: this.#index, head: first.head });
      this.#open = true;
    }
    for (const said of first.waiting) out.push({ type: 'delta', index: this.#index, text: said });
    first.waiting = [];
    if (first.head.type === 'text') this.#giveCitations(out);
  }

  #end(out: StreamEvent[]): void {
    const first = this.#queue.shift()!;
    const index = this.#index;
    first.closed = true;
    const wrapped = first.bridged ? (first.input?.text ?? '') : '';
    if (wrapped !== '') out.push({ type: 'delta', index, text: unwrapFreeform(wrapped) });
    const sealed = first.sealed?.();
    if (sealed !== undefined) out.push({ type: 'sealed', index, sealed });
    out.push({ type: 'block-stop', index });
    this.#index++;
    this.#open = false;
  }

  #giveCitations(out: StreamEvent[]): void {
    for (const citation of this.#citations) {
      out.push({ type: 'citation', index: this.#index, citation });
    }
    this.#citations = [];
  }
}

/** Orders the fragments of a Chat stream into blocks, one open at a time, even if the vendor interleaves them. */

import type { BlockHead, DeltaEvent, StreamEvent } from '../../../conversation/events.ts';
import { unwrapFreeform } from '../../../conversation/tools/tool-names.ts';
import type { Block, Citation, Sealed } from '../../../conversation/types.ts';
import type { Json } from '../../../lib/json/json.ts';
import { JsonEnd } from './json-end.ts';

/** A block that is open or waits for its turn. */
interface QueuedBlock {
  readonly head: BlockHead;
  /** Text that is not emitted yet. */
  pending: string[];
  /** The whole input of a call. The next block may open when its JSON is complete. */
  readonly input?: JsonEnd;
  /** The block is closed: further input comes too late. */
  closed?: boolean;
  /** The input is wrapped freeform text: it is emitted unwrapped at the end of the block. */
  readonly wrapped: boolean;
  /** Called when the block ends, because only then the whole seal is known. */
  sealed?: () => Sealed | undefined;
}

export type TextKind = 'text' | 'refusal' | 'reasoning';

/** A tool call of the stream, to which arguments can be added. */
export type QueuedCall = QueuedBlock;

/**
 * The first block is open and streams; those after it wait. Text, refusals and reasoning end when another
 * block begins. A call ends when its arguments are complete JSON and another block waits, or at the end of
 * the answer: vendors may interleave the arguments of parallel calls.
 */
export class BlockQueue {
  #queue: QueuedBlock[] = [];
  #open = false;
  #index = 0;
  #citations: Citation[] = [];

  /** Adds text to the last block if it is of this kind, else to a new block. */
  text(kind: TextKind, text: string, out: StreamEvent[], summary?: boolean): void {
    if (this.isOpen(kind)) {
      out.push(this.piece(text));
      return;
    }
    const last = this.#queue.at(-1);
    if (last?.head.type === kind) {
      last.pending.push(text);
      return;
    }
    const head: BlockHead =
      kind === 'reasoning' ? (summary ? { type: kind, summary } : { type: kind }) : { type: kind };
    this.#queue.push({ head, pending: [text], wrapped: false });
    this.#advance(out);
  }

  /** Is a block of this kind open, with no other block waiting? */
  isOpen(kind: TextKind): boolean {
    return this.#open && this.#queue.length === 1 && this.#queue[0]!.head.type === kind;
  }

  /** A block waits for its turn, or for its end. */
  get holds(): boolean {
    return this.#queue.length > 1 || this.#queue[0]?.wrapped === true;
  }

  /** There is a block, or has been one. */
  get hasBegun(): boolean {
    return this.#index > 0 || this.#queue.length > 0;
  }

  /** The index of the open block, or of the next one. */
  get index(): number {
    return this.#index;
  }

  /** More text of the open block. */
  piece(text: string): DeltaEvent {
    return { type: 'delta', index: this.#index, text };
  }

  /** Adds a whole block. */
  whole(block: Block, out: StreamEvent[]): void {
    this.#queue.push({ head: { type: 'whole', block }, pending: [], wrapped: false });
    this.#advance(out);
  }

  /** Adds a call. @param wrapped its arguments wrap the input of a freeform tool */
  call(head: BlockHead & { type: 'tool-call' }, wrapped: boolean, out: StreamEvent[]): QueuedCall {
    const block: QueuedBlock = { head, pending: [], input: new JsonEnd(), wrapped };
    this.#queue.push(block);
    this.#advance(out);
    return block;
  }

  /** More arguments of a call. Arguments after the end of its block are ignored. @param odd the frame repeats its id */
  args(block: QueuedCall, text: string, out: StreamEvent[], odd = false): void {
    block.input?.push(text);
    if (block.wrapped) return;
    if (this.#open && this.#queue[0] === block) {
      const delta = { type: 'delta', index: this.#index, text } as const;
      out.push(odd ? { ...delta, odd: 'repeated id' } : delta);
      return;
    }
    if (block.closed === true) return;
    block.pending.push(text);
    this.#advance(out);
  }

  /** The seal of the last reasoning block; a block of its own if the last block is not reasoning. */
  seal(sealed: () => Sealed | undefined, out: StreamEvent[]): void {
    const last = this.#queue.at(-1);
    if (last?.head.type === 'reasoning') {
      last.sealed = sealed;
      return;
    }
    this.#queue.push({
      head: { type: 'reasoning' },
      pending: [],
      wrapped: false,
      sealed,
    });
    this.#advance(out);
  }

  /** Adds citations to the open text block, or to the next one. */
  cite(citations: readonly Citation[], out: StreamEvent[]): void {
    for (const citation of citations) this.#citations.push(citation);
    if (this.#open && this.#queue[0]?.head.type === 'text') this.#emitCitations(out);
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

  /** Closes the open block and emits all waiting blocks. */
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

  #complete(block: QueuedBlock): boolean {
    if (block.head.type !== 'tool-call') return true;
    // Freeform text has no recognizable end, so the call stays open until the answer ends.
    if (block.head.kind === 'custom' && !block.wrapped) return false;
    return block.input?.whole === true;
  }

  #begin(out: StreamEvent[]): void {
    const first = this.#queue[0];
    if (first === undefined) return;
    if (!this.#open) {
      out.push({ type: 'block-start', index: this.#index, head: first.head });
      this.#open = true;
    }
    for (const text of first.pending) out.push({ type: 'delta', index: this.#index, text });
    first.pending = [];
    if (first.head.type === 'text') this.#emitCitations(out);
  }

  #end(out: StreamEvent[]): void {
    const first = this.#queue.shift()!;
    const index = this.#index;
    first.closed = true;
    const input = first.wrapped ? unwrapFreeform(first.input?.pieces ?? []) : '';
    if (input !== '') out.push({ type: 'delta', index, text: input });
    const sealed = first.sealed?.();
    if (sealed !== undefined) out.push({ type: 'sealed', index, sealed });
    out.push({ type: 'block-stop', index });
    this.#index++;
    this.#open = false;
  }

  #emitCitations(out: StreamEvent[]): void {
    for (const citation of this.#citations) {
      out.push({ type: 'citation', index: this.#index, citation });
    }
    this.#citations = [];
  }
}

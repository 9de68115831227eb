/** Decodes the events of one output item into events of blocks. */

import type { BlockHead, StreamEvent } from '../../../conversation/events.ts';
import type { ToolCallBlock } from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import type { UpstreamContext } from '../../codec.ts';
import { itemBlocks, restoreDeclaredName } from '../reply/decode-reply.ts';
import { decodeReasoning } from '../request/decode-items.ts';
import { decodeAnnotation } from '../request/decode-parts.ts';
import { number, object, objects, text } from '../wire.ts';

/** Where an item decoder sends its events. */
export interface EventSink {
  /** The index of the block that opens now. */
  open(): number;
  emit(event: StreamEvent): void;
  /** A refusal was seen. */
  refusal(): void;
  /** A message begins with text. Was there one before? */
  message(): boolean;
}

const STREAMED_CALLS = ['function_call', 'custom_tool_call'];

/** Stores no text, only how much of it was emitted, because `done` events repeat the whole text. */
export class ItemDecoder {
  readonly type: string;
  readonly id: string;
  /** Index of the open block, -1 when none is. */
  #block = -1;
  #head: BlockHead['type'] | undefined;
  #emitted = 0;
  /** Parts of a message that have been opened so far. */
  #parts = 0;
  /** The index of the last summary part, and whether a new part was announced since. */
  #summary = 0;
  #newPart = false;
  #reasoningSource: 'summary' | 'content' | undefined;
  /** Wrapped freeform input, held until it is complete. */
  #heldInput: string[] | undefined;
  #citations = 0;
  ended = false;

  constructor(
    private readonly item: JsonObject,
    private readonly context: UpstreamContext,
    private readonly out: EventSink,
  ) {
    this.type = text(item.type) ?? '';
    this.id = text(item.id) ?? '';
  }

  /** Is it a call that has been announced, and of which no event has come? */
  get isSilentCall(): boolean {
    return !this.ended && this.#block < 0 && STREAMED_CALLS.includes(this.type);
  }

  push(data: JsonObject): void {
    if (this.ended) return;
    switch (data.type) {
      case 'response.output_text.delta':
        this.#text('text', data);
        break;
      case 'response.refusal.delta':
        this.#text('refusal', data);
        break;
      case 'response.content_part.added': {
        const part = object(data.part);
        if (this.type !== 'message' || part === undefined) break;
        this.#openPart(part.type === 'refusal' ? 'refusal' : 'text');
        break;
      }
      case 'response.output_text.done':
      case 'response.refusal.done': {
        const whole = text(data.text) ?? text(data.refusal);
        const isUnsaid = this.type === 'message' && this.#parts === 0;
        if (isUnsaid) this.#text(data.refusal === undefined ? 'text' : 'refusal', { delta: whole });
        else this.#rest(whole);
        break;
      }
      case 'response.content_part.done':
        if (this.type === 'message') this.#partDone(object(data.part));
        break;
      case 'response.output_text.annotation.added':
        this.#citation(data.annotation);
        break;
      case 'response.reasoning_summary_part.added':
        this.#newPart = this.#reasoningSource !== undefined;
        break;
      case 'response.reasoning_summary_text.delta':
        this.#reasoning('summary', text(data.delta), number(data.summary_index));
        break;
      case 'response.reasoning_text.delta':
        this.#reasoning('content', text(data.delta), undefined);
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#input(text(data.delta) ?? '');
        break;
      case 'response.output_item.done':
        this.#done(object(data.item) ?? {});
        break;
    }
  }

  /** The stream was cut: closes the open block. */
  cancel(): void {
    this.#close();
    this.ended = true;
  }

  #open(head: BlockHead): void {
    this.#close();
    this.#block = this.out.open();
    this.#head = head.type;
    this.#emitted = 0;
    this.#citations = 0;
    this.out.emit({ type: 'block-start', index: this.#block, head });
  }

  #close(): void {
    if (this.#block < 0) return;
    this.out.emit({ type: 'block-stop', index: this.#block });
    this.#block = -1;
    this.#head = undefined;
  }

  #delta(value: string, newPart = false): void {
    if (value === '') return;
    this.#emitted += value.length;
    const index = this.#block;
    this.out.emit(
      newPart
        ? { type: 'delta', index, text: value, newPart }
        : { type: 'delta', index, text: value },
    );
  }

  /** Emits the part of the whole text that no delta carried. Some servers send no deltas. */
  #rest(whole: string | undefined): void {
    if (this.#block >= 0 && whole !== undefined && whole.length > this.#emitted) {
      this.#delta(whole.slice(this.#emitted));
    }
  }

  #openPart(type: 'text' | 'refusal'): void {
    if (type === 'refusal') this.out.refusal();
    const begins = type === 'text' && this.#parts === 0;
    this.#open(begins && this.out.message() ? { type: 'text', paragraph: true } : { type });
    this.#parts++;
  }

  #text(type: 'text' | 'refusal', data: JsonObject): void {
    const value = text(data.delta) ?? '';
    // A larger part index than expected means that the server left out `content_part.added`.
    const part = number(data.content_index) ?? Math.max(0, this.#parts - 1);
    if (this.#head !== type || part >= this.#parts) this.#openPart(type);
    this.#delta(value);
    const logprobs = data.logprobs;
    if (Array.isArray(logprobs) && logprobs.length > 0) {
      this.out.emit({ type: 'logprobs', index: this.#block, content: logprobs });
    }
  }

  #partDone(part: JsonObject | undefined): void {
    if (part === undefined || this.#block < 0) return;
    this.#rest(text(part.text) ?? text(part.refusal));
    const annotations = objects(part.annotations);
    for (const annotation of annotations.slice(this.#citations)) this.#citation(annotation);
    this.#close();
  }

  #citation(annotation: unknown): void {
    if (this.#head !== 'text' || !isObject(annotation)) return;
    this.#citations++;
    const citation = decodeAnnotation(annotation);
    this.out.emit({ type: 'citation', index: this.#block, citation });
  }

  #reasoning(kind: 'summary' | 'content', value: string | undefined, part?: number): void {
    if (value === undefined || value === '') return;
    // If a server sends both kinds, only the kind that came first is emitted.
    if (this.#reasoningSource !== undefined && this.#reasoningSource !== kind) return;
    if (this.#reasoningSource === undefined) {
      this.#reasoningSource = kind;
      this.#open(kind === 'summary' ? { type: 'reasoning', summary: true } : { type: 'reasoning' });
      this.#summary = part ?? 0;
      this.#delta(value);
      return;
    }
    const fresh = this.#newPart || (part !== undefined && part > this.#summary);
    this.#newPart = false;
    this.#summary = part ?? this.#summary;
    this.#delta(value, fresh);
  }

  #call(item: JsonObject): void {
    const [block] = itemBlocks({ ...item, arguments: '', input: '' }, this.context);
    if (block?.type !== 'tool-call') return;
    const { id, name, namespace, kind, by, odd } = block;
    this.#open({
      type: 'tool-call',
      id,
      name,
      namespace,
      kind,
      by,
      odd,
    });
    if (kind === 'custom' && this.type === 'function_call') this.#heldInput = [];
  }

  #input(value: string): void {
    if (!STREAMED_CALLS.includes(this.type)) return;
    if (this.#block < 0) this.#call(this.item);
    if (this.#heldInput === undefined) this.#delta(value);
    else this.#heldInput.push(value);
  }

  #done(item: JsonObject): void {
    const whole = item.type === undefined ? { ...this.item, ...item } : item;
    switch (this.type) {
      case 'message':
        this.#messageDone(whole);
        break;
      case 'reasoning':
        this.#reasoningDone(whole);
        break;
      case 'function_call':
      case 'custom_tool_call':
        this.#callDone(whole);
        break;
      default:
        this.#wholeDone(whole);
    }
    this.#close();
    this.ended = true;
  }

  #messageDone(item: JsonObject): void {
    const content = objects(item.content);
    if (this.#block >= 0) this.#partDone(content[this.#parts - 1] ?? {});
    for (const part of content.slice(this.#parts)) {
      if (part.type !== 'refusal' && typeof part.text !== 'string') continue;
      this.#openPart(part.type === 'refusal' ? 'refusal' : 'text');
      this.#partDone(part);
    }
  }

  #reasoningDone(item: JsonObject): void {
    const [block] = decodeReasoning(item, this.context.target.provider).blocks;
    if (block?.type !== 'reasoning') return;
    if (this.#block < 0) {
      if (block.text === '' && block.sealed === undefined) return;
      const summary = block.summary === true ? { summary: true } : {};
      this.#open({ type: 'reasoning', ...summary });
      this.#wholeReasoning(item, block.text, block.summary === true);
    }
    if (block.sealed !== undefined) {
      this.out.emit({ type: 'sealed', index: this.#block, sealed: block.sealed });
    }
  }

  #wholeReasoning(item: JsonObject, readable: string, summary: boolean): void {
    if (!summary) {
      this.#delta(readable);
      return;
    }
    objects(item.summary).forEach((part, i) => {
      this.#delta(text(part.text) ?? '', i > 0);
    });
  }

  #callDone(item: JsonObject): void {
    const given = this.type === 'function_call' ? item.arguments : item.input;
    const input = isObject(given) ? JSON.stringify(given) : text(given);
    if (this.#block < 0) this.#call(item);
    if (this.#heldInput === undefined) {
      this.#rest(input);
      return;
    }
    const [block] = itemBlocks(
      { ...item, arguments: input ?? this.#heldInput.join('') },
      this.context,
    );
    if (block?.type === 'tool-call') this.#delta(block.input);
  }

  /** A tool search of the client is a call; every other item is the vendor's and complete. */
  #wholeDone(item: JsonObject): void {
    for (const block of itemBlocks(item, this.context)) {
      if (block.type === 'tool-call' && block.by === 'client') this.#wholeCall(block);
      else this.#open({ type: 'whole', block });
    }
  }

  #wholeCall(block: ToolCallBlock): void {
    const { type, id, name, kind, by } = restoreDeclaredName(block, this.context);
    this.#open({ type, id, name, kind, by });
    this.#delta(block.input);
  }
}

/** Encodes events as a Messages stream. Delta frames are built from fixed strings around the escaped text. */

import type { GatewayError } from '../../../conversation/errors.ts';
import {
  type BlockHead,
  type DeltaEvent,
  type FinishEvent,
  type StartEvent,
  type StreamEvent,
  toolEventWire,
} from '../../../conversation/events.ts';
import type { FastEncoder, TextTemplate } from '../../../conversation/fast-text.ts';
import type { Block, Sealed, ToolResultBlock } from '../../../conversation/types.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { sseEvent } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { encodeCitation, encodeHostedInput } from '../hosted-tools.ts';
import {
  type AwaitedResult,
  type ClientTools,
  callHead,
  clientSignature,
  clientTools,
  hostedResultBlock,
  isSealed,
  mediaText,
  messageId,
  ownBlock,
  ownVendorFields,
  servedBy,
} from '../reply/client-view.ts';
import { errorObject } from '../reply/errors.ts';
import { encodeFinish, encodeStopDetails } from '../reply/finish-reason.ts';
import { encodeFinalUsage, encodeStartUsage } from '../reply/usage.ts';
import { PROTOCOL } from '../wire.ts';

/** The block that is open on the client's side. */
type OpenBlock =
  /** The start is written with the first text: a client may not send an empty text block back. */
  | { readonly kind: 'text'; started: boolean; template?: TextTemplate }
  | { readonly kind: 'thinking'; started: boolean; sealed: Sealed | undefined }
  | { readonly kind: 'call'; hasInput: boolean }
  /** Freeform text inside `{"input":"…"}`. */
  | { readonly kind: 'freeform' }
  /** A hosted call of another protocol: its input can be encoded only when it is whole. */
  | {
      readonly kind: 'hosted';
      readonly callId: string;
      readonly awaited: AwaitedResult;
      input: string;
    }
  /** No block is open, or it is not sent: deltas are ignored. */
  | { readonly kind: 'closed' };

const PING = sseEvent('ping', '{"type":"ping"}');
const CLOSED: OpenBlock = { kind: 'closed' };

const frame = (type: string, fields: JsonObject) =>
  sseEvent(type, JSON.stringify({ type, ...fields }));

export function encodeStream(context: ClientContext): StreamEncoder {
  return new MessagesStreamEncoder(context);
}

class MessagesStreamEncoder implements StreamEncoder, FastEncoder {
  readonly #tools: ClientTools;
  #started = false;
  #over = false;
  /** Index of the open block, or of the next one. */
  #index = 0;
  #open: OpenBlock = CLOSED;
  /** The text of a delta frame before and after the JSON string of the delta. */
  #deltaHead = '';
  #deltaFoot = '';
  #hasCalls = false;
  #refused = false;
  #usage: Usage | undefined;
  #finish: FinishEvent | undefined;
  /** Other fields of the upstream's message_delta. */
  #messageDelta: JsonObject | undefined;
  /** Hosted calls without a result so far, by call id. */
  readonly #awaited = new Map<string, AwaitedResult>();

  constructor(private readonly context: ClientContext) {
    this.#tools = clientTools(context);
  }

  event(event: StreamEvent): string {
    if (this.#over) return '';
    const open = this.#open;
    switch (event.type) {
      case 'delta':
        return event.newPart && open.kind === 'thinking' && open.started
          ? this.#delta(`\n\n${event.text}`)
          : this.#delta(event.text);
      case 'start':
        return this.#start(event);
      case 'block-start':
        return this.#start(undefined) + this.#closeBlock() + this.#openBlock(event.head);
      case 'sealed':
        if (open.kind === 'thinking') open.sealed = event.sealed;
        return '';
      case 'citation':
        return open.kind === 'text'
          ? this.#citation(encodeCitation(event.citation, this.context.notes))
          : '';
      case 'block-stop':
        return this.#closeBlock();
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'finish':
        this.#finish = event;
        return '';
      case 'end':
        return this.#end();
      case 'error':
        return this.fail(event.error);
      case 'opaque':
        return event.wire.protocol === PROTOCOL ? this.#opaque(event.name, event.wire.value) : '';
      case 'logprobs':
        return '';
      case 'tool-event': {
        // Every client skips a ping; an event with another name stops some clients.
        const ping = { type: 'ping', hopgate: toolEventWire(event) };
        return this.#start(undefined) + sseEvent('ping', JSON.stringify(ping));
      }
    }
  }

  ping(): string {
    return this.#over ? '' : PING;
  }

  fail(error: GatewayError): string {
    if (this.#over) return '';
    this.#over = true;
    return frame('error', { error: errorObject(error) });
  }

  #start(event: StartEvent | undefined): string {
    if (this.#started) return '';
    this.#started = true;
    this.#usage ??= event?.usage;
    return frame('message_start', {
      message: {
        id: messageId(event?.id ?? '', this.context.requestId),
        type: 'message',
        role: 'assistant',
        model: event?.model ?? this.context.request.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        ...ownVendorFields(event?.rest),
        usage: { ...encodeStartUsage(this.#usage), ...servedBy(event?.rest) },
      },
    });
  }

  #openBlock(head: BlockHead): string {
    switch (head.type) {
      case 'text':
      case 'refusal':
        this.#refused ||= head.type === 'refusal';
        this.#open = { kind: 'text', started: false };
        return '';
      case 'reasoning':
        this.#open = { kind: 'thinking', started: false, sealed: undefined };
        return '';
      case 'tool-call':
        return this.#writeMissingResults() + this.#openCall(head);
      case 'whole':
        return this.#wholeBlock(head.block);
    }
  }

  #openCall(head: Extract<BlockHead, { type: 'tool-call' }>): string {
    const call = callHead(head, this.#tools);
    if (call === undefined) {
      this.context.notes.add('content_dropped', 'content', `hosted call ${head.name}`);
      this.#open = CLOSED;
      return '';
    }
    this.#hasCalls ||= call.block.type === 'tool_use';
    this.#setDelta('input_json_delta', 'partial_json');
    const text = this.#blockStart(call.block);
    if (call.hostedTool !== undefined) {
      const awaited = { id: String(call.block.id), tool: call.hostedTool };
      this.#open = { kind: 'hosted', callId: head.id, awaited, input: '' };
      return text;
    }
    if (head.kind !== 'custom') {
      this.#open = { kind: 'call', hasInput: false };
      return text;
    }
    this.#open = { kind: 'freeform' };
    return text + this.#deltaFrame('{"input":"');
  }

  #delta(text: string): string {
    if (text === '') return '';
    const open = this.#open;
    switch (open.kind) {
      case 'text':
      case 'thinking':
        return open.started ? this.#deltaFrame(text) : this.#startText() + this.#deltaFrame(text);
      case 'call':
        open.hasInput ||= text.trim() !== '';
        return this.#deltaFrame(text);
      case 'freeform':
        return this.#deltaFrame(JSON.stringify(text).slice(1, -1));
      case 'hosted':
        open.input += text;
        return '';
      case 'closed':
        return '';
    }
  }

  #citation(value: JsonObject | undefined): string {
    if (value === undefined) return '';
    const delta = { type: 'citations_delta', citation: value };
    return this.#startText() + frame('content_block_delta', { index: this.#index, delta });
  }

  #closeBlock(): string {
    const open = this.#open;
    switch (open.kind) {
      case 'text':
        if (open.started) return this.#blockStop();
        this.#open = CLOSED;
        return '';
      case 'thinking': {
        const { sealed } = open;
        if (!open.started && !isSealed(sealed)) {
          this.#open = CLOSED;
          return '';
        }
        const text = this.#startText();
        this.#setDelta('signature_delta', 'signature');
        const signature = clientSignature(sealed, this.context.provider);
        return text + this.#deltaFrame(signature) + this.#blockStop();
      }
      case 'call':
        return (open.hasInput ? '' : this.#deltaFrame('{}')) + this.#blockStop();
      case 'freeform':
        return this.#deltaFrame('"}') + this.#blockStop();
      case 'hosted': {
        this.#awaited.set(open.callId, open.awaited);
        const input = encodeHostedInput(open.awaited.tool, tryParse(open.input));
        return this.#deltaFrame(JSON.stringify(input)) + this.#blockStop();
      }
      case 'closed':
        return '';
    }
  }

  #end(): string {
    const text = this.#start(undefined) + this.#closeBlock() + this.#writeMissingResults();
    const { delta, usage, ...fields } = this.#messageDelta ?? {};
    const finish = this.#finish;
    const answer = { calls: this.#hasCalls, refused: this.#refused };
    const stopReason = encodeFinish(finish?.reason ?? 'stop', answer);
    const last = frame('message_delta', {
      delta: {
        stop_reason: stopReason,
        stop_sequence: finish?.stopSequence ?? null,
        ...encodeStopDetails(finish?.details, stopReason),
        ...(isObject(delta) ? delta : {}),
      },
      usage: {
        ...encodeFinalUsage(this.#usage, this.context),
        ...(isObject(usage) ? usage : {}),
      },
      ...fields,
    });
    this.#over = true;
    return `${text}${last}event: message_stop\ndata: {"type":"message_stop"}\n\n`;
  }

  /** Passes on an opaque event of this protocol, with the index of this stream. */
  #opaque(name: string, value: Json): string {
    if (!isObject(value)) return '';
    if (name === 'message_delta') {
      this.#messageDelta = value;
      return '';
    }
    const text = this.#start(undefined);
    if (value.index === undefined) return text + sseEvent(name, JSON.stringify(value));
    if (this.#open === CLOSED) return text;
    return text + sseEvent(name, JSON.stringify({ ...value, index: this.#index }));
  }

  #wholeBlock(block: Block): string {
    if (block.type === 'tool-result') return this.#hostedResult(block);
    const text = this.#writeMissingResults();
    const own = ownBlock(block);
    return text + (own === undefined ? this.#foreignBlock(block) : this.#writeBlock(own));
  }

  #hostedResult(block: ToolResultBlock): string {
    const own = ownBlock(block);
    if (own !== undefined) return this.#writeMissingResults() + this.#writeBlock(own);
    const call = this.#awaited.get(block.callId);
    if (call === undefined) {
      this.context.notes.add('content_dropped', 'content', 'result of a hosted tool');
      return '';
    }
    this.#awaited.delete(block.callId);
    return this.#writeBlock(hostedResultBlock(call, block));
  }

  /** Writes a whole block of another protocol. */
  #foreignBlock(block: Block): string {
    const { notes, provider } = this.context;
    switch (block.type) {
      case 'reasoning':
        if (block.sealed?.kind === 'redacted') {
          const data = clientSignature(block.sealed, provider);
          return this.#writeBlock({ type: 'redacted_thinking', data });
        }
        return this.#writeAtOnce({ type: 'reasoning' }, block.text, block.sealed);
      case 'text':
      case 'refusal':
        return this.#writeAtOnce({ type: block.type }, block.text);
      case 'tool-call':
        return this.#writeAtOnce(block, block.input);
      case 'media':
        notes.add('content_bridged', 'content', `${block.media} as text`);
        return this.#writeAtOnce({ type: 'text' }, mediaText(block));
      default: {
        const text = block.type === 'opaque' ? block.text : undefined;
        const name = block.type === 'opaque' ? block.name : block.type;
        notes.add(text === undefined ? 'content_dropped' : 'content_bridged', 'content', name);
        return text === undefined ? '' : this.#writeAtOnce({ type: 'text' }, text);
      }
    }
  }

  /** Opens a block, writes its text as one delta, and closes it. */
  #writeAtOnce(head: BlockHead, text: string, sealed?: Sealed): string {
    const opened = this.#openBlock(head);
    if (this.#open.kind === 'thinking') this.#open.sealed = sealed;
    return opened + this.#delta(text) + this.#closeBlock();
  }

  /** A missing result is written as an error, because a hosted call without a result breaks the next request. */
  #writeMissingResults(next: OpenBlock = CLOSED): string {
    if (this.#awaited.size === 0) return '';
    let text = '';
    for (const call of this.#awaited.values()) {
      text += this.#writeBlock(hostedResultBlock(call, undefined));
    }
    this.#awaited.clear();
    this.#open = next;
    return text;
  }

  /** The start of the open text or thinking block, if it is not written yet. */
  #startText(): string {
    const open = this.#open;
    if ((open.kind !== 'text' && open.kind !== 'thinking') || open.started) return '';
    open.started = true;
    const text = this.#writeMissingResults(open);
    if (open.kind === 'text') {
      this.#setDelta('text_delta', 'text');
      return text + this.#blockStart({ type: 'text', text: '' });
    }
    this.#setDelta('thinking_delta', 'thinking');
    return text + this.#blockStart({ type: 'thinking', thinking: '', signature: '' });
  }

  #writeBlock(block: JsonObject): string {
    return this.#blockStart(block) + this.#blockStop();
  }

  #blockStart(block: JsonObject): string {
    return frame('content_block_start', { index: this.#index, content_block: block });
  }

  #blockStop(): string {
    const index = this.#index++;
    this.#open = CLOSED;
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
  }

  /** Sets the type and field of the open block's delta frames. */
  #setDelta(type: string, field: string): void {
    this.#deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{"type":"${type}","${field}":`;
    this.#deltaFoot = '}}\n\n';
  }

  #deltaFrame(text: string): string {
    return this.#deltaHead + JSON.stringify(text) + this.#deltaFoot;
  }

  get fast(): FastEncoder {
    return this;
  }

  skipText(event: DeltaEvent): void {
    const open = this.#open;
    const started = (open.kind === 'text' || open.kind === 'thinking') && open.started;
    if (started || this.#over) return;
    if (open.kind === 'call') open.hasInput ||= event.text.trim() !== '';
    else this.event(event);
  }

  textTemplate(): TextTemplate | undefined {
    const open = this.#open;
    if (this.#over || open.kind !== 'text' || !open.started) return undefined;
    open.template ??= { head: `${this.#deltaHead}"`, foot: `"${this.#deltaFoot}` };
    return open.template;
  }
}

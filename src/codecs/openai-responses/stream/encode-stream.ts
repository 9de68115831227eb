/** Encodes events as a Responses stream: the response events around output items, one item after the other. */

import type { GatewayError } from '../../../conversation/errors.ts';
import {
  type FinishReason,
  type OpaqueEvent,
  type StartEvent,
  type StreamEvent,
  toolEventWire,
  type UsageEvent,
} from '../../../conversation/events.ts';
import { type SseFrame, sseComment } from '../../../lib/bytes/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { errorEvent } from '../reply/errors.ts';
import { encodeFinish, type ResponseStatus } from '../reply/finish-reason.ts';
import {
  echoedText,
  echoRequest,
  head,
  type ResponseIdentity,
  responseIdentity,
  tail,
} from '../reply/response-object.ts';
import { PROTOCOL } from '../wire.ts';
import { CallWriter } from './encode-stream-call.ts';
import { HostedWriter } from './encode-stream-hosted.ts';
import { MessageWriter } from './encode-stream-message.ts';
import { ReasoningWriter } from './encode-stream-reasoning.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

const PING = sseComment('keep-alive');

/**
 * Of so many pings one is an event, as OpenAI sends it in a long silence: Codex waits 300 seconds for an event, and reads
 * no comments (github.com/Menci/Floway/issues/498). SDKs take it only behind the first event.
 */
const PINGS = 4;
// The name is written to a line of its own, so it must not contain a line break.
const EVENT_NAME = /^[\w.-]+$/;

export function encodeStream(context: ClientContext): ResponsesStreamEncoder {
  return new ResponsesStreamEncoder(context);
}

/** A stream encoder that also builds the response object of the answer. */
export class ResponsesStreamEncoder implements StreamEncoder {
  readonly #stream: ItemStream;
  /** The caller wants only the response object, and no events. */
  readonly #silent: boolean;
  /** Text of events that are not returned yet. */
  #pending = '';
  #sequence = 0;
  /** Frames of the vendor's own have gone out. */
  #follows = false;
  #pings = 0;
  #identity: ResponseIdentity | undefined;
  /** The echoed request fields, as an object and, once it is needed, as JSON text without braces. */
  #echo: JsonObject = {};
  #echoText: string | undefined;
  #usage: UsageEvent['usage'] | undefined;
  #finish: FinishReason | undefined;
  #status: ResponseStatus = { status: 'in_progress' };
  #open: ItemWriter | undefined;
  #isBlockOpen = false;
  #refused = false;
  #over = false;
  #items = 0;
  readonly #output: JsonObject[] = [];

  constructor(
    private readonly context: ClientContext,
    use: 'stream' | 'object' = 'stream',
  ) {
    this.#silent = use === 'object';
    this.#stream = {
      context,
      send: (type, members) => this.#send(type, members),
      nextItem: (prefix) => {
        const index = this.#items++;
        return { index, id: `${prefix}_${this.#identity?.stem ?? ''}_${index}` };
      },
      done: (index, item) => {
        this.#output.push(item);
        if (this.#silent) return;
        this.#send(
          'response.output_item.done',
          `"output_index":${index},"item":${JSON.stringify(item)}`,
        );
      },
    };
  }

  event(event: StreamEvent): string {
    if (this.#over) return '';
    switch (event.type) {
      case 'start':
        this.#start(event);
        break;
      case 'block-start':
        this.#start();
        this.#isBlockOpen = true;
        this.#openBlock(event);
        break;
      case 'block-stop':
        this.#isBlockOpen = false;
        this.#open?.event(event);
        break;
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
        this.#open?.event(event);
        break;
      case 'usage':
        this.#usage = event.usage;
        break;
      case 'finish':
        this.#start();
        this.#finish = event.reason;
        this.#closeItem();
        break;
      case 'end':
        this.#start();
        this.#end();
        break;
      case 'error':
        return this.fail(event.error);
      case 'opaque':
        if (this.#identity !== undefined) this.#opaque(event);
        break;
      case 'tool-event':
        this.#start();
        // Official clients replace their response with any response object, and throw at events of other names.
        this.#send('keepalive', `"hopgate":${JSON.stringify(toolEventWire(event))}`);
        break;
    }
    return this.#take();
  }

  ping(): string {
    const hasBegun = this.#identity !== undefined || this.#follows;
    if (this.#over || !hasBegun || ++this.#pings % PINGS !== 0) return PING;
    return `event: keepalive\ndata: {"type":"keepalive","sequence_number":${this.#sequence++}}\n\n`;
  }

  follow(frames: readonly SseFrame[]): void {
    for (const { data = '' } of frames) {
      const value = tryParse(data);
      const last = isObject(value) ? value.sequence_number : undefined;
      if (typeof last !== 'number') continue;
      // Events that were counted may not have been sent: the vendor's first number is the true one.
      this.#sequence = this.#follows ? Math.max(this.#sequence, last + 1) : last + 1;
      this.#follows = true;
    }
  }

  /** The client has the end of the open item; its next event would say it again. */
  leave(): void {
    if (this.#isBlockOpen) return;
    this.#closeItem();
    this.#pending = '';
  }

  fail(error: GatewayError): string {
    if (this.#over) return '';
    this.#start();
    this.#over = true;
    this.#open = undefined;
    this.#status = { status: 'failed', error };
    const data = JSON.stringify(errorEvent(error, this.#sequence++));
    this.#pending += `event: error\ndata: ${data}\n\n`;
    this.#sendResponse('response.failed', this.#usage);
    return this.#take();
  }

  /** The response object so far; for a finished stream, the one in its last event. */
  response(): JsonObject {
    const identity = this.#start();
    return { ...head(identity, this.#status), ...this.#echo, ...tail(this.#output, this.#usage) };
  }

  /** {@link response} as JSON text. */
  responseText(): string {
    return this.#textOf(this.#usage);
  }

  #start(event?: StartEvent): ResponseIdentity {
    if (this.#identity !== undefined) return this.#identity;
    const identity = responseIdentity(event, this.context);
    this.#identity = identity;
    this.#usage = event?.usage ?? this.#usage;
    this.#echo = echoRequest(this.context, event?.rest);
    this.#sendResponse('response.created', undefined);
    this.#sendResponse('response.in_progress', undefined);
    return identity;
  }

  #openBlock(event: StreamEvent & { type: 'block-start' }): void {
    const { head: block } = event;
    const open = this.#open;
    switch (block.type) {
      case 'text':
      case 'refusal':
        if (block.type === 'refusal') this.#refused = true;
        // Consecutive texts are parts of one message: a cited text of Messages is many blocks.
        if (!(open instanceof MessageWriter) || (block.type === 'text' && block.paragraph)) {
          this.#openItem(() => new MessageWriter(this.#stream));
        }
        break;
      case 'reasoning':
        this.#openItem(() => new ReasoningWriter(this.#stream));
        break;
      case 'tool-call':
        this.#openItem(() =>
          block.by === 'client'
            ? new CallWriter(this.#stream, block)
            : new HostedWriter(this.#stream),
        );
        break;
      case 'whole':
        if (block.block.type === 'reasoning') {
          this.#openItem(() => new ReasoningWriter(this.#stream));
        } else if (!(open instanceof HostedWriter) || !open.accepts(block.block)) {
          this.#openItem(() => new HostedWriter(this.#stream));
        }
        break;
    }
    this.#open?.event(event);
  }

  /** Closes the open item before the next writer writes its first event. */
  #openItem(create: () => ItemWriter): void {
    this.#closeItem();
    this.#open = create();
  }

  #closeItem(): void {
    const item = this.#open;
    this.#open = undefined;
    // Only the last item can be cut: without a finish reason yet, another item follows.
    item?.close(encodeFinish(this.#finish, this.#refused).status === 'incomplete');
  }

  #end(): void {
    this.#closeItem();
    this.#over = true;
    this.#status = encodeFinish(this.#finish, this.#refused);
    this.#sendResponse(`response.${this.#status.status}`, this.#usage);
  }

  /** Passes on an event of a Responses upstream about the response as a whole. */
  #opaque({ name, wire }: OpaqueEvent): void {
    const { protocol, value } = wire;
    if (protocol !== PROTOCOL || !isObject(value) || !EVENT_NAME.test(name)) return;
    if (value.output_index !== undefined || value.response !== undefined) return;
    const { type: _, sequence_number: __, ...members } = value;
    const text = JSON.stringify(members).slice(1, -1);
    if (text !== '') this.#send(name, text);
  }

  #sendResponse(type: string, usage: UsageEvent['usage'] | undefined): void {
    if (!this.#silent) this.#send(type, `"response":${this.#textOf(usage)}`);
  }

  #textOf(usage: UsageEvent['usage'] | undefined): string {
    const before = JSON.stringify(head(this.#start(), this.#status)).slice(0, -1);
    this.#echoText ??= echoedText(this.#echo);
    const after = JSON.stringify(tail(this.#output, usage)).slice(1);
    return `${before},${this.#echoText},${after}`;
  }

  #send(type: string, members: string): void {
    if (this.#silent) return;
    this.#pending += `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${members}}\n\n`;
  }

  #take(): string {
    const text = this.#pending;
    this.#pending = '';
    return text;
  }
}

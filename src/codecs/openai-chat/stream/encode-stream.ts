/** Encodes events as Chat Completions chunks, in the form that the official SDKs accumulate. */

import type { GatewayError } from '../../../conversation/errors.ts';
import {
  type BlockHead,
  type DeltaEvent,
  type StartEvent,
  type StreamEvent,
  toolEventWire,
  type UsageEvent,
} from '../../../conversation/events.ts';
import type { FastEncoder, TextTemplate } from '../../../conversation/fast-text.ts';
import type { Block, Citation, Sealed } from '../../../conversation/types.ts';
import { sseComment, sseEvent } from '../../../lib/bytes/sse.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { encodeAnnotation } from '../parts.ts';
import { sealDetail, signatureExtra } from '../reasoning.ts';
import {
  asFunction,
  clientName,
  clientRest,
  encodeImage,
  noteUnsupportedBlock,
  wantsLegacyCalls,
} from '../reply/client-view.ts';
import { errorBody } from '../reply/errors.ts';
import { encodeFinish } from '../reply/finish-reason.ts';
import { encodeUsage } from '../reply/usage.ts';
import { newCallId, PROTOCOL } from '../wire.ts';

const PING = sseComment('keep-alive');

export function encodeStream(context: ClientContext): StreamEncoder {
  return new ChatStreamEncoder(context);
}

class ChatStreamEncoder implements StreamEncoder, FastEncoder {
  readonly #usageAsked: boolean;
  readonly #legacy: boolean;
  /** The beginning of every chunk up to the delta's members, with id, time and model. */
  #prefix = '';
  #suffix: string;
  #textTemplate: TextTemplate | undefined;
  #kind: 'text' | 'refusal' | 'reasoning' | 'function' | 'custom' | 'legacy' | undefined;
  #callCount = 0;
  #noArguments = true;
  #hasRefusal = false;
  #length = 0;
  #blockAt = 0;
  /** The open text is a paragraph of its own, which its first piece begins. */
  #paragraph = false;
  /** How many characters of reasoning were sent, and at which of them the open block begins. */
  #reasoned = 0;
  #reasonedAt = 0;
  /** The open block's seal. It is sent when the block ends, because only then its span is known. */
  #openSeal: Sealed | undefined;
  #detailCount = 0;
  #usage: UsageEvent['usage'] | undefined;
  #citations: { readonly citation: Citation; readonly from: number }[] = [];
  #annotations: JsonObject[] = [];
  #finished = false;
  #over = false;

  constructor(private readonly context: ClientContext) {
    this.#usageAsked = context.request.settings.streamUsage === true;
    this.#legacy = wantsLegacyCalls(context.request);
    this.#suffix = this.#usageAsked
      ? '},"logprobs":null,"finish_reason":null}],"usage":null}\n\n'
      : '},"logprobs":null,"finish_reason":null}]}\n\n';
  }

  event(event: StreamEvent): string {
    if (this.#over) return '';
    switch (event.type) {
      case 'delta':
        return this.#deltaText(event.text, event.newPart);
      case 'start':
        return this.#start(event);
      case 'block-start':
        return this.#blockStart(event.head);
      case 'sealed':
        return this.#sealed(event.sealed);
      case 'citation':
        if (this.#kind === 'text') {
          this.#citations.push({ citation: event.citation, from: this.#blockAt });
        }
        return '';
      case 'logprobs':
        return this.#logprobs(event.content);
      case 'block-stop':
        return this.#blockStop();
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'finish': {
        if (this.#finished) return '';
        this.#finished = true;
        const answer = { calls: this.#callCount > 0, refusal: this.#hasRefusal };
        const reason = encodeFinish(event.reason, answer);
        return (
          this.#annotated() +
          this.#finish(this.#legacy && reason === 'tool_calls' ? 'function_call' : reason)
        );
      }
      case 'end':
        return this.#end();
      case 'error':
        return this.fail(event.error);
      case 'opaque':
        // Further choices (n > 1) and audio, which only this protocol has.
        return event.wire.protocol === PROTOCOL
          ? sseEvent('', JSON.stringify({ ...(event.wire.value as JsonObject) }))
          : '';
      case 'tool-event':
        return this.#withoutChoices(`"hopgate":${JSON.stringify(toolEventWire(event))}`);
    }
  }

  /** A chunk without choices: the official SDKs add nothing of it to the message. */
  #withoutChoices(members: string): string {
    let text = '';
    if (this.#prefix === '') text = this.#start({ type: 'start', id: '', model: '' });
    const at = this.#prefix.lastIndexOf('"choices":');
    return `${text}${this.#prefix.slice(0, at)}"choices":[],${members}}\n\n`;
  }

  ping(): string {
    return PING;
  }

  fail(error: GatewayError): string {
    if (this.#over) return '';
    this.#over = true;
    return sseEvent('', JSON.stringify(errorBody(error)));
  }

  #begin(id: string, model: string, created: number | undefined, rest: JsonObject): void {
    const head = JSON.stringify({
      id: id || `chatcmpl-${this.context.requestId}`,
      object: 'chat.completion.chunk',
      created: created ?? Math.floor(Date.now() / 1000),
      model: model || this.context.request.model,
      ...rest,
    });
    this.#prefix = `data: ${head.slice(0, -1)},"choices":[{"index":0,"delta":{`;
  }

  #start(event: StartEvent): string {
    this.#usage = event.usage ?? this.#usage;
    if (this.#prefix !== '') return '';
    this.#begin(event.id, event.model, event.created, clientRest(event.rest));
    return this.#delta('"role":"assistant","content":""');
  }

  #delta(members: string): string {
    if (this.#prefix === '') {
      this.#begin('', '', undefined, {});
      return this.#delta('"role":"assistant","content":""') + this.#delta(members);
    }
    return this.#prefix + members + this.#suffix;
  }

  #deltaText(text: string, newPart?: boolean): string {
    if (text === '') return '';
    switch (this.#kind) {
      case 'text': {
        const piece = this.#paragraph ? `\n\n${text}` : text;
        if (this.#paragraph) this.#blockAt += 2;
        this.#paragraph = false;
        this.#length += piece.length;
        return this.#delta(`"content":${JSON.stringify(piece)}`);
      }
      case 'reasoning': {
        const piece = newPart && this.#reasoned > this.#reasonedAt ? `\n\n${text}` : text;
        this.#reasoned += piece.length;
        return this.#delta(`"reasoning_content":${JSON.stringify(piece)}`);
      }
      case 'function':
        this.#noArguments = false;
        return this.#delta(this.#call(`"function":{"arguments":${JSON.stringify(text)}}`));
      case 'custom':
        return this.#delta(this.#call(`"custom":{"input":${JSON.stringify(text)}}`));
      case 'refusal':
        this.#hasRefusal = true;
        return this.#delta(`"refusal":${JSON.stringify(text)}`);
      case 'legacy':
        this.#noArguments = false;
        return this.#delta(`"function_call":{"arguments":${JSON.stringify(text)}}`);
      default:
        return '';
    }
  }

  #call(members: string): string {
    return `"tool_calls":[{"index":${this.#callCount - 1},${members}}]`;
  }

  #blockStart(head: BlockHead): string {
    this.#kind = undefined;
    this.#paragraph = false;
    switch (head.type) {
      case 'text':
        this.#kind = 'text';
        this.#blockAt = this.#length;
        this.#paragraph = head.paragraph === true && this.#length > 0;
        return '';
      case 'refusal':
        this.#kind = 'refusal';
        return '';
      case 'reasoning':
        this.#openReasoning();
        return '';
      case 'tool-call':
        return this.#callStart(head);
      case 'whole':
        if (head.block.type === 'text') {
          this.#kind = 'text';
          this.#blockAt = this.#length;
          return this.#deltaText(head.block.text);
        }
        if (head.block.type !== 'reasoning') return this.#otherBlock(head.block);
        this.#openReasoning();
        this.#openSeal = head.block.sealed;
        return this.#deltaText(head.block.text);
    }
  }

  /** A block as an image or as text, else a note. */
  #otherBlock(block: Block): string {
    const image = encodeImage(block);
    if (image !== undefined) return this.#delta(`"images":${JSON.stringify([image])}`);
    noteUnsupportedBlock(block, this.context.notes);
    if (block.type !== 'opaque' || !block.text) return '';
    this.#kind = 'text';
    this.#blockAt = this.#length;
    return this.#deltaText(block.text);
  }

  #openReasoning(): void {
    this.#kind = 'reasoning';
    this.#reasonedAt = this.#reasoned;
    this.#openSeal = undefined;
  }

  /** Calls that the vendor or the gateway runs are not sent: the client must not run them. */
  #callStart(head: BlockHead & { type: 'tool-call' }): string {
    if (head.by !== 'client') {
      if (head.by === 'provider') {
        this.context.notes.add('provider_call_dropped', 'choices/0', head.name);
      }
      return '';
    }
    const flat = clientName(this.context.request, head.name, head.namespace);
    const name = JSON.stringify(flat);
    this.#noArguments = true;
    this.#callCount++;
    if (this.#legacy) {
      // The legacy form holds one call.
      if (this.#callCount > 1) return '';
      this.#kind = 'legacy';
      return this.#delta(`"function_call":{"name":${name},"arguments":""}`);
    }
    const id = JSON.stringify(head.id || newCallId());
    if (head.kind === 'custom' && !asFunction(this.context.request, head.name)) {
      this.#kind = 'custom';
      return this.#delta(
        this.#call(`"id":${id},"type":"custom","custom":{"name":${name},"input":""}`),
      );
    }
    this.#kind = 'function';
    const seal =
      head.sealed?.protocol === PROTOCOL
        ? `,"extra_content":${JSON.stringify(signatureExtra(head.sealed))}`
        : '';
    return this.#delta(
      this.#call(`"id":${id},"type":"function","function":{"name":${name},"arguments":""}${seal}`),
    );
  }

  #sealed(sealed: Sealed): string {
    if (this.#kind === 'reasoning') this.#openSeal = sealed;
    return this.#kind === 'function' && sealed.protocol === PROTOCOL
      ? this.#delta(this.#call(`"extra_content":${JSON.stringify(signatureExtra(sealed))}`))
      : '';
  }

  #sealDetail(): string {
    const sealed = this.#openSeal;
    if (sealed === undefined || sealed.value === '') return '';
    const span = { from: this.#reasonedAt, to: this.#reasoned };
    const detail = sealDetail(sealed, span, this.#detailCount++);
    return this.#delta(`"reasoning_details":${JSON.stringify([detail])}`);
  }

  #logprobs(content: readonly Json[]): string {
    if (this.#kind !== 'text') return '';
    const chunk = this.#delta('');
    return chunk.replace(
      '"logprobs":null',
      () => `"logprobs":{"content":${JSON.stringify(content)},"refusal":null}`,
    );
  }

  #blockStop(): string {
    const kind = this.#kind;
    this.#kind = undefined;
    // A call without arguments gets `{}`: clients parse the arguments, and '' is not JSON.
    if (kind === 'function' && this.#noArguments) {
      return this.#delta(this.#call('"function":{"arguments":"{}"}'));
    }
    if (kind === 'legacy' && this.#noArguments)
      return this.#delta('"function_call":{"arguments":"{}"}');
    if (kind === 'reasoning') return this.#sealDetail();
    if (kind === 'text') this.#settleCitations();
    return '';
  }

  #settleCitations(): void {
    for (const { citation, from } of this.#citations) {
      const annotation = encodeAnnotation(citation, from, this.#length);
      if (annotation !== undefined) this.#annotations.push(annotation);
      else this.context.notes.add('citation_dropped', 'annotations', citation.title);
    }
    this.#citations = [];
  }

  /** All annotations at once: the official SDK keeps only the last list. */
  #annotated(): string {
    this.#settleCitations();
    if (this.#annotations.length === 0) return '';
    const annotations = JSON.stringify(this.#annotations);
    this.#annotations = [];
    return this.#delta(`"annotations":${annotations}`);
  }

  #finish(reason: string): string {
    const chunk = this.#delta('');
    const at = chunk.lastIndexOf('"finish_reason":null');
    return `${chunk.slice(0, at)}"finish_reason":"${reason}"${chunk.slice(at + 20)}`;
  }

  #end(): string {
    this.#over = true;
    const usage = this.#usage;
    if (!this.#usageAsked || usage === undefined || this.#prefix === '') return 'data: [DONE]\n\n';
    return `${this.#withoutChoices(`"usage":${JSON.stringify(encodeUsage(usage))}`)}data: [DONE]\n\n`;
  }

  get fast(): FastEncoder {
    return this;
  }

  skipText(event: DeltaEvent): void {
    const { text } = event;
    if (this.#over || text === '') return;
    if (this.#prefix === '') this.event(event);
    else if (this.#kind === 'text') this.#length += text.length;
    else if (this.#kind === 'reasoning') this.#reasoned += text.length;
    else if (this.#kind === 'refusal') this.#hasRefusal = true;
    else if (this.#kind === 'function' || this.#kind === 'legacy') this.#noArguments = false;
  }

  textTemplate(): TextTemplate | undefined {
    if (this.#over || this.#kind !== 'text' || this.#prefix === '') return undefined;
    if (this.#paragraph) return undefined;
    this.#textTemplate ??= { head: `${this.#prefix}"content":"`, foot: `"${this.#suffix}` };
    return this.#textTemplate;
  }
}

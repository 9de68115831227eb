/** Events to Chat Completions chunks, as the official SDKs accumulate them. */

import type { GatewayError } from '../../../conversation/errors.ts';
import type {
  BlockHead,
  DeltaEvent,
  StartEvent,
  StreamEvent,
} from '../../../conversation/events.ts';
import type { FastEncoder, TextTemplate } from '../../../conversation/fast-text.ts';
import { toolEventWire } from '../../../conversation/tools/tool-events.ts';
import type { Block, Citation, Sealed } from '../../../conversation/types.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { sseComment, sseEvent } from '../../../lib/bytes/sse.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { encodeAnnotation } from '../parts.ts';
import { encodeImage, noteUntold } from '../reply/answer-media.ts';
import { errorBody } from '../reply/errors.ts';
import { encodeFinish } from '../reply/finish.ts';
import { clientName, ownRest, wantsLegacyCalls } from '../reply/reply.ts';
import { encodeUsage } from '../reply/usage.ts';
import { carriedDetail } from '../request/reasoning.ts';
import { CHAT } from '../wire.ts';

const PING = sseComment('keep-alive');

/** Encodes one stream for one client. */
export function encodeStream(context: ClientContext): StreamEncoder {
  return new ChatStreamEncoder(context);
}

class ChatStreamEncoder implements StreamEncoder, FastEncoder {
  readonly #context: ClientContext;
  readonly #usageAsked: boolean;
  readonly #legacy: boolean;
  /** Everything of a chunk before its choices: the same id, time and model in every one. */
  #prefix = '';
  #suffix: string;
  #textTemplate: TextTemplate | undefined;
  #kind: 'text' | 'refusal' | 'reasoning' | 'function' | 'custom' | 'legacy' | undefined;
  #calls = 0;
  #empty = true;
  #refused = false;
  #length = 0;
  #blockAt = 0;
  /** Characters of reasoning that were said, and where the open block's begin. */
  #reasoned = 0;
  #reasonedAt = 0;
  /** The open block's seal. It goes out when the block ends: only then its words are known. */
  #held: Sealed | undefined;
  #details = 0;
  #usage: Usage | undefined;
  #cited: { readonly citation: Citation; readonly from: number }[] = [];
  #annotations: JsonObject[] = [];
  #finished = false;
  #over = false;

  constructor(context: ClientContext) {
    this.#context = context;
    this.#usageAsked = context.asked.settings.streamUsage === true;
    this.#legacy = wantsLegacyCalls(context.asked);
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
          this.#cited.push({ citation: event.citation, from: this.#blockAt });
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
        const said = { calls: this.#calls > 0, refusal: this.#refused };
        const reason = encodeFinish(event.reason, said);
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
        return event.wire.protocol === CHAT
          ? sseEvent('', JSON.stringify({ ...(event.wire.value as JsonObject) }))
          : '';
      case 'tool-event':
        return this.#beside(`"hopgate":${JSON.stringify(toolEventWire(event))}`);
    }
  }

  /** A chunk without choices: the official SDKs put nothing of it into the message. */
  #beside(members: string): string {
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
      id: id || `chatcmpl-${this.#context.requestId}`,
      object: 'chat.completion.chunk',
      created: created ?? Math.floor(Date.now() / 1000),
      model: model || this.#context.asked.model,
      ...rest,
    });
    this.#prefix = `data: ${head.slice(0, -1)},"choices":[{"index":0,"delta":{`;
  }

  #start(event: StartEvent): string {
    this.#usage = event.usage ?? this.#usage;
    if (this.#prefix !== '') return '';
    this.#begin(event.id, event.model, event.created, ownRest(event.rest));
    return this.#delta('"role":"assistant","content":""');
  }

  #delta(members: string): string {
    if (this.#prefix === '') {
      this.#begin('', '', undefined, {});
      return this.#delta('"role":"assistant","content":""') + this.#delta(members);
    }
    return this.#prefix + members + this.#suffix;
  }

  #deltaText(said: string, newPart?: boolean): string {
    if (said === '') return '';
    switch (this.#kind) {
      case 'text':
        this.#length += said.length;
        return this.#delta(`"content":${JSON.stringify(said)}`);
      case 'reasoning': {
        const words = newPart && this.#reasoned > this.#reasonedAt ? `\n\n${said}` : said;
        this.#reasoned += words.length;
        return this.#delta(`"reasoning_content":${JSON.stringify(words)}`);
      }
      case 'function':
        this.#empty = false;
        return this.#delta(this.#call(`"function":{"arguments":${JSON.stringify(said)}}`));
      case 'custom':
        return this.#delta(this.#call(`"custom":{"input":${JSON.stringify(said)}}`));
      case 'refusal':
        this.#refused = true;
        return this.#delta(`"refusal":${JSON.stringify(said)}`);
      case 'legacy':
        this.#empty = false;
        return this.#delta(`"function_call":{"arguments":${JSON.stringify(said)}}`);
      default:
        return '';
    }
  }

  #call(members: string): string {
    return `"tool_calls":[{"index":${this.#calls - 1},${members}}]`;
  }

  #blockStart(head: BlockHead): string {
    this.#kind = undefined;
    switch (head.type) {
      case 'text':
        this.#kind = 'text';
        this.#blockAt = this.#length;
        return '';
      case 'refusal':
        this.#kind = 'refusal';
        return '';
      case 'reasoning':
        this.#reason();
        return '';
      case 'tool-call':
        return this.#callStart(head);
      case 'whole':
        if (head.block.type === 'text') {
          this.#kind = 'text';
          this.#blockAt = this.#length;
          return this.#deltaText(head.block.text);
        }
        if (head.block.type !== 'reasoning') return this.#untold(head.block);
        this.#reason();
        this.#held = head.block.sealed;
        return this.#deltaText(head.block.text);
    }
  }

  /** An image, or words that stand for the block; a note where neither can be. */
  #untold(block: Block): string {
    const image = encodeImage(block);
    if (image !== undefined) return this.#delta(`"images":${JSON.stringify([image])}`);
    noteUntold(block, this.#context.notes);
    if (block.type !== 'opaque' || !block.text) return '';
    this.#kind = 'text';
    this.#blockAt = this.#length;
    return this.#deltaText(block.text);
  }

  #reason(): void {
    this.#kind = 'reasoning';
    this.#reasonedAt = this.#reasoned;
    this.#held = undefined;
  }

  /** Calls that the client must not run (the vendor's and the gateway's own) are not shown. */
  #callStart(head: BlockHead & { type: 'tool-call' }): string {
    if (head.by !== 'client') {
      if (head.by === 'provider') {
        this.#context.notes.add('provider_call_dropped', 'choices/0', head.name);
      }
      return '';
    }
    const flat = clientName(this.#context.asked, head.name, head.namespace);
    const name = JSON.stringify(flat);
    this.#empty = true;
    this.#calls++;
    if (this.#legacy) {
      // The legacy form holds one call.
      if (this.#calls > 1) return '';
      this.#kind = 'legacy';
      return this.#delta(`"function_call":{"name":${name},"arguments":""}`);
    }
    const id = JSON.stringify(head.id || prefixedId('call_'));
    if (head.kind === 'custom') {
      this.#kind = 'custom';
      return this.#delta(
        this.#call(`"id":${id},"type":"custom","custom":{"name":${name},"input":""}`),
      );
    }
    this.#kind = 'function';
    const seal =
      head.sealed?.protocol === CHAT ? `,"extra_content":${signed(head.sealed.value)}` : '';
    return this.#delta(
      this.#call(`"id":${id},"type":"function","function":{"name":${name},"arguments":""}${seal}`),
    );
  }

  #sealed(sealed: Sealed): string {
    if (this.#kind === 'reasoning') this.#held = sealed;
    return this.#kind === 'function' && sealed.protocol === CHAT
      ? this.#delta(this.#call(`"extra_content":${signed(sealed.value)}`))
      : '';
  }

  #carried(): string {
    const sealed = this.#held;
    if (sealed === undefined || sealed.value === '') return '';
    const span = { from: this.#reasonedAt, to: this.#reasoned };
    const detail = carriedDetail(sealed, span, this.#details++);
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
    // A call without arguments: clients parse what they get, and '' is not JSON.
    if (kind === 'function' && this.#empty) {
      return this.#delta(this.#call('"function":{"arguments":"{}"}'));
    }
    if (kind === 'legacy' && this.#empty) return this.#delta('"function_call":{"arguments":"{}"}');
    if (kind === 'reasoning') return this.#carried();
    if (kind === 'text') this.#settleCitations();
    return '';
  }

  #settleCitations(): void {
    for (const { citation, from } of this.#cited) {
      const annotation = encodeAnnotation(citation, from, this.#length);
      if (annotation !== undefined) this.#annotations.push(annotation);
      else this.#context.notes.add('citation_dropped', 'annotations', citation.title);
    }
    this.#cited = [];
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
    return `${this.#beside(`"usage":${JSON.stringify(encodeUsage(usage))}`)}data: [DONE]\n\n`;
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
    else if (this.#kind === 'refusal') this.#refused = true;
    else if (this.#kind === 'function' || this.#kind === 'legacy') this.#empty = false;
  }

  textTemplate(): TextTemplate | undefined {
    if (this.#over || this.#kind !== 'text' || this.#prefix === '') return undefined;
    this.#textTemplate ??= { head: `${this.#prefix}"content":"`, foot: `"${this.#suffix}` };
    return this.#textTemplate;
  }
}

const signed = (value: string) =>
  JSON.stringify({ google: { thought_signature: value } } satisfies JsonObject);

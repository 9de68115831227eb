/** Encodes events as Gemini chunks, in the form that the official SDKs read. */

import type { GatewayError } from '../../../conversation/errors.ts';
import {
  type DeltaEvent,
  type FinishEvent,
  type StreamEvent,
  toolEventWire,
} from '../../../conversation/events.ts';
import type { FastEncoder, TextTemplate } from '../../../conversation/fast-text.ts';
import type { Usage } from '../../../conversation/usage.ts';
import { sseEvent } from '../../../lib/bytes/sse.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { ClientContext, StreamEncoder } from '../../codec.ts';
import { AnswerParts } from '../reply/answer-parts.ts';
import { errorBody } from '../reply/errors.ts';
import { encodeFinish, promptFeedbackOf } from '../reply/finish-reason.ts';
import { encodeUsage } from '../reply/usage.ts';
import { compact, PROTOCOL } from '../wire.ts';

// Google's SDKs take a comment for a chunk that is not JSON; lines without anything in them they all skip. That for Go reads up
// to the next two line ends, so that a single one would be the beginning of the chunk behind it (api_client.go: `scan`).
const PING = '\n\n';

export function encodeStream(context: ClientContext): StreamEncoder {
  return new GeminiStreamEncoder(context);
}

class GeminiStreamEncoder implements StreamEncoder, FastEncoder {
  readonly #parts: AnswerParts;
  /** The end of every chunk, with model and id. */
  #suffix = '';
  #template: TextTemplate | undefined;
  #usage: Usage | undefined;
  #finish: FinishEvent | undefined;
  #over = false;

  constructor(private readonly context: ClientContext) {
    this.#parts = new AnswerParts(context);
  }

  event(event: StreamEvent): string {
    if (this.#over) return '';
    switch (event.type) {
      case 'start':
        this.#usage = event.usage ?? this.#usage;
        this.#begin(event.model, event.id);
        return '';
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'finish':
        this.#finish ??= event;
        return '';
      case 'end':
        return this.#end();
      case 'error':
        return this.fail(event.error);
      case 'tool-event':
        return sseEvent('', JSON.stringify({ hopgate: toolEventWire(event) }));
      case 'opaque':
        // A further candidate comes as a chunk of its own.
        if (event.name === 'candidate' && event.wire.protocol === PROTOCOL) {
          return sseEvent('', JSON.stringify(event.wire.value));
        }
        return this.#written(event);
      default:
        return this.#written(event);
    }
  }

  #written(event: StreamEvent): string {
    const parts = this.#parts.event(event);
    return parts.length === 0 ? '' : this.#chunk(parts);
  }

  ping(): string {
    return PING;
  }

  fail(error: GatewayError): string {
    if (this.#over) return '';
    this.#over = true;
    return sseEvent('', JSON.stringify(errorBody(error)));
  }

  #begin(model: string, id: string): void {
    if (this.#suffix !== '') return;
    const { request, requestId } = this.context;
    const tail = JSON.stringify({
      modelVersion: model || request.model,
      responseId: id || requestId,
    });
    this.#suffix = `],"role":"model"},"index":0}],${tail.slice(1)}\n\n`;
  }

  #chunk(parts: readonly JsonObject[]): string {
    this.#begin('', '');
    const written = parts.map((part) => JSON.stringify(part)).join(',');
    return `data: {"candidates":[{"content":{"parts":[${written}${this.#suffix}`;
  }

  /** The last chunk: why the answer ended, its sources and its usage. */
  #end(): string {
    this.#over = true;
    const finish = this.#finish ?? { type: 'finish', reason: 'stop' };
    this.#begin('', '');
    const feedback = promptFeedbackOf(finish.details);
    const candidate = compact({
      content: { parts: [{ text: '' }], role: 'model' },
      ...encodeFinish(finish),
      index: 0,
      groundingMetadata: this.#parts.grounding,
    });
    const head = compact({
      candidates: feedback === undefined ? [candidate] : undefined,
      promptFeedback: feedback,
      usageMetadata: this.#usage === undefined ? undefined : encodeUsage(this.#usage),
    });
    const tail = this.#suffix.slice(this.#suffix.indexOf('"modelVersion"'));
    return `data: ${JSON.stringify(head).slice(0, -1)},${tail}`;
  }

  get fast(): FastEncoder {
    return this;
  }

  skipText(event: DeltaEvent): void {
    if (this.#over || event.text === '') return;
    if (this.#parts.inText) this.#parts.skipText(event.text);
    else this.event(event);
  }

  textTemplate(): TextTemplate | undefined {
    if (this.#over || !this.#parts.inText || this.#suffix === '') return undefined;
    this.#template ??= {
      head: 'data: {"candidates":[{"content":{"parts":[{"text":"',
      foot: `"}${this.#suffix}`,
    };
    return this.#template;
  }
}

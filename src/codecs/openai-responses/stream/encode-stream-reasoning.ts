/** Writes a reasoning item to a Responses stream: summary parts, and the seal at the end. */

import type { StreamEvent } from '../../../conversation/events.ts';
import { wrapSeal, wrapUnsealed } from '../../../conversation/seal.ts';
import type { Sealed } from '../../../conversation/types.ts';
import type { JsonObject } from '../../../lib/json/json.ts';
import { compact, PROTOCOL } from '../wire.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

/** A reasoning item: its text as summary parts, and its seal in `encrypted_content` if the client asked for it. */
export class ReasoningWriter implements ItemWriter {
  #item: { readonly index: number; readonly id: string } | undefined;
  readonly #summary: JsonObject[] = [];
  #text: string | undefined;
  #sealed: Sealed | undefined;
  #isSummary = false;

  constructor(private readonly out: ItemStream) {}

  event(event: StreamEvent): void {
    switch (event.type) {
      case 'block-start':
        this.#isSummary = event.head.type === 'reasoning' && event.head.summary === true;
        if (event.head.type === 'whole' && event.head.block.type === 'reasoning') {
          this.#sealed = event.head.block.sealed;
          if (event.head.block.text !== '') this.#delta(event.head.block.text);
        }
        break;
      case 'delta':
        if (event.newPart === true) this.#closePart();
        if (event.text !== '') this.#delta(event.text);
        break;
      case 'sealed':
        this.#sealed = event.sealed;
        break;
    }
  }

  #open(): { readonly index: number; readonly id: string } {
    if (this.#item !== undefined) return this.#item;
    const item = this.out.nextItem('rs');
    this.#item = item;
    this.out.send(
      'response.output_item.added',
      `"output_index":${item.index},"item":{"id":"${item.id}","type":"reasoning","summary":[]}`,
    );
    return item;
  }

  #at(): string {
    const { id, index } = this.#open();
    return `"item_id":"${id}","output_index":${index},"summary_index":${this.#summary.length}`;
  }

  #delta(text: string): void {
    const at = this.#at();
    if (this.#text === undefined) {
      this.#text = '';
      this.out.send(
        'response.reasoning_summary_part.added',
        `${at},"part":{"type":"summary_text","text":""}`,
      );
    }
    this.#text += text;
    this.out.send('response.reasoning_summary_text.delta', `${at},"delta":${JSON.stringify(text)}`);
  }

  #closePart(): void {
    if (this.#text === undefined) return;
    const at = this.#at();
    const text = JSON.stringify(this.#text);
    this.out.send('response.reasoning_summary_text.done', `${at},"text":${text}`);
    this.out.send(
      'response.reasoning_summary_part.done',
      `${at},"part":{"type":"summary_text","text":${text}}`,
    );
    this.#summary.push({ type: 'summary_text', text: this.#text });
    this.#text = undefined;
  }

  close(): void {
    this.#closePart();
    const payload = this.#payload();
    // Neither text nor seal: no item.
    if (this.#item === undefined && payload === undefined) return;
    const { id, index } = this.#open();
    this.out.done(
      index,
      compact({ id, type: 'reasoning', summary: this.#summary, encrypted_content: payload }),
    );
  }

  /**
   * What the client sends back with its next request: a payload of this protocol unchanged, another seal in
   * an envelope, and for unsealed reasoning an envelope that only tells who made it.
   */
  #payload(): string | undefined {
    const { request, provider } = this.out.context;
    const { include, store } = request.settings;
    if (store !== false && include?.includes('reasoning.encrypted_content') !== true)
      return undefined;
    const sealed = this.#sealed;
    if (sealed === undefined) {
      // No vendor needs a summary back.
      return this.#summary.length > 0 && !this.#isSummary
        ? wrapUnsealed('openai-chat', provider)
        : undefined;
    }
    return sealed.protocol === PROTOCOL ? sealed.value : wrapSeal(sealed);
  }
}

/** Writes a message item to a Responses stream, part by part. */

import type { StreamEvent } from '../../../conversation/events.ts';
import type { Citation } from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { ownWire } from '../wire.ts';
import type { ItemStream, ItemWriter } from './item-writer.ts';

interface OpenPart {
  readonly type: 'output_text' | 'refusal';
  readonly at: string;
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: Json[];
  /** Citations of the whole part, held until its length is known. */
  readonly wholeTextCitations: Citation[];
}

/** A message item. Consecutive text and refusal blocks are its parts. */
export class MessageWriter implements ItemWriter {
  readonly #index: number;
  readonly #id: string;
  readonly #parts: JsonObject[] = [];
  #part: OpenPart | undefined;

  constructor(private readonly out: ItemStream) {
    const { index, id } = out.nextItem('msg');
    this.#index = index;
    this.#id = id;
    out.send(
      'response.output_item.added',
      `"output_index":${index},"item":{"id":"${id}","type":"message","status":"in_progress","content":[],"role":"assistant"}`,
    );
  }

  event(event: StreamEvent): void {
    switch (event.type) {
      case 'block-start':
        this.#closePart();
        this.#openPart(event.head.type === 'refusal' ? 'refusal' : 'output_text');
        break;
      case 'delta':
        this.#delta(event.text, '[]');
        break;
      case 'logprobs':
        // They belong to the previous delta, which is already sent: an empty delta carries them.
        this.#part?.logprobs.push(...event.content);
        this.#delta('', JSON.stringify(event.content));
        break;
      case 'citation':
        if (event.citation.start === undefined && ownWire(event.citation) === undefined) {
          this.#part?.wholeTextCitations.push(event.citation);
        } else this.#annotate(event.citation);
        break;
      case 'block-stop':
        this.#closePart();
        break;
    }
  }

  close(cut: boolean): void {
    this.#closePart();
    this.out.done(this.#index, {
      id: this.#id,
      type: 'message',
      status: cut ? 'incomplete' : 'completed',
      content: this.#parts,
      role: 'assistant',
    });
  }

  #openPart(type: OpenPart['type']): void {
    const at = `"item_id":"${this.#id}","output_index":${this.#index},"content_index":${this.#parts.length}`;
    this.#part = { type, at, text: '', annotations: [], logprobs: [], wholeTextCitations: [] };
    const part =
      type === 'refusal'
        ? '{"type":"refusal","refusal":""}'
        : '{"type":"output_text","annotations":[],"logprobs":[],"text":""}';
    this.out.send('response.content_part.added', `${at},"part":${part}`);
  }

  #delta(text: string, logprobs: string): void {
    const part = this.#part;
    if (part === undefined) return;
    part.text += text;
    if (part.type === 'output_text') {
      this.out.send(
        'response.output_text.delta',
        `${part.at},"delta":${JSON.stringify(text)},"logprobs":${logprobs}`,
      );
    } else if (text !== '') {
      this.out.send('response.refusal.delta', `${part.at},"delta":${JSON.stringify(text)}`);
    }
  }

  #annotate(citation: Citation): void {
    const part = this.#part;
    if (part?.type !== 'output_text') return;
    const annotation = annotationOf(citation, part.text.length);
    if (annotation === undefined) {
      this.out.context.notes.add('citation_dropped', 'output', citation.title);
      return;
    }
    this.out.send(
      'response.output_text.annotation.added',
      `${part.at},"annotation_index":${part.annotations.length},"annotation":${JSON.stringify(annotation)}`,
    );
    part.annotations.push(annotation);
  }

  #closePart(): void {
    const part = this.#part;
    if (part === undefined) return;
    for (const citation of part.wholeTextCitations) this.#annotate(citation);
    this.#part = undefined;
    const text = JSON.stringify(part.text);
    let whole: JsonObject;
    if (part.type === 'refusal') {
      this.out.send('response.refusal.done', `${part.at},"refusal":${text}`);
      whole = { type: 'refusal', refusal: part.text };
    } else {
      const logprobs = JSON.stringify(part.logprobs);
      this.out.send(
        'response.output_text.done',
        `${part.at},"text":${text},"logprobs":${logprobs}`,
      );
      const { annotations } = part;
      whole = { type: 'output_text', annotations, logprobs: part.logprobs, text: part.text };
    }
    this.out.send('response.content_part.done', `${part.at},"part":${JSON.stringify(whole)}`);
    this.#parts.push(whole);
  }
}

/** The annotation for a citation: unchanged if it is of this protocol, else undefined without a URL. */
function annotationOf(citation: Citation, length: number): JsonObject | undefined {
  const wire = ownWire(citation);
  if (isObject(wire)) return wire;
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    start_index: citation.start ?? 0,
    end_index: citation.end ?? length,
    title: citation.title ?? '',
    url: citation.url,
  };
}

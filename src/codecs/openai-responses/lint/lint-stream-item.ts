/** Checks one open item of a Responses stream: its parts, and that its deltas add up to the whole. */

import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import type { Report } from '../../lint.ts';

/** The field that repeats the deltas as a whole, by the event name between `response.` and `.delta`. */
const WHOLE: Readonly<Record<string, string>> = {
  output_text: 'text',
  refusal: 'refusal',
  reasoning_text: 'text',
  reasoning_summary_text: 'text',
  function_call_arguments: 'arguments',
  custom_tool_call_input: 'input',
};
/** The part type that a delta of this kind requires. */
const PART: Readonly<Record<string, string>> = {
  output_text: 'output_text',
  refusal: 'refusal',
};

export class OpenItem {
  readonly #id: unknown;
  readonly #type: string;
  /** The types of the content parts. */
  readonly #parts: string[] = [];
  #summaries = 0;
  readonly #deltas = new Map<string, string>();

  constructor(item: JsonObject) {
    this.#id = item.id;
    this.#type = String(item.type);
  }

  read(event: JsonObject, type: string, report: Report): void {
    if (typeof event.item_id === 'string' && typeof this.#id === 'string') {
      if (event.item_id !== this.#id) {
        report('/item_id', 'item-id-changed', `the item had the id ${this.#id}`);
      }
    }
    if (type === 'response.content_part.added') {
      this.#part(event, report);
    } else if (type === 'response.reasoning_summary_part.added') {
      if (event.summary_index !== this.#summaries) {
        const words = `part ${String(event.summary_index)} where ${this.#summaries} is next`;
        report('/summary_index', 'summary-index', words);
      }
      this.#summaries++;
    } else this.#piece(event, type, report);
  }

  #part(event: JsonObject, report: Report): void {
    if (event.content_index !== this.#parts.length) {
      const words = `part ${String(event.content_index)} where ${this.#parts.length} is next`;
      report('/content_index', 'content-index', words);
    }
    this.#parts.push(isObject(event.part) ? String(event.part.type) : '');
  }

  #piece(event: JsonObject, type: string, report: Report): void {
    const [, name, end] = /^response\.([a-z_]+)\.(delta|done)$/.exec(type) ?? [];
    const field = name === undefined ? undefined : memberOf(WHOLE, name);
    if (name === undefined || field === undefined) return;
    const index = event.content_index ?? event.summary_index ?? '';
    const key = `${name} ${String(index)}`;
    if (end === 'done') {
      const streamed = this.#deltas.get(key);
      if (streamed !== undefined && typeof event[field] === 'string' && event[field] !== streamed) {
        report(`/${field}`, 'done-differs', 'the whole text differs from its deltas');
      }
      return;
    }
    const wanted = memberOf(PART, name);
    if (wanted !== undefined && typeof event.content_index === 'number') {
      const part = this.#parts[event.content_index];
      if (part === undefined) {
        report('/content_index', 'part-not-added', `part ${event.content_index} was never added`);
      } else if (part !== wanted) {
        report('/content_index', 'part-type', `${name} in a part of type ${part}`);
      }
    }
    if (name === 'reasoning_summary_text' && Number(event.summary_index) >= this.#summaries) {
      const words = `summary part ${String(event.summary_index)} was never added`;
      report('/summary_index', 'part-not-added', words);
    }
    if (typeof event.delta === 'string') {
      this.#deltas.set(key, (this.#deltas.get(key) ?? '') + event.delta);
    }
  }

  /** Compares the finished item with what its events said. */
  finish(item: JsonObject, report: Report): void {
    if (item.type !== this.#type) {
      report('/item/type', 'item-changed', `the item began as ${this.#type}`);
    }
    if (typeof this.#id === 'string' && item.id !== this.#id) {
      report('/item/id', 'item-id-changed', `the item had the id ${this.#id}`);
    }
    const streamed = this.#deltas.get('function_call_arguments ');
    if (
      streamed !== undefined &&
      typeof item.arguments === 'string' &&
      item.arguments !== streamed
    ) {
      report('/item/arguments', 'done-differs', 'the arguments differ from their deltas');
    }
  }
}

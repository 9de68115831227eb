/** Checks a Responses stream strictly: numbered events, items added and done, one terminal event that repeats them. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import {
  type EventReader,
  lintCounts,
  lintEvents,
  type Report,
  type StreamLinter,
} from '../../lint.ts';
import { OpenItem } from './lint-stream-item.ts';

const TERMINAL = ['response.completed', 'response.incomplete', 'response.failed'];

export const lintStream = (): StreamLinter => lintEvents(new ResponsesStreamLinter());

class ResponsesStreamLinter implements EventReader {
  #started = false;
  #id: string | undefined;
  #items = 0;
  readonly #open = new Map<number, OpenItem>();
  readonly #done = new Map<number, JsonObject>();
  #ended: 'terminal' | 'error' | undefined;

  /** OpenRouter adds it; every client ignores it after the complete answer. */
  done(report: Report): void {
    if (this.#ended === undefined) report('', 'done-early', '[DONE] before the answer is complete');
  }

  read(event: JsonObject, name: string, report: Report, number: number): void {
    if (name !== event.type) {
      const words = `the event line says "${name}", the data ${String(event.type)}`;
      report('/type', 'event-name', words);
    }
    if (event.sequence_number !== undefined && event.sequence_number !== number) {
      const words = `sequence_number ${String(event.sequence_number)} where ${number} is next`;
      report('/sequence_number', 'sequence', words);
    }
    if (this.#ended === 'terminal') {
      report('', 'after-end', `${String(event.type)} behind the end of the answer`);
      return;
    }
    this.#read(event, report);
  }

  #read(event: JsonObject, report: Report): void {
    const type = String(event.type);
    if (type === 'error') {
      this.#ended = 'error';
      return;
    }
    // After an error only `response.failed` may follow.
    if (this.#ended === 'error' && type !== 'response.failed') {
      report('', 'after-end', `${type} behind an error`);
      return;
    }
    if (!this.#started && type !== 'response.created') {
      report('', 'start-first', `${type} before response.created: clients throw`);
    }
    if (type === 'response.created') this.#start(event, report);
    else if (TERMINAL.includes(type)) this.#end(event, type, report);
    else if (type === 'response.output_item.added') this.#add(event, report);
    else if (type === 'response.output_item.done') this.#finish(event, report);
    else if (typeof event.output_index === 'number') {
      const open = this.#open.get(event.output_index);
      if (open === undefined) {
        const words = `item ${event.output_index} is not open`;
        report('/output_index', 'item-not-open', words);
      } else open.read(event, type, report);
    }
  }

  #start({ response }: JsonObject, report: Report): void {
    if (this.#started) report('', 'start-once', 'a second response.created');
    this.#started = true;
    if (!isObject(response) || typeof response.id !== 'string') {
      report('/response/id', 'start-shape', 'the id of the response is missing');
      return;
    }
    this.#id = response.id;
    if (Array.isArray(response.output) && response.output.length > 0) {
      report('/response/output', 'start-shape', 'the output begins as an empty list');
    }
  }

  #add(event: JsonObject, report: Report): void {
    const { output_index: index, item } = event;
    if (index !== this.#items) {
      report(
        '/output_index',
        'output-index',
        `index ${String(index)} where ${this.#items} is next`,
      );
    }
    this.#items++;
    if (!isObject(item) || typeof item.type !== 'string') {
      report('/item', 'item-shape', 'an item says its type');
      return;
    }
    if (typeof index === 'number') this.#open.set(index, new OpenItem(item));
  }

  #finish(event: JsonObject, report: Report): void {
    const { output_index: index, item } = event;
    const open = typeof index === 'number' ? this.#open.get(index) : undefined;
    if (open === undefined || !isObject(item)) {
      report('/output_index', 'item-not-open', `item ${String(index)} is done, but is not open`);
      return;
    }
    open.finish(item, report);
    this.#open.delete(index as number);
    this.#done.set(index as number, item);
  }

  #end({ response }: JsonObject, type: string, report: Report): void {
    this.#ended = 'terminal';
    if (!isObject(response)) {
      report('/response', 'end-shape', 'the last event holds the response');
      return;
    }
    const status = type.slice('response.'.length);
    if (response.status !== status) {
      report(
        '/response/status',
        'end-status',
        `the status is ${String(response.status)} in ${type}`,
      );
    }
    if (this.#id !== undefined && response.id !== this.#id) {
      report('/response/id', 'id-changed', `the response had the id ${this.#id}`);
    }
    if (status === 'failed') {
      if (!isObject(response.error)) report('/response/error', 'end-shape', 'the error is missing');
      return;
    }
    for (const index of this.#open.keys()) {
      if (status === 'completed') report('', 'item-not-done', `item ${index} is never done`);
    }
    this.#compareOutput(response.output, report);
    if (isObject(response.usage)) lintUsage(response.usage, '/response/usage', report);
    // null if the vendor behind a gateway reported no counts.
    else if (status === 'completed' && response.usage === undefined) {
      report('/response/usage', 'usage-missing', 'the usage is missing');
    }
  }

  /** The last event repeats every item, and clients replace their items with it. */
  #compareOutput(output: Json | undefined, report: Report): void {
    if (!Array.isArray(output)) {
      report('/response/output', 'end-output', 'the output is missing');
      return;
    }
    const known = new Set(output.map((item) => (isObject(item) ? item.type : undefined)));
    for (const [index, item] of this.#done) {
      if (known.has(item.type)) continue;
      report('/response/output', 'end-output', `item ${index} (${String(item.type)}) is not in it`);
    }
  }

  end(report: Report): void {
    if (this.#ended !== undefined) return;
    if (!this.#started) report('', 'start-missing', 'the stream holds no response.created');
    else report('', 'end-missing', 'the stream ends without response.completed');
  }
}

const COUNTS = ['input_tokens', 'output_tokens', 'total_tokens'];

export function lintUsage(usage: JsonObject, at: string, report: Report): void {
  if (!lintCounts(usage, COUNTS, at, report)) return;
  const input = Number(usage.input_tokens);
  const output = Number(usage.output_tokens);
  if (input + output !== usage.total_tokens) {
    const words = `total_tokens is ${String(usage.total_tokens)}, input and output are ${input} + ${output}`;
    report(`${at}/total_tokens`, 'usage-total', words);
  }
  const part = (details: string, key: string, of: number) => {
    const value = isObject(usage[details]) ? usage[details][key] : undefined;
    if (typeof value !== 'number' || value <= of) return;
    report(`${at}/${details}/${key}`, 'usage-part', `${key} is ${value}, more than all ${of}`);
  };
  part('input_tokens_details', 'cached_tokens', input);
  part('output_tokens_details', 'reasoning_tokens', output);
}

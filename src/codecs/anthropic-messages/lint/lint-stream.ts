/** Checks a Messages stream strictly: one start, one block after another, one end, and nothing after it. */

import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import { type EventReader, lintEvents, type Report, type StreamLinter } from '../../lint.ts';

/** The delta types of each block type. Blocks of other types are whole. */
const DELTAS: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  mcp_tool_use: ['input_json_delta'],
  compaction: ['compaction_delta'],
};
const REASONS = [
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
  'compaction',
];

interface OpenBlock {
  readonly index: number;
  readonly type: string;
  json: string;
  seals: number;
}

export const lintStream = (): StreamLinter => lintEvents(new MessagesStreamLinter());

class MessagesStreamLinter implements EventReader {
  #started = false;
  #blocks = 0;
  #calls = 0;
  #open: OpenBlock | undefined;
  #deltas = 0;
  #output = 0;
  #ended: 'stop' | 'error' | undefined;

  read(event: JsonObject, name: string, report: Report): void {
    if (name !== event.type) {
      const words =
        name === ''
          ? `there is no "event: ${String(event.type)}" line: clients skip such an event`
          : `the event line says ${name}, the data ${String(event.type)}`;
      report('/type', 'event-name', words);
    }
    if (this.#ended !== undefined) {
      const words = `${String(event.type)} behind the end of the stream`;
      report('', 'after-end', words);
      return;
    }
    if (!this.#started && !['message_start', 'ping', 'error'].includes(String(event.type))) {
      report('', 'start-first', `${String(event.type)} before message_start`);
    }
    this.#read(event, report);
  }

  #read(event: JsonObject, report: Report): void {
    switch (event.type) {
      case 'ping':
        return;
      case 'message_start':
        this.#start(event, report);
        return;
      case 'content_block_start':
        this.#begin(event, report);
        return;
      case 'content_block_delta':
        this.#delta(event, report);
        return;
      case 'content_block_stop':
        this.#stop(event, report);
        return;
      case 'message_delta':
        this.#finish(event, report);
        return;
      case 'message_stop':
        if (this.#deltas === 0) report('', 'delta-missing', 'message_stop without a message_delta');
        this.#ended = 'stop';
        return;
      case 'error':
        if (!isObject(event.error) || typeof event.error.message !== 'string') {
          report('/error', 'error-shape', 'an error event holds {type, message}');
        }
        this.#ended = 'error';
        return;
      default:
        report('/type', 'unknown-event', `${String(event.type)} is not an event of Messages`);
    }
  }

  #start({ message }: JsonObject, report: Report): void {
    if (this.#started) report('', 'start-once', 'a second message_start');
    this.#started = true;
    if (!isObject(message)) {
      report('/message', 'start-shape', 'message_start holds a message');
      return;
    }
    const { id, type, role, content, stop_reason: reason, usage } = message;
    if (typeof id !== 'string' || id === '')
      report('/message/id', 'start-shape', 'an id is missing');
    if (type !== 'message') report('/message/type', 'start-shape', 'the type is "message"');
    if (role !== 'assistant') report('/message/role', 'start-shape', 'the role is "assistant"');
    if (!Array.isArray(content) || content.length > 0) {
      report('/message/content', 'start-shape', 'the content begins as an empty list');
    }
    if (reason !== null)
      report('/message/stop_reason', 'start-shape', 'stop_reason begins as null');
    this.#usage(usage, '/message/usage', true, report);
  }

  #begin(event: JsonObject, report: Report): void {
    if (this.#deltas > 0) report('', 'block-after-delta', 'a block behind message_delta');
    if (this.#open !== undefined) {
      const words = `block ${String(event.index)} begins while block ${this.#open.index} is open`;
      report('', 'block-open', words);
    }
    if (event.index !== this.#blocks) {
      report('/index', 'block-index', `index ${String(event.index)} where ${this.#blocks} is next`);
    }
    this.#blocks++;
    const block = isObject(event.content_block) ? event.content_block : {};
    const type = String(block.type);
    if (type === 'tool_use') this.#calls++;
    if (
      type.endsWith('tool_use') &&
      (typeof block.id !== 'string' || typeof block.name !== 'string')
    ) {
      report('/content_block', 'call-shape', 'a call begins with its id and name');
    }
    // Clients append deltas to the content of the start.
    const filled =
      type === 'tool_use' && isObject(block.input) && Object.keys(block.input).length > 0;
    if (filled) report('/content_block/input', 'call-shape', 'the input begins as {}');
    const signed = typeof block.signature === 'string' && block.signature !== '';
    this.#open = { index: Number(event.index), type, json: '', seals: signed ? 1 : 0 };
  }

  #delta(event: JsonObject, report: Report): void {
    const open = this.#open;
    if (open === undefined || event.index !== open.index) {
      report(
        '/index',
        'delta-index',
        `a delta for block ${String(event.index)}, which is not open`,
      );
      return;
    }
    const delta = isObject(event.delta) ? event.delta : {};
    const type = String(delta.type);
    if (!(memberOf(DELTAS, open.type) ?? []).includes(type)) {
      report('/delta/type', 'delta-type', `${type} in a block of type ${open.type}`);
    }
    if (type === 'input_json_delta') open.json += String(delta.partial_json ?? '');
    if (type === 'signature_delta') open.seals++;
  }

  #stop(event: JsonObject, report: Report): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined || event.index !== open.index) {
      report('/index', 'stop-index', `block ${String(event.index)} ends, which is not open`);
      return;
    }
    if (open.type.endsWith('tool_use') && open.json !== '' && !isObject(tryParse(open.json))) {
      report('', 'input-json', 'the input of the call is not a JSON object');
    }
    if (open.type === 'thinking' && open.seals !== 1) {
      report(
        '',
        'signature-count',
        `${open.seals} signatures in a thinking block: clients keep one`,
      );
    }
  }

  #finish(event: JsonObject, report: Report): void {
    if (this.#open !== undefined) {
      report('', 'block-unclosed', `message_delta while block ${this.#open.index} is open`);
    }
    if (this.#deltas++ > 0) report('', 'delta-once', 'a second message_delta');
    const reason = isObject(event.delta) ? event.delta.stop_reason : undefined;
    if (typeof reason !== 'string' || !REASONS.includes(reason)) {
      report('/delta/stop_reason', 'stop-reason', `${String(reason)} is not a stop reason`);
    } else if (reason === 'tool_use' && this.#calls === 0) {
      report('/delta/stop_reason', 'stop-reason', 'tool_use, but no tool was called');
    }
    this.#usage(event.usage, '/usage', false, report);
  }

  /** Checks counts: whole numbers, and at the end totals that are not below those of the start. */
  #usage(usage: unknown, at: string, start: boolean, report: Report): void {
    if (!isObject(usage)) {
      report(at, 'usage-missing', 'the usage is missing');
      return;
    }
    const needed = start ? ['input_tokens', 'output_tokens'] : ['output_tokens'];
    for (const key of Object.keys(usage).filter((name) => name.endsWith('_tokens'))) {
      const value = usage[key];
      if (value !== null && (!Number.isInteger(value) || Number(value) < 0)) {
        report(`${at}/${key}`, 'usage-count', `${key} is not a count`);
      }
    }
    for (const key of needed) {
      if (typeof usage[key] !== 'number')
        report(`${at}/${key}`, 'usage-missing', `${key} is missing`);
    }
    const output = Number(usage.output_tokens ?? 0);
    if (output < this.#output) {
      report(`${at}/output_tokens`, 'usage-shrinks', `${output} behind ${this.#output}`);
    }
    // A start with 1 output token only fills the field; the vendor counts at the end.
    if (!start || output > 1) this.#output = Math.max(this.#output, output);
  }

  end(report: Report): void {
    if (!this.#started && this.#ended !== 'error') {
      report('', 'start-missing', 'the stream holds no message_start');
    } else if (this.#ended === undefined) {
      if (this.#open !== undefined)
        report('', 'block-unclosed', `block ${this.#open.index} never ends`);
      report('', 'stop-missing', 'the stream ends without message_stop');
    }
  }
}

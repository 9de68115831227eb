/** Checks a Chat Completions stream strictly: reports what the official clients could not accumulate. */

import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import {
  type EventReader,
  lintCounts,
  lintEvents,
  type Report,
  type StreamLinter,
} from '../../lint.ts';

const REASONS = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'];

interface StreamedCall {
  readonly id: string;
  args: string;
  readonly custom: boolean;
}

/** The state of one choice. */
interface StreamedChoice {
  role: boolean;
  finish: string | undefined;
  /** By the index in the stream, which may be any number. */
  readonly calls: Map<number, StreamedCall>;
}

export const lintStream = (): StreamLinter => lintEvents(new ChatStreamLinter());

class ChatStreamLinter implements EventReader {
  #id: string | undefined;
  #choices = new Map<number, StreamedChoice>();
  #ended: 'done' | 'error' | undefined;
  #output = 0;

  done(report: Report): void {
    if (this.#ended === 'done') report('', 'done-once', 'a second [DONE]');
    this.#ended ??= 'done';
  }

  read(chunk: JsonObject, name: string, report: Report): void {
    if (this.#ended !== undefined) {
      report('', 'after-end', 'a chunk behind the end of the stream');
      return;
    }
    if (name === 'error' || isObject(chunk.error) || typeof chunk.error === 'string') {
      this.#ended = 'error';
      return;
    }
    this.#chunk(chunk, report);
  }

  #chunk(chunk: JsonObject, report: Report): void {
    const { id, object, choices } = chunk;
    // Azure first sends the filter results of the prompt, before the answer.
    if (chunk.prompt_filter_results !== undefined && isEmpty(choices)) return;
    // Perplexity ends with a `chat.completion.done`.
    if (typeof object !== 'string' || !object.startsWith('chat.completion')) {
      report(
        '/object',
        'object',
        `"${String(object)}" where clients look for "chat.completion.chunk"`,
      );
    }
    if (typeof id !== 'string' || id === '') report('/id', 'id-missing', 'the id is missing');
    else {
      if (this.#id !== undefined && this.#id !== id) {
        report('/id', 'id-changed', 'another id: clients take it for another completion');
      }
      this.#id = id;
    }
    if (typeof chunk.model !== 'string') report('/model', 'model-missing', 'the model is missing');
    if (isObject(chunk.usage)) {
      lintUsage(chunk.usage, '/usage', report);
      const output = Number(chunk.usage.completion_tokens ?? 0);
      if (output < this.#output) {
        const words = `${output} tokens behind ${this.#output}: counts are totals`;
        report('/usage/completion_tokens', 'usage-shrinks', words);
      }
      this.#output = Math.max(this.#output, output);
    }
    if (!Array.isArray(choices)) {
      report('/choices', 'choices', 'choices is a list in every chunk');
      return;
    }
    (choices as readonly Json[]).forEach((choice, i) => {
      if (isObject(choice)) this.#choice(choice, `/choices/${i}`, report);
      else report(`/choices/${i}`, 'choices', 'a choice is an object');
    });
  }

  #choice(value: JsonObject, at: string, report: Report): void {
    const { index, delta, finish_reason: reason } = value;
    if (typeof index !== 'number') {
      report(`${at}/index`, 'choice-index', 'the index of the choice is missing');
    }
    const key = typeof index === 'number' ? index : 0;
    const choice = this.#choices.get(key) ?? { role: false, finish: undefined, calls: new Map() };
    this.#choices.set(key, choice);
    if (!isObject(delta)) {
      report(`${at}/delta`, 'delta', 'a choice of a chunk holds a delta');
      return;
    }
    if (choice.finish !== undefined && hasContent(delta)) {
      report(`${at}/delta`, 'after-finish', 'there is content after finish_reason');
    }
    if (typeof delta.role === 'string') choice.role = true;
    if (!isContent(delta.content)) {
      report(`${at}/delta/content`, 'content-type', 'content is text or null');
    }
    if (Array.isArray(delta.tool_calls)) {
      (delta.tool_calls as readonly Json[]).forEach((call, i) => {
        this.#call(choice, call, `${at}/delta/tool_calls/${i}`, report);
      });
    }
    if (reason === undefined || reason === null || reason === '') return;
    // OpenRouter repeats the same reason in the chunk with the usage.
    if (choice.finish !== undefined && choice.finish !== reason) {
      const words = `finish_reason ${String(reason)} behind ${choice.finish}`;
      report(`${at}/finish_reason`, 'finish-once', words);
    }
    choice.finish = String(reason);
    this.#finish(choice, `${at}/finish_reason`, report);
  }

  #call(choice: StreamedChoice, call: Json, at: string, report: Report): void {
    if (!isObject(call) || typeof call.index !== 'number') {
      report(`${at}/index`, 'call-index', 'a fragment of a call has the index of its call');
      return;
    }
    const { index, id } = call;
    const target = isObject(call.function)
      ? call.function
      : isObject(call.custom)
        ? call.custom
        : {};
    const text = target.arguments ?? target.input;
    if (text !== undefined && text !== null && typeof text !== 'string') {
      report(`${at}/function/arguments`, 'call-arguments', 'arguments are JSON as text');
    }
    const fragment = typeof text === 'string' ? text : '';
    const known = choice.calls.get(index);
    if (known !== undefined) {
      if (typeof id === 'string' && id !== '' && id !== known.id) {
        report(`${at}/id`, 'call-id-changed', `call ${index} had the id ${known.id}`);
      }
      known.args += fragment;
      return;
    }
    if (index !== choice.calls.size) {
      const words = `call ${index} where ${choice.calls.size} is next: clients get a list with holes`;
      report(`${at}/index`, 'call-index', words);
    }
    if (typeof id !== 'string' || id === '')
      report(`${at}/id`, 'call-id', 'the id of the call is missing');
    if (typeof target.name !== 'string' || target.name === '') {
      report(`${at}/function/name`, 'call-name', 'the name of the call is missing');
    }
    choice.calls.set(index, {
      id: String(id ?? ''),
      args: fragment,
      custom: isObject(call.custom),
    });
  }

  #finish(choice: StreamedChoice, at: string, report: Report): void {
    const { finish } = choice;
    if (!REASONS.includes(finish!)) report(at, 'finish-reason', `${finish} is not a finish reason`);
    if (finish === 'tool_calls' && choice.calls.size === 0) {
      report(at, 'finish-reason', 'tool_calls, but no tool was called');
    }
  }

  end(report: Report): void {
    if (this.#ended === 'error') return;
    if (this.#choices.size === 0) report('', 'empty', 'the stream holds no choice');
    for (const [index, choice] of this.#choices) {
      const which = `choice ${index}`;
      if (!choice.role) report('', 'role-missing', `${which} has no role`);
      if (choice.finish === undefined) {
        report('', 'finish-missing', `missing finish_reason for ${which}`);
      } else if (choice.finish !== 'length') lintArguments(choice, report);
    }
    if (this.#ended === undefined) report('', 'done-missing', 'the stream ends without [DONE]');
  }
}

/** Called at the end, because some vendors send the last fragments with the finish reason. */
function lintArguments(choice: StreamedChoice, report: Report): void {
  for (const [index, call] of choice.calls) {
    if (call.custom || call.args === '' || tryParse(call.args) !== undefined) continue;
    report('', 'arguments-json', `the arguments of call ${index} are not JSON`);
  }
}

/** Is this valid content: text, nothing, or Mistral's parts with a type? */
const isContent = (value: Json | undefined) =>
  value === undefined ||
  value === null ||
  typeof value === 'string' ||
  (Array.isArray(value) && value.every((part) => isObject(part) && typeof part.type === 'string'));

const isEmpty = (value: Json | undefined) => Array.isArray(value) && value.length === 0;

const hasContent = (delta: JsonObject) =>
  Boolean(delta.content) ||
  Boolean(delta.refusal) ||
  Boolean(delta.reasoning_content) ||
  (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0);

const COUNTS = ['prompt_tokens', 'completion_tokens', 'total_tokens'];

export function lintUsage(usage: JsonObject, at: string, report: Report): void {
  if (!lintCounts(usage, COUNTS, at, report)) return;
  const [prompt, completion, total] = [
    Number(usage.prompt_tokens),
    Number(usage.completion_tokens),
    Number(usage.total_tokens),
  ];
  // Some vendors (xAI) do not include reasoning in the completion.
  const details = usage.completion_tokens_details;
  const reasoning = isObject(details) ? Number(details.reasoning_tokens ?? 0) : 0;
  if (prompt + completion !== total && prompt + completion + reasoning !== total) {
    const words = `total_tokens is ${total}, prompt and completion are ${prompt} + ${completion}`;
    report(`${at}/total_tokens`, 'usage-total', words);
  }
  const cached = isObject(usage.prompt_tokens_details)
    ? usage.prompt_tokens_details.cached_tokens
    : undefined;
  if (typeof cached === 'number' && cached > prompt) {
    const words = `cached_tokens is ${cached}, more than all ${prompt} of the prompt`;
    report(`${at}/prompt_tokens_details/cached_tokens`, 'usage-part', words);
  }
}

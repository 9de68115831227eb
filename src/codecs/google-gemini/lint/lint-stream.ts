/** Checks a Gemini stream strictly: reports what the official clients could not read. */

import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { type EventReader, lintEvents, type Report, type StreamLinter } from '../../lint.ts';
import { field, list, number, object, objects, text } from '../wire.ts';
import { PART, PART_DATA } from './known-fields.ts';

const REASONS: ReadonlySet<string> = new Set(
  'STOP MAX_TOKENS SAFETY RECITATION LANGUAGE OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE MODEL_ARMOR IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER NO_IMAGE'.split(
    ' ',
  ),
);

export const lintStream = (): StreamLinter => lintEvents(new GeminiStreamLinter());

class GeminiStreamLinter implements EventReader {
  #finish: string | undefined;
  #blocked = false;
  #failed = false;
  #id: string | undefined;
  #output = 0;

  read(chunk: JsonObject, _name: string, report: Report): void {
    if (this.#failed) report('', 'after-end', 'a chunk behind an error');
    if (isObject(chunk.error)) {
      this.#failed = true;
      const { code, message, status } = chunk.error;
      if (typeof code !== 'number') report('/error/code', 'error-code', 'clients read a number');
      if (typeof message !== 'string')
        report('/error/message', 'error-message', 'the message is missing');
      if (typeof status !== 'string')
        report('/error/status', 'error-status', 'the status is missing');
      return;
    }
    this.#chunk(chunk, report);
  }

  #chunk(chunk: JsonObject, report: Report): void {
    const id = text(field(chunk, 'responseId'));
    if (id !== undefined) {
      if (this.#id !== undefined && this.#id !== id)
        report('/responseId', 'id-changed', 'another id');
      this.#id ??= id;
    }
    const feedback = object(field(chunk, 'promptFeedback'));
    if (feedback !== undefined && field(feedback, 'blockReason') !== undefined)
      this.#blocked = true;
    const usage = object(field(chunk, 'usageMetadata'));
    if (usage !== undefined) this.#usage(usage, report);
    objects(chunk.candidates).forEach((candidate, i) => {
      if ((number(candidate.index) ?? 0) === 0)
        this.#candidate(candidate, `/candidates/${i}`, report);
    });
  }

  #usage(usage: JsonObject, report: Report): void {
    const count = (name: string) => number(field(usage, name)) ?? 0;
    const output = count('candidatesTokenCount') + count('thoughtsTokenCount');
    if (
      count('cachedContentTokenCount') >
      count('promptTokenCount') + count('toolUsePromptTokenCount')
    ) {
      report('/usageMetadata', 'usage-cached', 'more cached tokens than tokens of the prompt');
    }
    this.#output = Math.max(this.#output, output);
  }

  #candidate(candidate: JsonObject, at: string, report: Report): void {
    const content = object(candidate.content);
    const parts = list(content?.parts) ?? [];
    if (content !== undefined && content.role !== undefined && content.role !== 'model') {
      report(`${at}/content/role`, 'role', 'the role of an answer is model');
    }
    parts.forEach((part, i) => {
      const where = `${at}/content/parts/${i}`;
      if (!isObject(part)) report(where, 'part-object', 'a part is an object');
      else this.#part(part, where, report);
    });
    const reason = text(field(candidate, 'finishReason'));
    if (reason === undefined) {
      if (this.#finish !== undefined && parts.length > 0) {
        report(at, 'after-finish', 'content behind the chunk with the finishReason');
      }
      return;
    }
    if (!REASONS.has(reason))
      report(`${at}/finishReason`, 'finish', `unknown finishReason "${reason}"`);
    if (this.#finish !== undefined)
      report(`${at}/finishReason`, 'finish-once', 'a second finishReason');
    this.#finish = reason;
  }

  #part(part: JsonObject, at: string, report: Report): void {
    for (const key of Object.keys(part)) {
      if (!PART.has(key)) report(`${at}/${key}`, 'unknown-field', `clients know no field "${key}"`);
    }
    if (!Object.keys(part).some((key) => PART_DATA.has(key)))
      report(at, 'part-data', 'a part without content');
    const call = object(field(part, 'functionCall'));
    if (call === undefined) return;
    if (
      !text(call.name) &&
      field(call, 'partialArgs') === undefined &&
      field(call, 'willContinue') === undefined
    ) {
      report(`${at}/functionCall/name`, 'name-empty', 'a call without a name');
    }
    if (call.args !== undefined && !isObject(call.args)) {
      report(`${at}/functionCall/args`, 'args-object', 'arguments are an object');
    }
  }

  end(report: Report): void {
    if (this.#finish === undefined && !this.#blocked && !this.#failed) {
      report(
        '',
        'finish-missing',
        'the stream ends without a finishReason: clients take it for cut off',
      );
    }
  }
}

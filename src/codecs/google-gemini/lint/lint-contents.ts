/** Checks the contents of a Gemini request: roles, parts, and the pairing of calls and responses. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { Report } from '../../lint.ts';
import { field, list, objects, text } from '../wire.ts';
import { CALL, CONTENT, lintFields, PART, PART_DATA, RESPONSE } from './known-fields.ts';

/** Everything that the API refuses in a list of contents. */
export function lintContents(contents: readonly Json[], report: Report): void {
  contents.forEach((content, i) => {
    const at = `/contents/${i}`;
    if (!isObject(content)) {
      report(
        at,
        'content-object',
        `Invalid value at 'contents[${i}]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)`,
      );
      return;
    }
    lintFields(content, CONTENT, at, `contents[${i}]`, report);
    const { role } = content;
    if (role !== undefined && role !== 'user' && role !== 'model' && role !== 'function') {
      report(`${at}/role`, 'role', 'Please use a valid role: user, model.');
    }
    const parts = list(content.parts) ?? [];
    if (parts.length === 0) {
      const words =
        'Unable to submit request because it must include at least one parts field, which describes the prompt input.';
      report(`${at}/parts`, 'parts-empty', words);
    }
    parts.forEach((part, j) => {
      lintPart(part, i, j, report);
    });
  });
  lintTurns(contents, report);
}

function lintPart(part: Json, i: number, j: number, report: Report): void {
  const at = `/contents/${i}/parts/${j}`;
  const place = `contents[${i}].parts[${j}]`;
  if (!isObject(part)) {
    report(at, 'part-object', `Invalid value at '${place}'`);
    return;
  }
  lintFields(part, PART, at, place, report);
  const data = Object.keys(part).filter((key) => PART_DATA.has(key));
  if (data.length === 0) {
    report(
      at,
      'part-data',
      `${place}.data: required oneof field 'data' must have one initialized field`,
    );
  }
  if (data.length > 1) {
    report(
      at,
      'part-one',
      `Invalid value at '${place}' (oneof), oneof field 'data' is already set.`,
    );
  }
  const signed = field(part, 'thoughtSignature') !== undefined;
  if (part.text === '' && !signed && part.thought !== true) {
    report(
      `${at}/text`,
      'text-empty',
      'Unable to submit request because it has an empty text parameter.',
    );
  }
  const call = field(part, 'functionCall');
  if (isObject(call)) {
    lintFields(call, CALL, `${at}/functionCall`, `${place}.function_call`, report);
    named(call, `${at}/functionCall`, `${place}.function_call`, report);
    if (call.args !== undefined && !isObject(call.args)) {
      report(
        `${at}/functionCall/args`,
        'args-object',
        `Invalid value at '${place}.function_call.args' (type.googleapis.com/google.protobuf.Struct)`,
      );
    }
  }
  const response = field(part, 'functionResponse');
  if (!isObject(response)) return;
  lintFields(response, RESPONSE, `${at}/functionResponse`, `${place}.function_response`, report);
  named(response, `${at}/functionResponse`, `${place}.function_response`, report);
  if (!isObject(response.response)) {
    report(
      `${at}/functionResponse/response`,
      'response-object',
      `Invalid value at '${place}.function_response.response' (type.googleapis.com/google.protobuf.Struct)`,
    );
  }
}

function named(value: JsonObject, at: string, place: string, report: Report): void {
  if (text(value.name)) return;
  report(
    `${at}/name`,
    'name-empty',
    `* GenerateContentRequest.${place}.name: Name cannot be empty.`,
  );
}

/** What a content holds that pairs: calls or responses, and whose content it is. */
interface Turn {
  readonly at: string;
  readonly calls: readonly JsonObject[];
  readonly responses: readonly JsonObject[];
}

function turnOf(content: Json, i: number): Turn {
  const parts = isObject(content) ? objects(content.parts) : [];
  const of = (name: string) =>
    parts.flatMap((part) => {
      const value = field(part, name);
      return isObject(value) ? [value] : [];
    });
  return { at: `/contents/${i}`, calls: of('functionCall'), responses: of('functionResponse') };
}

function lintTurns(contents: readonly Json[], report: Report): void {
  let before: Turn | undefined;
  contents.forEach((content, i) => {
    const turn = turnOf(content, i);
    if (turn.calls.length > 0 && before === undefined) {
      report(
        turn.at,
        'call-after-user',
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      );
    }
    if (
      before !== undefined &&
      before.calls.length > 0 &&
      before.calls.length !== turn.responses.length
    ) {
      report(
        turn.at,
        'response-count',
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    } else if (turn.responses.length > 0) {
      if (before === undefined || before.calls.length === 0) {
        report(
          turn.at,
          'response-after-call',
          'Please ensure that function response turn comes immediately after a function call turn.',
        );
      } else lintOrder(before, turn, report);
    }
    before = turn;
  });
  if (before !== undefined && before.calls.length > 0) {
    report(
      before.at,
      'call-unanswered',
      'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
    );
  }
}

/** Responses stand in the order of their calls, under the same names. */
function lintOrder({ calls }: Turn, { at, responses }: Turn, report: Report): void {
  responses.forEach((response, i) => {
    const call = calls[i];
    if (call === undefined || call.name === response.name) return;
    report(
      `${at}/parts/${i}`,
      'response-order',
      `The name of function response ${i}, ${String(response.name)}, is not that of function call ${i}, ${String(call.name)}.`,
    );
  });
}

/** Checks a Responses request as strictly as api.openai.com does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type Finding, findings, type Report, warnOfUnknown } from '../../lint.ts';
import { FIELDS, MOVED } from './known-fields.ts';
import { lintItems } from './lint-items.ts';

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MIN_OUTPUT = 16;

/** Everything in the body that the API refuses, and warnings of fields that no vendor is known to take. */
export function lintRequest(body: Json): readonly Finding[] {
  const { list, report, warn } = findings();
  if (!isObject(body)) {
    report(
      '',
      'body-object',
      'We could not parse the JSON body of your request: expected an object.',
    );
    return list;
  }
  // A stored prompt may contain the model and the input.
  const stored = isObject(body.prompt);
  if (typeof body.model !== 'string' && !stored) {
    report('/model', 'model', "Missing required parameter: 'model'.");
  }
  warnOfUnknown(body, FIELDS, warn);
  lintParameters(body, report);
  lintTools(body, report);
  const { input } = body;
  const continues =
    typeof body.previous_response_id === 'string' ||
    (body.conversation !== undefined && body.conversation !== null);
  if (input === undefined || input === null) {
    if (!stored && !continues) report('/input', 'input', "Missing required parameter: 'input'.");
  } else if (Array.isArray(input)) {
    if (input.length === 0 && !continues) {
      const words =
        "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.";
      report('/input', 'input', words);
    }
    lintItems(input as readonly Json[], continues, report);
  } else if (typeof input !== 'string') {
    const words = "Invalid type for 'input': expected one of a string or array of objects.";
    report('/input', 'input', words);
  }
  return list;
}

function lintParameters(body: JsonObject, report: Report): void {
  const cap = body.max_output_tokens;
  if (typeof cap === 'number' && cap < MIN_OUTPUT) {
    const words = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${MIN_OUTPUT}, but got ${cap} instead.`;
    report('/max_output_tokens', 'max-output-tokens', words);
  }
  for (const [key, most] of [
    ['temperature', 2],
    ['top_p', 1],
  ] as const) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && value >= 0 && value <= most) continue;
    const words = `Invalid '${key}': expected a number from 0 to ${most}, but got ${JSON.stringify(value)} instead.`;
    report(`/${key}`, 'range', words);
  }
  for (const [chat, own] of Object.entries(MOVED)) {
    if (body[chat] === undefined) continue;
    const words = `Unsupported parameter: '${chat}'. In the Responses API, this parameter has moved to '${own}'.`;
    report(`/${chat}`, 'moved-parameter', words);
  }
}

function lintTools(body: JsonObject, report: Report): void {
  const tools = Array.isArray(body.tools) ? (body.tools as readonly Json[]) : [];
  tools.forEach((tool, i) => {
    lintTool(tool, `/tools/${i}`, `tools[${i}]`, report);
  });
  const choice = body.tool_choice;
  const some = tools.length > 0 || isObject(body.prompt);
  if (!some && isObject(choice) && choice.type === 'function') {
    const words = `Tool choice '${String(choice.name)}' not found in 'tools' parameter.`;
    report('/tool_choice', 'tool-choice', words);
  }
  if (!some && choice === 'required') {
    const words = "Tool choice 'required' must be specified with 'tools' parameter.";
    report('/tool_choice', 'tool-choice', words);
  }
}

function lintTool(tool: Json, at: string, path: string, report: Report): void {
  if (!isObject(tool) || typeof tool.type !== 'string') {
    report(`${at}/type`, 'tool-type', `Missing required parameter: '${path}.type'.`);
    return;
  }
  if (tool.type !== 'function' && tool.type !== 'custom') return;
  if (typeof tool.name !== 'string') {
    // Chat's declaration is nested, that of Responses is flat.
    report(`${at}/name`, 'tool-name', `Missing required parameter: '${path}.name'.`);
  } else if (!NAME.test(tool.name)) {
    const words = `Invalid '${path}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
    report(`${at}/name`, 'tool-name', words);
  }
}

/** Checks a Chat Completions request as strictly as api.openai.com does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type Finding, findings, type Report, warnOfUnknown } from '../../lint.ts';
import { FIELDS } from './known-fields.ts';
import { lintMessages } from './lint-messages.ts';

const MAX_TOOLS = 128;
const MAX_STOPS = 4;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
};

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
  if (typeof body.model !== 'string' || body.model === '') {
    report('/model', 'model', 'you must provide a model parameter');
  }
  warnOfUnknown(body, FIELDS, warn);
  lintParameters(body, report);
  lintTools(body, report);
  const { messages } = body;
  if (messages === undefined || messages === null) {
    report('/messages', 'messages', "Missing required parameter: 'messages'.");
  } else if (!Array.isArray(messages)) {
    report('/messages', 'messages', "Invalid type for 'messages': expected an array of objects.");
  } else if (messages.length === 0) {
    const words =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    report('/messages', 'messages', words);
  } else lintMessages(messages as readonly Json[], report);
  return list;
}

function lintParameters(body: JsonObject, report: Report): void {
  if (body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean') {
    report('/stream', 'stream', "Invalid type for 'stream': expected a boolean.");
  }
  if (isObject(body.stream_options) && body.stream !== true) {
    const words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    report('/stream_options', 'stream-options', words);
  }
  for (const [key, [least, most]] of Object.entries(RANGES)) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && value >= least && value <= most) continue;
    const words = `Invalid '${key}': expected a number from ${least} to ${most}, but got ${JSON.stringify(value)} instead.`;
    report(`/${key}`, 'range', words);
  }
  const { stop } = body;
  if (Array.isArray(stop) && stop.length > MAX_STOPS) {
    const words = `Invalid 'stop': array too long. Expected an array with maximum length ${MAX_STOPS}, but got an array with length ${stop.length} instead.`;
    report('/stop', 'stop', words);
  }
  if (isObject(body.response_format) && body.response_format.type === 'json_object') {
    if (!/json/i.test(JSON.stringify(body.messages ?? ''))) {
      const words =
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
      report('/messages', 'json-word', words);
    }
  }
}

function lintTools(body: JsonObject, report: Report): void {
  const { tools } = body;
  const declared = Array.isArray(tools) ? (tools as readonly Json[]) : [];
  if (Array.isArray(tools) && tools.length === 0) {
    const words =
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    report('/tools', 'tools-empty', words);
  }
  if (declared.length > MAX_TOOLS) {
    const words = `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}, but got an array with length ${declared.length} instead.`;
    report('/tools', 'tools-many', words);
  }
  const names = new Set<string>();
  declared.forEach((tool, i) => {
    const at = `tools[${i}]`;
    if (!isObject(tool) || typeof tool.type !== 'string') {
      report(`/tools/${i}/type`, 'tool-type', `Missing required parameter: '${at}.type'.`);
      return;
    }
    const inner = tool[tool.type];
    if (tool.type !== 'function' && tool.type !== 'custom') {
      const words = `Invalid value: '${tool.type}'. Supported values are: 'function' and 'custom'.`;
      report(`/tools/${i}/type`, 'tool-type', words);
      return;
    }
    const name = isObject(inner) ? inner.name : undefined;
    if (typeof name !== 'string') {
      const words = `Missing required parameter: '${at}.${tool.type}.name'.`;
      report(`/tools/${i}/${tool.type}/name`, 'tool-name', words);
      return;
    }
    names.add(name);
    if (!NAME.test(name)) {
      const words = `Invalid '${at}.${tool.type}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
      report(`/tools/${i}/${tool.type}/name`, 'tool-name', words);
    }
  });
  lintChoice(body, declared.length > 0, names, report);
}

function lintChoice(
  body: JsonObject,
  some: boolean,
  names: ReadonlySet<string>,
  report: Report,
): void {
  const { tool_choice: choice } = body;
  if (!some) {
    if (choice !== undefined && choice !== null && choice !== 'none') {
      const words =
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
      report('/tool_choice', 'tool-choice-without-tools', words);
    }
    if (body.parallel_tool_calls !== undefined && body.parallel_tool_calls !== null) {
      const words =
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.";
      report('/parallel_tool_calls', 'parallel-without-tools', words);
    }
    return;
  }
  if (typeof choice === 'string' && !['none', 'auto', 'required'].includes(choice)) {
    const words = `Invalid value: '${choice}'. Supported values are: 'none', 'auto', and 'required'.`;
    report('/tool_choice', 'tool-choice', words);
  }
  const forced = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined;
  if (typeof forced === 'string' && !names.has(forced)) {
    const words = `Tool choice '${forced}' not found in 'tools' parameter`;
    report('/tool_choice/function/name', 'tool-choice', words);
  }
}

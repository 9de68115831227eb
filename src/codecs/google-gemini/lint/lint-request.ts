/** Checks a Gemini request as strictly as Google does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type Finding, findings, type Report } from '../../lint.ts';
import { field, list, number, object, objects, text } from '../wire.ts';
import { BODY, CONFIG, FUNCTION, lintFields, lintSchema, THINKING } from './known-fields.ts';
import { lintContents } from './lint-contents.ts';

const MAX_STOPS = 5;
const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  topP: [0, 1],
};

/** Everything in the body that the API refuses. */
export function lintRequest(body: Json): readonly Finding[] {
  const { list: found, report } = findings();
  if (!isObject(body)) {
    report('', 'body-object', 'Invalid JSON payload received. Expected an object.');
    return found;
  }
  lintFields(body, BODY, '', '', report);
  const contents = field(body, 'contents');
  const sent = list(contents) ?? (isObject(contents) ? [contents] : []);
  if (sent.length === 0) {
    report('/contents', 'contents', '* GenerateContentRequest.contents: contents is not specified');
  } else lintContents(sent, report);
  const config = object(field(body, 'generationConfig'));
  if (config !== undefined) lintConfig(config, report);
  const names = lintTools(body, report);
  lintToolConfig(body, names, report);
  return found;
}

function lintConfig(config: JsonObject, report: Report): void {
  const at = '/generationConfig';
  lintFields(config, CONFIG, at, 'generation_config', report);
  for (const [name, [least, most]] of Object.entries(RANGES)) {
    const value = field(config, name);
    if (value === undefined) continue;
    const given = number(value);
    if (given !== undefined && given >= least && given <= most) continue;
    report(
      `${at}/${name}`,
      'range',
      `* GenerateContentRequest.generation_config.${name}: ${name} must be in the range [${least}.0, ${most}.0].`,
    );
  }
  const stops = list(field(config, 'stopSequences')) ?? [];
  if (stops.length > MAX_STOPS) {
    report(
      `${at}/stopSequences`,
      'stop',
      `The number of stop_sequences must not exceed ${MAX_STOPS}.`,
    );
  }
  const thinking = object(field(config, 'thinkingConfig'));
  if (thinking !== undefined) {
    lintFields(
      thinking,
      THINKING,
      `${at}/thinkingConfig`,
      'generation_config.thinking_config',
      report,
    );
    if (
      field(thinking, 'thinkingBudget') !== undefined &&
      field(thinking, 'thinkingLevel') !== undefined
    ) {
      report(
        `${at}/thinkingConfig`,
        'thinking-both',
        'You can only set one of thinking budget and thinking level.',
      );
    }
  }
  const schema = field(config, 'responseSchema');
  lintSchema(schema, `${at}/responseSchema`, 'generation_config.response_schema', report);
  const wants = schema !== undefined || field(config, 'responseJsonSchema') !== undefined;
  if (wants && field(config, 'responseMimeType') !== 'application/json') {
    report(
      `${at}/responseMimeType`,
      'schema-mime',
      'response_schema is only supported with response_mime_type application/json.',
    );
  }
}

/** Reports what is wrong with the tools; the names of the declared functions. */
function lintTools(body: JsonObject, report: Report): ReadonlySet<string> {
  const names = new Set<string>();
  objects(body.tools).forEach((tool, i) => {
    const declared = objects(field(tool, 'functionDeclarations'));
    declared.forEach((one, n) => {
      const at = `/tools/${i}/functionDeclarations/${n}`;
      const place = `tools[${i}].function_declarations[${n}]`;
      lintFields(one, FUNCTION, at, place, report);
      const name = text(one.name) ?? '';
      if (!NAME.test(name)) {
        report(
          `${at}/name`,
          'name',
          `* GenerateContentRequest.${place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.`,
        );
      }
      if (names.has(name))
        report(`${at}/name`, 'name-twice', `Duplicate function declaration found: ${name}`);
      names.add(name);
      const { parameters } = one;
      if (parameters !== undefined && field(one, 'parametersJsonSchema') !== undefined) {
        report(at, 'schema-both', 'Only one of parameters and parameters_json_schema can be set.');
      }
      lintSchema(parameters, `${at}/parameters`, `${place}.parameters`, report);
    });
  });
  return names;
}

function lintToolConfig(body: JsonObject, names: ReadonlySet<string>, report: Report): void {
  const config = object(field(body, 'toolConfig'));
  const calling = config && object(field(config, 'functionCallingConfig'));
  if (calling === undefined) return;
  const at = '/toolConfig/functionCallingConfig';
  const allowed = list(field(calling, 'allowedFunctionNames')) ?? [];
  const { mode } = calling;
  if (allowed.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED') {
    report(
      `${at}/allowedFunctionNames`,
      'allowed-mode',
      'Allowed function names can only be set when function calling mode is ANY or VALIDATED.',
    );
  }
  for (const name of allowed) {
    if (typeof name === 'string' && names.has(name)) continue;
    report(
      `${at}/allowedFunctionNames`,
      'allowed-name',
      `Function ${String(name)} in allowed_function_names is not declared.`,
    );
  }
  if (mode === 'ANY' && names.size === 0) {
    report(at, 'any-without', 'Function calling config is set without function_declarations.');
  }
}

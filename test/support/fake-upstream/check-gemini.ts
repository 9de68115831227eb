/** Checks a Gemini request, with Google's messages. */

import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import type { Strictness } from './check-schema.ts';
import { isRecord, refuseWith } from './refusal.ts';
import { signatureHolds } from './seals.ts';

const names = (text: string) => new Set(text.split(' '));
const TOP = names(
  'contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent serviceTier store generateContentRequest',
);
const CONTENT = names('role parts');
const DATA = names(
  'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse',
);
const PART = new Set([...DATA, 'thought', 'thoughtSignature', 'videoMetadata', 'partMetadata']);
const CONFIG = names(
  'stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs speechConfig thinkingConfig imageConfig mediaResolution',
);
const FUNCTION = names(
  'name description parameters parametersJsonSchema response responseJsonSchema behavior',
);
const SCHEMA = names(
  'type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum',
);
/** What Google's JSON Schema takes; it ignores nothing else. */
const JSON_SCHEMA = new Set([
  ...SCHEMA,
  ...names(
    '$id $defs $ref $anchor $schema prefixItems oneOf additionalProperties const exclusiveMinimum exclusiveMaximum',
  ),
]);
const SENTINELS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'];
const FUNCTION_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const records = (value: unknown) => list(value).filter(isRecord);

function only(value: JsonObject, known: ReadonlySet<string>, place: string): void {
  for (const key of Object.keys(value)) {
    if (known.has(key)) continue;
    const at = place === '' ? '' : ` at '${place}'`;
    refuseWith(`Invalid JSON payload received. Unknown name "${key}"${at}: Cannot find field.`);
  }
}

/** Members that hold the client's own names, and those whose members are named by the client. */
const FREE = names('args response parametersJsonSchema responseJsonSchema default example enum');
const NAMED = names('properties $defs');

const camelCase = (name: string) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** proto3 JSON takes the names of a message in both spellings (https://protobuf.dev/programming-guides/json/). */
function inOneSpelling(value: Json, isNamed = false): Json {
  if (Array.isArray(value)) return value.map((item) => inOneSpelling(item));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const name = isNamed ? key : camelCase(key);
      const isFree = !isNamed && FREE.has(name);
      return [name, isFree ? member : inOneSpelling(member as Json, !isNamed && NAMED.has(name))];
    }),
  );
}

/** The signature that the fake vendor puts on a call. */
export const signedCall = (name: string, args: Json | undefined): string =>
  `${name} ${JSON.stringify(args ?? {})}`;

interface CheckedTurn {
  role: string;
  calls: JsonObject[];
  /** The parts with calls. */
  signed: JsonObject[];
  responses: JsonObject[];
}

function checkPart(part: Json, place: string): JsonObject {
  if (!isRecord(part))
    return refuseWith(
      `Invalid value at '${place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part), ${JSON.stringify(part)}`,
    );
  only(part, PART, place);
  const data = Object.keys(part).filter((key) => DATA.has(key));
  if (data.length === 0) {
    refuseWith(
      `* GenerateContentRequest.${place}.data: required oneof field 'data' must have one initialized field\n`,
    );
  }
  if (data.length > 1)
    refuseWith(
      `Invalid value at '${place}' (oneof), oneof field 'data' is already set. Cannot set '${data[1]}'`,
    );
  if (part.text === '' && part.thoughtSignature === undefined) {
    refuseWith(
      'Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.',
    );
  }
  for (const key of ['functionCall', 'functionResponse']) {
    const value = part[key];
    if (value === undefined) continue;
    if (!isRecord(value)) return refuseWith(`Invalid value at '${place}.${key}'`);
    only(value, names('id name args response parts'), `${place}.${key}`);
    if (typeof value.name !== 'string' || value.name === '') {
      refuseWith(`* GenerateContentRequest.${place}.${key}.name: Name cannot be empty.\n`);
    }
    const struct = key === 'functionCall' ? value.args : value.response;
    if (struct !== undefined && !isRecord(struct)) {
      refuseWith(
        `Invalid value at '${place}.${key}' (type.googleapis.com/google.protobuf.Struct), ${JSON.stringify(struct)}`,
      );
    }
    if (key === 'functionResponse' && struct === undefined) {
      refuseWith(
        `* GenerateContentRequest.${place}.function_response.response: required field is missing\n`,
      );
    }
  }
  if (part.thoughtSignature !== undefined && !isBase64(part.thoughtSignature)) {
    refuseWith(
      `Invalid value at '${place}.thought_signature' (TYPE_BYTES), Base64 decoding failed for "${part.thoughtSignature}"`,
    );
  }
  return part;
}

const isBase64 = (value: Json | undefined) =>
  typeof value === 'string' &&
  /^[A-Za-z0-9+/_-]+={0,2}$/.test(value) &&
  value.replace(/=+$/, '').length % 4 !== 1;

function checkContents(contents: Json | undefined): CheckedTurn[] {
  if (!Array.isArray(contents) || contents.length === 0) {
    return refuseWith('* GenerateContentRequest.contents: contents is not specified\n');
  }
  const turns: CheckedTurn[] = [];
  contents.forEach((content: Json, i: number) => {
    const place = `contents[${i}]`;
    if (!isRecord(content)) refuseWith(`Invalid value at '${place}'`);
    only(content, CONTENT, place);
    const role = content.role ?? 'user';
    if (role !== 'user' && role !== 'model') refuseWith('Please use a valid role: user, model.');
    const parts = list(content.parts);
    if (parts.length === 0) {
      refuseWith(`* GenerateContentRequest.${place}.parts: contents.parts must not be empty.\n`);
    }
    const checked = parts.map((part, j) => checkPart(part, `${place}.parts[${j}]`));
    const of = (key: string) => checked.flatMap((part) => (isRecord(part[key]) ? [part[key]] : []));
    const turn: CheckedTurn = {
      role: String(role),
      calls: of('functionCall') as JsonObject[],
      signed: checked.filter((part) => part.functionCall !== undefined),
      responses: of('functionResponse') as JsonObject[],
    };
    const before = turns.at(-1);
    // Clients store a streamed answer chunk by chunk: neighbouring contents of the model are one turn.
    if (role === 'model' && before?.role === 'model') {
      turns[turns.length - 1] = {
        role: 'model',
        calls: [...before.calls, ...turn.calls],
        signed: [...before.signed, ...turn.signed],
        responses: [...before.responses, ...turn.responses],
      };
    } else turns.push(turn);
  });
  if (turns[0]?.role !== 'user') {
    refuseWith('Please ensure that the first content is of the role user.');
  }
  return turns;
}

function checkPairing(turns: CheckedTurn[]): void {
  turns.forEach(({ calls, responses, role }, i) => {
    const before = turns[i - 1];
    if (calls.length > 0 && (role !== 'model' || before === undefined)) {
      refuseWith(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      );
    }
    const asked = before?.calls ?? [];
    if (responses.length > 0 && asked.length === 0) {
      refuseWith(
        'Please ensure that function response turn comes immediately after a function call turn.',
      );
    }
    if (asked.length > 0 && responses.length !== asked.length) {
      refuseWith(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    }
    responses.forEach((response, n) => {
      if (response.name !== asked[n]?.name) {
        refuseWith(
          `Please ensure that the function response name ${String(response.name)} is that of the function call.`,
        );
      }
      if (asked[n]?.id !== undefined && response.id !== undefined && asked[n]?.id !== response.id) {
        refuseWith(
          'Please ensure that function responses stand in the order of their function calls.',
        );
      }
    });
  });
  if ((turns.at(-1)?.calls.length ?? 0) > 0) {
    refuseWith('Please ensure that function call turn is followed by a function response turn.');
  }
}

/** Gemini 3: the first call of every step since the user last spoke carries its own signature. */
function checkSignatures(turns: CheckedTurn[]): void {
  const last = turns.findLastIndex(
    ({ role, responses }) => role === 'user' && responses.length === 0,
  );
  turns.slice(last + 1).forEach(({ signed }, i) => {
    const first = signed[0];
    if (first === undefined) return;
    const call = first.functionCall as JsonObject;
    const signature = first.thoughtSignature;
    if (signature === undefined) {
      refuseWith(
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${String(call.name)}\` , position ${last + 1 + i}.`,
      );
    }
    const text = String(signature);
    if (
      !SENTINELS.includes(text) &&
      !signatureHolds(signedCall(String(call.name), call.args), text)
    ) {
      refuseWith('Corrupted thought signature.');
    }
  });
}

function checkSchema(schema: Json | undefined, known: ReadonlySet<string>, place: string): void {
  if (!isRecord(schema)) return;
  only(schema, known, place);
  for (const [name, one] of Object.entries(isRecord(schema.properties) ? schema.properties : {})) {
    checkSchema(one, known, `${place}.properties[${name}].value`);
  }
  checkSchema(schema.items as Json, known, `${place}.items`);
  for (const one of list(schema.anyOf)) checkSchema(one, known, `${place}.any_of`);
  for (const one of Object.values(isRecord(schema.$defs) ? schema.$defs : {}))
    checkSchema(one as Json, known, `${place}.$defs`);
}

function checkTools(body: JsonObject): void {
  const declared: string[] = [];
  let hosted = false;
  records(body.tools).forEach((tool, i) => {
    only(
      tool,
      names(
        'functionDeclarations googleSearch googleSearchRetrieval urlContext codeExecution computerUse fileSearch googleMaps',
      ),
      `tools[${i}]`,
    );
    hosted ||= Object.keys(tool).some((key) => key !== 'functionDeclarations');
    records(tool.functionDeclarations).forEach((one, n) => {
      const place = `tools[${i}].function_declarations[${n}]`;
      only(one, FUNCTION, place);
      const name = String(one.name);
      if (!FUNCTION_NAME.test(name)) {
        refuseWith(
          `* GenerateContentRequest.${place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n`,
        );
      }
      if (declared.includes(name)) refuseWith(`Duplicate function declaration found: ${name}`);
      declared.push(name);
      checkSchema(one.parameters as Json, SCHEMA, `${place}.parameters`);
      checkSchema(one.parametersJsonSchema as Json, JSON_SCHEMA, `${place}.parameters_json_schema`);
    });
  });
  const toolConfig = isRecord(body.toolConfig) ? body.toolConfig : {};
  if (hosted && declared.length > 0) {
    if (!String(body.model).startsWith('gemini-3')) {
      refuseWith(
        'Built-in tools ({google_search}) and Function Calling cannot be combined in the same request. Please choose one to continue.',
      );
    }
    if (toolConfig.includeServerSideToolInvocations !== true) {
      refuseWith(
        'Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.',
      );
    }
  }
  const config = toolConfig.functionCallingConfig;
  if (!isRecord(config)) return;
  const allowed = list(config.allowedFunctionNames);
  if (allowed.length > 0 && config.mode !== 'ANY' && config.mode !== 'VALIDATED') {
    refuseWith('Allowed function names can only be set when function calling mode is ANY.');
  }
  for (const name of allowed) {
    if (!declared.includes(String(name)))
      refuseWith(`Allowed function name ${String(name)} is not declared.`);
  }
}

function checkConfig(body: JsonObject): void {
  const config = body.generationConfig;
  if (!isRecord(config)) return;
  only(config, CONFIG, 'generation_config');
  const { temperature, stopSequences, thinkingConfig } = config;
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 2)) {
    refuseWith(
      '* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n',
    );
  }
  if (list(stopSequences).length > 5) refuseWith('The number of stop sequences must not exceed 5.');
  if (isRecord(thinkingConfig)) {
    only(
      thinkingConfig,
      names('includeThoughts thinkingBudget thinkingLevel'),
      'generation_config.thinking_config',
    );
    const both =
      thinkingConfig.thinkingBudget !== undefined && thinkingConfig.thinkingLevel !== undefined;
    if (both) refuseWith('You can only set only one of thinking budget and thinking level.');
  }
  const schema = config.responseSchema ?? config.responseJsonSchema;
  if (schema !== undefined && config.responseMimeType !== 'application/json') {
    refuseWith(
      '* GenerateContentRequest.generation_config.response_schema: only supported when response mime type is application/json\n',
    );
  }
  checkSchema(config.responseSchema as Json, SCHEMA, 'generation_config.response_schema');
}

/** `model` and `stream` are those of the path. @throws Refusal with Google's message */
export function checkGemini(
  given: JsonObject,
  _headers: Record<string, string>,
  strictness: Strictness & { counting?: boolean },
): void {
  const { model, stream: _, ...sent } = inOneSpelling(given) as JsonObject;
  only(sent, TOP, '');
  const meant =
    strictness.counting && isRecord(sent.generateContentRequest)
      ? sent.generateContentRequest
      : sent;
  const body: JsonObject = { ...meant, model };
  const turns = checkContents(body.contents);
  checkPairing(turns);
  if (String(model).startsWith('gemini-3') && !strictness.anySeal) checkSignatures(turns);
  checkTools(body);
  checkConfig(body);
}

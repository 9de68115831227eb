/**
 * Google names what it does not know: the request goes once more without it, or in another form where it is of the meaning.
 * Sources: github.com/zed-industries/zed/issues/44875, github.com/zed-industries/zed/issues/53919,
 * github.com/google-gemini/gemini-cli/issues/13972, github.com/danny-avila/LibreChat/issues/11761,
 * github.com/glowingjade/obsidian-smart-composer/issues/455, github.com/flyun/chatAir/issues/108,
 * github.com/router-for-me/CLIProxyAPI/issues/97.
 */

import { describe, expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FEATURES = [refusalRetry(), vendorFit()];
const HI = [{ role: 'user', parts: [{ text: 'hi' }] }];
const asked = (more: JsonObject = {}): JsonObject => ({
  model: 'm',
  stream: false,
  contents: HI,
  ...more,
});
const fine: Scripted = {
  json: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'fine' }] }, finishReason: 'STOP' }],
  },
};
const unknown = (...faults: readonly string[]): Scripted => {
  const message = faults.map((fault) => `Invalid JSON payload received. ${fault}`).join('\n');
  return { status: 400, json: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } } };
};
const noField = (name: string, at?: string) =>
  `Unknown name "${name}"${at === undefined ? '' : ` at '${at}'`}: Cannot find field.`;

/** What goes out behind the refusal, now and with the next request. */
async function sentBehind(
  body: JsonObject,
  ...faults: readonly string[]
): Promise<readonly JsonObject[]> {
  const gateway = scriptedGateway('google-gemini', [unknown(...faults), fine, fine], FEATURES);
  for (const _ of [1, 2]) expect((await gateway.ask('google-gemini', body)).status).toBe(200);
  expect(gateway.sent).toHaveLength(3);
  return gateway.sent.slice(1) as JsonObject[];
}

const HISTORY = [
  ...HI,
  {
    role: 'model',
    parts: [
      { text: 'hm', thought: true },
      { functionCall: { id: 'x', name: 'run', args: { id: 7 } }, thoughtSignature: 'AAAA' },
    ],
  },
  { role: 'user', parts: [{ functionResponse: { id: 'x', name: 'run', response: { id: 7 } } }] },
];

describe('a field is left out where it stands', () => {
  const rows: readonly (readonly [
    name: string,
    at: string | undefined,
    body: JsonObject,
    keeps: string,
  ])[] = [
    ['labels', undefined, asked({ labels: { team: 'a' } }), '"hi"'],
    ['serviceTier', undefined, asked({ serviceTier: 'flex' }), '"hi"'],
    [
      'mediaResolution',
      'generation_config',
      asked({ generationConfig: { mediaResolution: 'LOW', seed: 7 } }),
      '"seed":7',
    ],
    [
      'media_resolution',
      'generation_config',
      asked({ generation_config: { media_resolution: 'LOW', seed: 7 } }),
      '"seed":7',
    ],
    ['thoughtSignature', 'contents[1].parts[1]', asked({ contents: HISTORY }), '"thought":true'],
    ['thought', 'contents[1].parts[0]', asked({ contents: HISTORY }), '"thoughtSignature"'],
    ['id', 'contents[1].parts[1].function_call', asked({ contents: HISTORY }), '"args":{"id":7}'],
    [
      'id',
      'request.contents[2].parts[0].function_response',
      asked({ contents: HISTORY }),
      '"response":{"id":7}',
    ],
  ];
  test.each(rows)('%s at %p', async (name, at, body, keeps) => {
    const count = (given: Json) => JSON.stringify(given).split(`"${name}":`).length - 1;
    for (const sent of await sentBehind(body, noField(name, at))) {
      expect(count(sent)).toBe(count(body) - 1);
      expect(JSON.stringify(sent)).toContain(keeps);
    }
  });
});

const tool = (members: JsonObject) =>
  asked({ tools: [{ functionDeclarations: [{ name: 'run', description: 'Runs.', ...members }] }] });
const declared = (sent: JsonObject) =>
  (sent.tools as { functionDeclarations: JsonObject[] }[])[0]!.functionDeclarations[0]!;

test.each([
  ['const', { const: 'a' }, { const: 'a' }],
  ['exclusiveMinimum', { type: 'NUMBER', exclusiveMinimum: 0 }, { exclusiveMinimum: 0 }],
  ['additionalProperties', { type: 'OBJECT', properties: {}, additionalProperties: false }, {}],
])('%s in a tool of Google’s form: the tool gets a JSON Schema', async (name, property, keeps) => {
  const body = tool({ parameters: { type: 'OBJECT', properties: { [name]: property } } });
  const at = 'tools[0].function_declarations[0].parameters.properties[0].value';
  for (const sent of await sentBehind(body, noField(name, at))) {
    const { parameters, parametersJsonSchema, ...rest } = declared(sent);
    expect([parameters, rest]).toEqual([undefined, { name: 'run', description: 'Runs.' }]);
    expect(parametersJsonSchema).toMatchObject({ type: 'object', properties: { [name]: keeps } });
  }
});

test('a list of types in a tool of Google’s form: the tool gets a JSON Schema', async () => {
  const body = tool({
    parameters: { type: 'OBJECT', properties: { a: { type: ['string', 'null'] } } },
  });
  const at = 'tools[0].function_declarations[0].parameters.properties[0].value';
  const fault = `Unknown name "type" at '${at}': Proto field is not repeating, cannot start list.`;
  for (const sent of await sentBehind(body, fault)) {
    expect(declared(sent).parameters).toBeUndefined();
    expect(declared(sent).parametersJsonSchema).toMatchObject({ type: 'object' });
  }
});

test('where no JSON Schema is known, the tool keeps its schema in Google’s form', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const fault = noField('parametersJsonSchema', 'tools[0].function_declarations[0]');
  for (const sent of await sentBehind(tool({ parametersJsonSchema: schema }), fault)) {
    expect(declared(sent)).toEqual({
      name: 'run',
      description: 'Runs.',
      parameters: { type: 'OBJECT', properties: { a: { type: 'STRING' } } },
    });
  }
});

test.each([
  ['additionalProperties', 'generation_config.response_schema', 'responseSchema'],
  ['responseJsonSchema', 'generation_config', 'responseJsonSchema'],
])('%s of an answer’s form: the schema is said in the prompt', async (name, at, member) => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    additionalProperties: false,
  };
  const body = asked({
    generationConfig: { responseMimeType: 'application/json', [member]: schema },
  });
  for (const sent of await sentBehind(body, noField(name, at))) {
    expect(JSON.stringify(sent.generationConfig)).not.toContain('city');
    expect(JSON.stringify(sent)).toContain('city');
  }
});

test.each(['tools', 'systemInstruction', 'system_instruction', 'contents'])(
  '%s are never left out',
  async (name) => {
    const body = {
      ...tool({}),
      [name === 'contents' ? 'systemInstruction' : name]: tool({}).tools,
    };
    const gateway = scriptedGateway('google-gemini', [unknown(noField(name)), fine], FEATURES);
    expect((await gateway.ask('google-gemini', body)).status).toBe(400);
    expect(gateway.sent).toHaveLength(1);
  },
);

/** The words of Google where a reference is not as it wants it; its source is in the rows. */
const REFERENCE_FAULTS = [
  // anomalyco/opencode#12295
  "$ref 'QuestionOption' was set alongside unsupported fields. If a schema node has $ref set, then only description and default can be set alongside it",
  // su-kaka/gcli2api#374
  'Schema.ref was set alongside unsupported fields.',
  // google-gemini/gemini-cli#13326
  'reference to undefined schema at properties.target_object.anyOf.1',
];
const REFERRING = {
  type: 'object',
  properties: { at: { $ref: '#/$defs/Place', title: 'At' } },
  required: ['at'],
  $defs: { Place: { type: 'object', properties: { city: { type: 'string' } } } },
};
const WRITTEN_OUT = {
  type: 'OBJECT',
  properties: {
    at: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, title: 'At' },
  },
  required: ['at'],
};

describe.each(REFERENCE_FAULTS)('references in tool schemas: %s', (message) => {
  const refused = { status: 400, json: { error: { code: 400, message } } };

  test.each(['parametersJsonSchema', 'parameters_json_schema', 'parameters'])(
    'a tool of a Gemini client with %s has them written out',
    async (member) => {
      const gateway = scriptedGateway('google-gemini', [refused, fine], FEATURES);
      const tools = [{ functionDeclarations: [{ name: 'go', [member]: REFERRING }] }];
      expect((await gateway.ask('google-gemini', asked({ tools }))).status).toBe(200);
      expect(gateway.sent[1]).toMatchObject({
        tools: [{ functionDeclarations: [{ name: 'go', parameters: WRITTEN_OUT }] }],
      });
    },
  );

  test('so does that of a Chat client, and of the next request at once', async () => {
    const gateway = scriptedGateway('google-gemini', [refused, fine, fine], FEATURES);
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'a' }],
      tools: [{ type: 'function', function: { name: 'go', parameters: REFERRING } }],
    };
    for (const _ of [1, 2]) expect((await gateway.ask('openai-chat', body)).status).toBe(200);
    for (const sent of gateway.sent.slice(1)) {
      expect(sent).toMatchObject({
        tools: [{ functionDeclarations: [{ name: 'go', parameters: WRITTEN_OUT }] }],
      });
    }
    expect(gateway.sent).toHaveLength(3);
  });
});

// NousResearch/hermes-agent#100441: a tool that describes tools gives a schema; twentyhq/twenty#19412
test('a result that holds a reference is text once Google takes it for one of its own', async () => {
  const message =
    'The referenced name `#/$defs/OptionalBundleInput` in function_response.response does not match to a display_name in the function_response.parts.';
  const refused = { status: 400, json: { error: { code: 400, message } } };
  const gateway = scriptedGateway('google-gemini', [refused, fine], FEATURES);
  const call = { functionCall: { id: 'x', name: 'describe', args: { name: 'a' } } };
  const plain = { functionCall: { id: 'y', name: 'describe', args: { name: 'b' } } };
  const result = (id: string, response: JsonObject) => ({
    functionResponse: { id, name: 'describe', response },
  });
  const schema = { parameters: { $ref: '#/$defs/OptionalBundleInput' }, more: 1 };
  const contents = [
    ...HI,
    { role: 'model', parts: [call, plain] },
    { role: 'user', parts: [result('x', schema), result('y', { parameters: {}, more: 2 })] },
  ];
  expect((await gateway.ask('google-gemini', asked({ contents }))).status).toBe(200);
  expect((gateway.sent[1] as JsonObject).contents).toEqual([
    ...contents.slice(0, 2),
    {
      role: 'user',
      parts: [
        result('x', { output: JSON.stringify(schema) }),
        result('y', { parameters: {}, more: 2 }),
      ],
    },
  ]);
  const notes = gateway.summaries[0]!.notes.map(({ name }) => name);
  expect(notes).toContain('stripped_after_refusal');
});

/** Histories of other protocols as Gemini requests: the fake vendor, which refuses what Google refuses, takes them. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { reducedSchema } from '../../../src/codecs/google-gemini/request/json-schema.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { editNode, withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import type { Conversation, Sealed } from '../../../src/conversation/types.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkGemini } from '../../support/fake-upstream/check-gemini.ts';
import { target } from './support.ts';

function sent(conversation: Conversation, profile: Partial<Profile> = {}, model?: string) {
  const notes = new Notes();
  const at = target(profile);
  const body = googleGemini.encodeRequest(conversation, { ...at, model: model ?? at.model }, notes);
  const out = JSON.parse(JSON.stringify(body)) as JsonObject;
  checkGemini(out, {}, { anySeal: true });
  return { out, contents: out.contents as JsonObject[], notes: notes.summary() };
}

const chat = (body: object) =>
  openaiChat.decodeRequest({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    ...body,
  } as Json);

const call = (id: string, args = '{}') => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
});
const HISTORY = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Look.' },
  { role: 'assistant', content: 'Yes.', tool_calls: [call('a', '{"n":1}'), call('b', '{"n":2}')] },
  { role: 'tool', tool_call_id: 'b', content: 'two' },
  { role: 'tool', tool_call_id: 'a', content: 'one' },
  { role: 'user', content: 'And?' },
];
const TOOL = {
  type: 'function',
  function: {
    name: 'look',
    parameters: {
      type: 'object',
      properties: { n: { type: 'integer' } },
      additionalProperties: false,
    },
  },
};

describe('a history of Chat', () => {
  test('results stand in one content, in the order of their calls, before other words', () => {
    const { out, contents } = sent(chat({ messages: HISTORY, tools: [TOOL] }));
    expect(out.systemInstruction).toEqual({ parts: [{ text: 'Be brief.' }] });
    expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
    expect(contents[1]!.parts).toEqual([
      { text: 'Yes.' },
      { functionCall: { id: 'a', name: 'look', args: { n: 1 } } },
      { functionCall: { id: 'b', name: 'look', args: { n: 2 } } },
    ]);
    expect(contents[2]!.parts).toEqual([
      { functionResponse: { id: 'a', name: 'look', response: { output: 'one' } } },
      { functionResponse: { id: 'b', name: 'look', response: { output: 'two' } } },
      { text: 'And?' },
    ]);
  });

  test('only the first call of a step carries the documented value, where the model wants one', () => {
    const { contents, notes } = sent(chat({ messages: HISTORY, tools: [TOOL] }), {
      callSignatures: true,
    });
    const signatures = (contents[1]!.parts as JsonObject[]).map((part) => part.thoughtSignature);
    expect(signatures).toEqual([undefined, 'skip_thought_signature_validator', undefined]);
    expect(notes).toContain('call_signature_skipped');
  });

  test.each([
    ['this provider’s', { protocol: 'google-gemini', provider: 'vendor' }, 'EiwK'],
    [
      'another provider’s',
      { protocol: 'google-gemini', provider: 'other' },
      'skip_thought_signature_validator',
    ],
    [
      'another protocol’s',
      { protocol: 'anthropic-messages', provider: 'vendor' },
      'skip_thought_signature_validator',
    ],
  ])('a seal that is %s', (_, maker, expected) => {
    const sealed = { ...maker, kind: 'signature', value: 'EiwK' } as Sealed;
    const asked = chat({ messages: HISTORY, tools: [TOOL] });
    const turns = asked.turns.map((turn) =>
      editNode(turn, {
        blocks: turn.blocks.map((block) =>
          block.type === 'tool-call' && block.id === 'a' ? editNode(block, { sealed }) : block,
        ),
      }),
    );
    const { contents } = sent(withParts(asked, { turns }), { callSignatures: true });
    expect((contents[1]!.parts as JsonObject[])[1]!.thoughtSignature).toBe(expected);
  });

  test('a history that begins with an answer gets words of the user before it', () => {
    const messages = [
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'hi' },
    ];
    const { contents, notes } = sent(chat({ messages }));
    expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
    expect(notes).toContain('user_turn_added');
  });

  test('instructions in the middle become words of the user', () => {
    const messages = [
      ...HISTORY.slice(0, 2),
      { role: 'assistant', content: 'Yes.' },
      { role: 'system', content: 'Hurry.' },
      { role: 'user', content: 'Go.' },
    ];
    const { contents } = sent(chat({ messages }));
    expect(contents.at(-1)!.parts).toEqual([{ text: 'Hurry.' }, { text: 'Go.' }]);
  });

  test('settings go where Google has them, and what it has not is noted', () => {
    const { out, notes } = sent(
      chat({
        max_tokens: 9,
        temperature: 0.5,
        top_p: 0.9,
        stop: ['x'],
        seed: 7,
        n: 2,
        reasoning_effort: 'low',
        tools: [TOOL],
        tool_choice: { type: 'function', function: { name: 'look' } },
        parallel_tool_calls: false,
        logit_bias: { '1': 1 },
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'a', schema: { type: 'object' } },
        },
      }),
    );
    expect(out.generationConfig).toEqual({
      maxOutputTokens: 9,
      temperature: 0.5,
      topP: 0.9,
      stopSequences: ['x'],
      seed: 7,
      thinkingConfig: { thinkingBudget: 2048, includeThoughts: true },
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object' },
    });
    expect(out.toolConfig).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] },
    });
    expect(notes).toContain('parameter_dropped=3');
  });

  test.each([
    ['none', false, { thinkingBudget: 0 }],
    ['high', true, { thinkingLevel: 'HIGH', includeThoughts: true }],
    ['minimal', true, { thinkingLevel: 'MINIMAL', includeThoughts: true }],
  ])('effort %s, levels: %p', (effort, thinkingLevels, thinkingConfig) => {
    const { out } = sent(chat({ reasoning_effort: effort }), { thinkingLevels });
    expect(out.generationConfig).toEqual({ thinkingConfig });
  });

  // "thinking_budget is out of range; supported values are integers from 1 to 24576"
  // (https://github.com/su-kaka/gcli2api/issues/108); https://github.com/RooCodeInc/Roo-Code/issues/4399
  test.each([
    [60_000, 24_576, 'parameter_mapped'],
    [24_576, 24_576, ''],
  ])('a budget of %d tokens goes out as %d', (budget, thinkingBudget, wanted) => {
    const { out, notes } = sent(chat({ thinking: { type: 'enabled', budget_tokens: budget } }));
    expect(out.generationConfig).toMatchObject({ thinkingConfig: { thinkingBudget } });
    expect(notes).toBe(wanted);
  });

  test('names that Google refuses are spelled in another way, and found again', () => {
    const odd = [{ ...TOOL, function: { ...TOOL.function, name: '7zip' } }];
    const asked = chat({ tools: odd });
    const { out } = sent(asked);
    const [{ functionDeclarations }] = out.tools as [{ functionDeclarations: JsonObject[] }];
    const name = String(functionDeclarations[0]!.name);
    expect(name).toMatch(/^[a-zA-Z_]/);
    const reply = googleGemini.decodeReply(
      {
        candidates: [
          { content: { parts: [{ functionCall: { name, args: {} } }] }, finishReason: 'STOP' },
        ],
      },
      { sent: asked, target: target(), notes: new Notes() },
    );
    expect(reply.blocks).toMatchObject([{ type: 'tool-call', name: '7zip' }]);
  });
});

describe('a history of Messages', () => {
  const messages = (content: Json, more: object = {}) =>
    anthropicMessages.decodeRequest({
      model: 'm',
      max_tokens: 9,
      messages: [{ role: 'user', content }],
      ...more,
    } as Json);

  test('media are inline, or files by address', () => {
    const { contents } = sent(
      messages([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
        { type: 'image', source: { type: 'url', url: 'https://a.test/x.webp' } },
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
        },
        { type: 'text', text: 'What?' },
      ]),
    );
    expect(contents[0]!.parts).toEqual([
      { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
      { fileData: { mimeType: 'image/webp', fileUri: 'https://a.test/x.webp' } },
      { inlineData: { mimeType: 'application/pdf', data: 'aGk=' } },
      { text: 'What?' },
    ]);
  });

  const failed: Json = [
    {
      type: 'tool_result',
      tool_use_id: 't',
      is_error: true,
      content: [
        { type: 'text', text: 'no' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
      ],
    },
  ];
  const looked = {
    messages: [
      { role: 'user', content: 'Look.' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'Eiw' },
          { type: 'tool_use', id: 't', name: 'look', input: {} },
        ],
      },
      { role: 'user', content: failed },
    ],
  };

  test('a failed result says so, its image stands beside it or inside', () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'aGk=' } };
    const beside = sent(messages('x', looked)).contents[2]!.parts;
    expect(beside).toEqual([
      { functionResponse: { id: 't', name: 'look', response: { error: 'no\n[attached below]' } } },
      image,
    ]);
    const inside = sent(messages('x', looked), { imagesInResults: true }).contents[2]!.parts;
    expect(inside).toEqual([
      { functionResponse: { id: 't', name: 'look', response: { error: 'no' }, parts: [image] } },
    ]);
  });

  test('the thoughts of another maker are left out', () => {
    const { contents, notes } = sent(messages('x', looked));
    expect(JSON.stringify(contents)).not.toContain('Hm.');
    expect(notes).toContain('reasoning_dropped');
  });

  test('search and fetch become Google’s own tools where no function stands beside them', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const profile = { hostedTools: ['web_search', 'web_fetch'], hostedWithFunctions: false };
    expect(sent(messages('x', { tools: [search] }), profile).out.tools).toEqual([
      { googleSearch: {} },
    ]);
    const both = sent(
      messages('x', { tools: [search, { name: 'look', input_schema: { type: 'object' } }] }),
      profile,
    );
    expect(JSON.stringify(both.out.tools)).not.toContain('googleSearch');
    expect(both.notes).toContain('hosted_tool_dropped');
    const mixed = sent(
      messages('x', {
        tools: [search, { name: 'look', input_schema: { type: 'object' } }],
      }),
      { ...profile, hostedWithFunctions: true },
      'gemini-3-x',
    );
    expect(mixed.out.tools).toHaveLength(2);
    expect(mixed.out.toolConfig).toEqual({ includeServerSideToolInvocations: true });
  });
});

describe('schemas in Google’s own language', () => {
  const reduced = (schema: JsonObject) => {
    const tools = [{ ...TOOL, function: { name: 'look', parameters: schema } }];
    const { out, notes } = sent(chat({ tools }), { jsonSchemaTools: false });
    const [{ functionDeclarations }] = out.tools as [{ functionDeclarations: JsonObject[] }];
    return { schema: functionDeclarations[0]!.parameters, notes };
  };

  test('references are written out, and what has no place is noted', () => {
    const { schema, notes } = reduced({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      additionalProperties: false,
      $defs: { at: { type: 'object', properties: { x: { type: 'number', exclusiveMinimum: 0 } } } },
      properties: {
        at: { $ref: '#/$defs/at' },
        kind: { const: 'a' },
        size: { type: ['integer', 'null'] },
        either: { type: ['string', 'number'] },
        list: { type: 'array', items: { enum: ['x', 'y'] }, minItems: 1 },
        one: { oneOf: [{ type: 'string' }, { type: 'null' }] },
      },
      required: ['at', 'gone'],
    });
    expect(schema).toEqual({
      type: 'OBJECT',
      properties: {
        at: { type: 'OBJECT', properties: { x: { type: 'NUMBER', minimum: 0 } } },
        kind: { type: 'STRING', enum: ['a'] },
        size: { type: 'INTEGER', nullable: true },
        either: { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }] },
        list: { type: 'ARRAY', items: { type: 'STRING', enum: ['x', 'y'] }, minItems: 1 },
        one: { nullable: true, anyOf: [{ type: 'STRING' }] },
      },
      required: ['at'],
    });
    expect(notes).toContain('schema_simplified');
  });

  test('a reference inside itself has an end', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
    const { schema, lost } = reducedSchema({ ...node, $defs: { node } });
    expect(lost).toContain('$ref');
    expect(JSON.stringify(schema).length).toBeLessThan(1000);
  });

  test('references that double at every step do not grow without bound', () => {
    const defs: Record<string, JsonObject> = {};
    for (let i = 0; i < 40; i++) {
      const $ref = `#/$defs/d${i + 1}`;
      defs[`d${i}`] = { type: 'object', properties: { a: { $ref }, b: { $ref } } };
    }
    const { lost } = reducedSchema({
      type: 'object',
      properties: { a: { $ref: '#/$defs/d0' } },
      $defs: defs,
    });
    expect(lost).toContain('depth');
  });
});

describe('what a client of this protocol may write', () => {
  const refusal = (body: JsonObject): string => {
    try {
      googleGemini.decodeRequest({ model: 'm', ...body });
    } catch (thrown) {
      return (thrown as { param?: string }).param ?? 'no field';
    }
    return 'accepted';
  };

  test.each([
    [{}, 'contents'],
    [{ contents: [] }, 'contents'],
    [{ contents: [7] }, 'contents[0]'],
    [{ contents: [{ role: 'robot', parts: [] }] }, 'contents[0].role'],
    [{ contents: [{ parts: 'x' }] }, 'contents[0].parts'],
    [{ contents: [{ parts: [null] }] }, 'contents[0].parts[0]'],
    [{ contents: [{ parts: [{ text: 7 }] }] }, 'contents[0].parts[0].text'],
    [
      { contents: [{ parts: [{ functionCall: { args: {} } }] }] },
      'contents[0].parts[0].function_call.name',
    ],
    [
      { contents: [{ parts: [{ functionCall: { name: 'f', args: 'x' } }] }] },
      'contents[0].parts[0].function_call.args',
    ],
    [
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: [] } }] }] },
      'contents[0].parts[0].function_response.response',
    ],
    [{ contents: [{ parts: [{ inlineData: 'x' }] }] }, 'contents[0].parts[0].inline_data'],
    [
      { contents: [{ parts: [{ inline_data: { mime_type: 7, data: '' } }] }] },
      'contents[0].parts[0].inline_data.mime_type',
    ],
    [
      { contents: [{ parts: [{ fileData: { fileUri: [] } }] }] },
      'contents[0].parts[0].file_data.file_uri',
    ],
    [
      { contents: [{ parts: [{ functionCall: { name: 'f', id: 7 } }] }] },
      'contents[0].parts[0].function_call.id',
    ],
    [
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: {}, parts: 'x' } }] }] },
      'contents[0].parts[0].function_response.parts',
    ],
    [
      { contents: [{ parts: [{ executableCode: { code: 7 } }] }] },
      'contents[0].parts[0].executable_code.code',
    ],
    [
      { contents: [{ parts: [{ codeExecutionResult: 'x' }] }] },
      'contents[0].parts[0].code_execution_result',
    ],
    [
      { contents: [{ parts: [{ toolCall: { toolType: 7 } }] }] },
      'contents[0].parts[0].tool_call.tool_type',
    ],
    [{ contents: [{ parts: [{ toolResponse: [] }] }] }, 'contents[0].parts[0].tool_response'],
    [
      { contents: [{ parts: [{ text: 'x', functionCall: { name: 'f' } }] }] },
      'contents[0].parts[0]',
    ],
    [{ contents: [{ parts: [{ inlineData: {}, file_data: {} }] }] }, 'contents[0].parts[0]'],
    [
      { contents: [{ parts: [{ text: 'x', thoughtSignature: 7 }] }] },
      'contents[0].parts[0].thought_signature',
    ],
    [
      { contents: [{ parts: [{ functionCall: { name: 'f' }, thought_signature: 'no base64!' }] }] },
      'contents[0].parts[0].thought_signature',
    ],
    // What Google takes: an absent value, base64 of either alphabet, and the words for foreign calls.
    [
      { contents: [{ parts: [{ text: 'x', functionCall: null, thoughtSignature: null }] }] },
      'accepted',
    ],
    [{ contents: [{ parts: [{ text: 'x', thoughtSignature: 'a+/-_A==' }] }] }, 'accepted'],
    [
      {
        contents: [
          {
            parts: [
              { functionCall: { name: 'f' }, thoughtSignature: 'skip_thought_signature_validator' },
            ],
          },
        ],
      },
      'accepted',
    ],
    [{ contents: [{ parts: [{ text: 'x' }] }], tools: [7] }, 'tools[0]'],
    [
      { contents: [{ parts: [{ text: 'x' }] }], tools: [{ functionDeclarations: [{}] }] },
      'tools[0].function_declarations[0].name',
    ],
  ])('%j names the field at fault', (body, field) => {
    expect(refusal(body as unknown as JsonObject)).toBe(field);
  });

  test('calls without ids are paired with their results by name and order', () => {
    const of = (name: string, n: number) => ({ functionCall: { name, args: { n } } });
    const result = (name: string, output: string) => ({
      functionResponse: { name, response: { output } },
    });
    const { turns } = googleGemini.decodeRequest({
      model: 'm',
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [of('f', 1), of('g', 2), of('f', 3)] },
        { role: 'user', parts: [result('f', 'one'), result('g', 'two'), result('f', 'three')] },
      ],
    });
    const ids = turns[1]!.blocks.map((block) => (block.type === 'tool-call' ? block.id : ''));
    expect(new Set(ids).size).toBe(3);
    expect(
      turns[2]!.blocks.map((block) => (block.type === 'tool-result' ? block.callId : '')),
    ).toEqual(ids);
  });
});

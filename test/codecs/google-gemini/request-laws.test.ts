/** The law of the Gemini request codec: unchanged requests go out as they came in. */

import { describe, expect, test } from 'bun:test';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { editNode, withParts } from '../../../src/conversation/edit.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import { haveFixtures } from '../../support/fixtures.ts';
import { recordedBodies, target } from './support.ts';

type Change = 'none' | 'turns' | 'edit' | 'tools' | 'settings';

function encode(body: JsonObject, change: Change) {
  const conversation = googleGemini.decodeRequest(body);
  const { turns, tools, settings } = conversation;
  const edited = () =>
    turns.map((turn) =>
      editNode(turn, { blocks: turn.blocks.map((block) => editNode(block, {})) }),
    );
  const changed = withParts(conversation, {
    ...(change === 'turns' ? { turns: [...turns] } : {}),
    ...(change === 'edit' ? { turns: edited() } : {}),
    ...(change === 'tools' ? { tools: [...tools] } : {}),
    ...(change === 'settings' ? { settings: { ...settings } } : {}),
  });
  const notes = new Notes();
  const out = googleGemini.encodeRequest(changed, target({}, String(body.model)), notes);
  return { out: JSON.parse(JSON.stringify(out)) as JsonObject, notes };
}

/** All parts of a body in order, which is what its contents say. */
const partsOf = (body: JsonObject): unknown[] =>
  (body.contents as Json[]).flatMap((content) =>
    isObject(content) ? ((content.parts ?? []) as Json[]) : [],
  );

/** All declarations of a body in order. */
const declared = (body: JsonObject): unknown[] =>
  ([body.tools ?? []].flat() as JsonObject[])
    .flatMap((tool) => Object.entries(tool))
    .flatMap(([key, value]) => (/^function/.test(key) ? (value as unknown[]) : [{ [key]: value }]));

function laws(all: readonly (readonly [string, JsonObject])[]): void {
  test('an untouched request comes out deep-equal and without notes', () => {
    for (const [name, body] of all) {
      const { out, notes } = encode(body, 'none');
      expect({ name, out }).toEqual({ name, out: body });
      expect(notes.size).toBe(0);
    }
  });

  test('new settings that say the same come out deep-equal', () => {
    for (const [name, body] of all) {
      expect({ name, out: encode(body, 'settings').out }).toEqual({ name, out: body });
    }
  });

  test('a new list of the same turns says the same parts in the same order', () => {
    for (const [name, body] of all) {
      const { out } = encode(body, 'turns');
      expect({ name, parts: partsOf(out) }).toEqual({ name, parts: partsOf(body) });
    }
  });

  test('a new list of the same tools declares the same', () => {
    const sorted = (list: unknown[]) => list.map((one) => JSON.stringify(one)).sort();
    for (const [name, body] of all) {
      const { out } = encode(body, 'tools');
      expect({ name, tools: sorted(declared(out)) }).toEqual({
        name,
        tools: sorted(declared(body)),
      });
    }
  });
}

const CALL = {
  functionCall: { name: 'look', args: { at: [1, { b: null }] } },
  thoughtSignature: 'EiwKIAAA',
};

const HANDMADE: readonly (readonly [string, JsonObject])[] = [
  ['least', { model: 'm', contents: [{ parts: [{ text: 'hi' }] }] }],
  ['stream', { model: 'm', stream: true, contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }],
  [
    'snake case',
    {
      model: 'm',
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        {
          role: 'model',
          parts: [{ function_call: { name: 'f', args: {} }, thought_signature: 'EiwK' }],
        },
        {
          role: 'function',
          parts: [{ function_response: { name: 'f', response: { result: 1 } } }],
        },
      ],
      system_instruction: { parts: [{ text: 'Be brief.' }] },
      generation_config: {
        max_output_tokens: 5,
        top_p: 0.5,
        stop_sequences: ['x'],
        thinking_config: { thinking_budget: 0 },
      },
      tool_config: { function_calling_config: { mode: 'ANY', allowed_function_names: ['f'] } },
      tools: [
        { function_declarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: {} } }] },
      ],
    },
  ],
  [
    'everything',
    {
      model: 'm',
      systemInstruction: { role: 'user', parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] },
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'a' },
            { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
            { fileData: { fileUri: 'gs://b/c', mimeType: 'video/mp4' }, videoMetadata: { fps: 1 } },
          ],
        },
        {
          role: 'model',
          parts: [
            { text: 'Hm.', thought: true },
            { text: 'Let me look.' },
            CALL,
            { functionCall: { id: 'x', name: 'look', args: {} } },
          ],
        },
        {
          role: 'user',
          parts: [
            { functionResponse: { name: 'look', response: { output: 'one' } } },
            {
              functionResponse: {
                id: 'x',
                name: 'look',
                response: { error: 'no' },
                parts: [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }],
              },
            },
          ],
        },
        {
          role: 'model',
          parts: [
            { executableCode: { language: 'PYTHON', code: '1+1', id: 'c' } },
            { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2', id: 'c' } },
            { text: '', thoughtSignature: 'EiwKIBBB' },
          ],
        },
        { role: 'user', parts: [{ somethingNew: { x: 1 } }] },
      ],
      tools: [
        {
          functionDeclarations: [
            { name: 'look', description: 'Looks.', parametersJsonSchema: { type: 'object' } },
          ],
        },
        { googleSearch: {} },
        { codeExecution: {} },
      ],
      toolConfig: {
        functionCallingConfig: { mode: 'VALIDATED' },
        retrievalConfig: { languageCode: 'de' },
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      generationConfig: {
        temperature: 0.5,
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object' },
        thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true },
        mediaResolution: 'MEDIA_RESOLUTION_LOW',
      },
      cachedContent: 'cachedContents/1',
      labels: { team: 'web' },
      aNewField: true,
    },
  ],
  [
    'an answer stored chunk by chunk',
    {
      model: 'm',
      contents: [
        { role: 'user', parts: [{ text: 'a' }] },
        { role: 'model', parts: [{ text: 'Hel' }] },
        { role: 'model', parts: [{ text: 'lo.' }] },
      ],
    },
  ],
];

describe('requests by hand', () => {
  laws(HANDMADE.filter(([name]) => name !== 'an answer stored chunk by chunk'));

  test('an answer stored chunk by chunk goes out as it came while nothing changes', () => {
    const [, body] = HANDMADE.at(-1)!;
    expect(encode(body, 'none').out).toEqual(body);
  });

  test('it is one turn with one text for the other protocols', () => {
    const { turns } = googleGemini.decodeRequest(HANDMADE.at(-1)![1]);
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(turns[1]!.blocks).toEqual([{ type: 'text', text: 'Hello.' }]);
  });

  test('edited nodes with the same content say the same', () => {
    const body = HANDMADE.find(([name]) => name === 'everything')![1];
    const { out } = encode(body, 'edit');
    expect(partsOf(out)).toEqual(partsOf(body));
  });
});

if (haveFixtures) {
  describe('recorded requests', () => {
    const bodies = recordedBodies();
    test('there are many', () => expect(bodies.length).toBeGreaterThan(100));
    laws(bodies);
  });
} else test.skip('SKIPPED: recorded requests are not available', () => {});

/** The linters of Gemini and the repair of histories: what is reported, and that a repaired history is taken. */

import { describe, expect, test } from 'bun:test';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { lintRequest } from '../../../src/codecs/google-gemini/lint/lint-request.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { repairBody, toolPairing } from '../../../src/features/tool-pairing/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { checkGemini } from '../../support/fake-upstream/check-gemini.ts';
import { target } from './support.ts';

const user = (...parts: JsonObject[]) => ({ role: 'user', parts });
const model = (...parts: JsonObject[]) => ({ role: 'model', parts });
const t = (text: string) => ({ text });
const call = (name: string) => ({ functionCall: { name, args: {} } });
const result = (name: string) => ({ functionResponse: { name, response: { output: 'x' } } });
const GOOD = [user(t('hi')), model(call('f'), call('g')), user(result('f'), result('g'))];

const rules = (body: JsonObject) => [...new Set(lintRequest(body).map(({ rule }) => rule))];

test('a good request has no finding', () => {
  expect(lintRequest({ contents: GOOD })).toEqual([]);
});

test.each<[string, JsonObject]>([
  ['contents', {}],
  ['unknown-field', { contents: GOOD, messages: [] }],
  ['role', { contents: [{ role: 'assistant', parts: [t('x')] }] }],
  ['parts-empty', { contents: [user()] }],
  ['part-data', { contents: [user({ thought: true })] }],
  ['part-one', { contents: [user({ text: 'x', inlineData: {} })] }],
  ['text-empty', { contents: [user(t(''))] }],
  ['response-count', { contents: [...GOOD.slice(0, 2), user(result('f'))] }],
  ['response-order', { contents: [...GOOD.slice(0, 2), user(result('g'), result('f'))] }],
  ['response-after-call', { contents: [user(result('f'))] }],
  ['call-unanswered', { contents: GOOD.slice(0, 2) }],
  ['call-after-user', { contents: [model(call('f')), user(result('f'))] }],
  ['name', { contents: GOOD, tools: [{ functionDeclarations: [{ name: '7' }] }] }],
  [
    'unknown-field',
    {
      contents: GOOD,
      tools: [
        {
          functionDeclarations: [
            { name: 'f', parameters: { type: 'OBJECT', additionalProperties: false } },
          ],
        },
      ],
    },
  ],
  ['stop', { contents: GOOD, generationConfig: { stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] } }],
  ['range', { contents: GOOD, generationConfig: { temperature: 3 } }],
  [
    'allowed-mode',
    {
      contents: GOOD,
      toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['f'] } },
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
    },
  ],
])('%s is reported', (rule, body) => {
  expect(rules(body)).toContain(rule);
});

describe('damaged histories', () => {
  const mended = (contents: Json) => {
    const notes = new Notes();
    const asked = googleGemini.decodeRequest({ model: 'm', contents });
    const context = { target: target(), client: 'google-gemini', notes, hop: 1 } as const;
    const repaired = toolPairing.request!(asked, context);
    const out = JSON.parse(JSON.stringify(googleGemini.encodeRequest(repaired, target(), notes)));
    checkGemini(out, {}, { anySeal: true });
    return { same: repaired === asked, notes: notes.summary() };
  };

  test('a whole one stays the very same', () => {
    expect(mended(GOOD).same).toBe(true);
  });

  test.each<[string, Json]>([
    [
      'a call without its result',
      [...GOOD.slice(0, 2), user(result('f')), model(t('y')), user(t('z'))],
    ],
    ['a call without any result', [...GOOD.slice(0, 2), user(t('z'))]],
    ['a result without its call', [user(t('hi')), model(t('y')), user(result('f'), t('z'))]],
    [
      'results behind other words',
      [...GOOD.slice(0, 2), user(t('wait')), user(result('f'), result('g'))],
    ],
    ['results in two contents', [...GOOD.slice(0, 2), user(result('f')), user(result('g'))]],
    ['results in another order', [...GOOD.slice(0, 2), user(result('g'), result('f'))]],
    ['empty texts and contents', [user(t('hi'), t('')), model(), user(t('x'))]],
  ])('%s is mended, and Google takes it', (_, contents) => {
    const { same, notes } = mended(contents);
    expect(same).toBe(false);
    expect(notes).not.toBe('');
  });

  test('a body that cannot be read is put right first', () => {
    const notes = new Notes();
    const body: JsonObject = {
      model: 'm',
      contents: [
        'hi',
        { role: 'assistant', parts: { functionCall: { name: 'f', args: '{}' } } },
        null,
        { role: 'tool', parts: [{ functionResponse: { name: 'f', response: 'x' } }] },
      ],
    };
    const repaired = repairBody(body, 'google-gemini', notes);
    expect(() => googleGemini.decodeRequest(repaired)).not.toThrow();
    expect(notes.summary()).toBe('malformed_content_mended');
  });
});

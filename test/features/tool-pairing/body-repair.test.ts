/** A history whose entries are no objects becomes one that the decoder reads. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { Notes } from '../../../src/conversation/notes.ts';
import { repairBody } from '../../../src/features/tool-pairing/index.ts';
import type { Json } from '../../../src/lib/json/json.ts';

describe.each([
  ['openai-chat', openaiChat, 'messages'],
  ['anthropic-messages', anthropicMessages, 'messages'],
  ['openai-responses', openaiResponses, 'input'],
  ['google-gemini', googleGemini, 'contents'],
] as const)('the history of %s', (_, codec, key) => {
  /** What the user says in the repaired history. */
  function said(history: Json): unknown {
    const body = repairBody({ model: 'm', max_tokens: 9, [key]: history }, codec.name, new Notes());
    const { turns } = codec.decodeRequest(body as never);
    expect(turns.every(({ role }) => role === 'user')).toBe(true);
    return turns.flatMap(({ blocks }) => blocks.map((one) => one.type === 'text' && one.text));
  }

  test('a bare value is what the user says', () => {
    expect(said(['hi', 5, null])).toEqual(['hi', '5']);
  });

  test('where nothing is readable, a placeholder stands', () => {
    expect(said([null])).toEqual(['(no content)']);
    expect(said([null, ''])).toEqual(['(no content)']);
  });
});

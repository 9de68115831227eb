/** The text of an answer is the same whichever protocol it came in, whole or streamed, and never throws. */

import { describe, expect, test } from 'bun:test';
import { anthropicMessages } from '../../../src/codecs/anthropic-messages/index.ts';
import { openaiChat } from '../../../src/codecs/openai-chat/index.ts';
import { ANSWER_CHARACTERS, answerText } from '../../../src/samples/replay/outcome.ts';

const bytes = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const REQUEST = bytes({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
const JSON_TYPE = new Headers({ 'content-type': 'application/json' });
const SSE_TYPE = new Headers({ 'content-type': 'text/event-stream' });

const chat = (content: string | null, more: object = {}) =>
  bytes({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content, ...more }, finish_reason: 'stop' },
    ],
  });

const whole = (body: Uint8Array, status = 200) =>
  answerText(openaiChat, REQUEST, { status, headers: JSON_TYPE, body, reset: false });

describe('the text of an answer', () => {
  test('the text contains text and calls, but no reasoning', () => {
    const call = { id: 'a', type: 'function', function: { name: 'look', arguments: '{"x":1}' } };
    const body = chat('Let me see.', { reasoning_content: 'hm', tool_calls: [call] });
    expect(whole(body)).toBe('Let me see.\n\n→ look {"x":1}');
  });

  test('a cut stream gives the text up to the cut', () => {
    const frames = ['One ', 'two'].map(
      (text) =>
        `event: content_block_delta\ndata: ${JSON.stringify({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'text_delta', text },
        })}\n\n`,
    );
    const body = bytes(
      `event: message_start\ndata: ${JSON.stringify({
        type: 'message_start',
        message: { id: 'm1', type: 'message', role: 'assistant', model: 'm', content: [] },
      })}\n\nevent: content_block_start\ndata: ${JSON.stringify({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      })}\n\n${frames.join('')}`,
    );
    const answered = { status: 200, headers: SSE_TYPE, body, reset: true };
    expect(answerText(anthropicMessages, REQUEST, answered)).toBe('One two');
  });

  test('an error, garbage, or a request that cannot be read does not throw', () => {
    expect(whole(bytes('{"error":{"message":"no"}}'), 500)).toBeUndefined();
    expect(whole(bytes('<html>'))).toBeUndefined();
    const answered = { status: 200, headers: JSON_TYPE, body: chat('Fine.'), reset: false };
    expect(answerText(openaiChat, bytes('nonsense'), answered)).toBe('Fine.');
  });

  test('a long answer is cut, with the number of missing characters', () => {
    const text = whole(chat('a'.repeat(ANSWER_CHARACTERS + 5)))!;
    expect(text).toEndWith('\n… 5 more characters');
    expect(text.length).toBeLessThan(ANSWER_CHARACTERS + 40);
  });
});

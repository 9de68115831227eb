/** A call that a limit cut off is left out for Gemini clients: as an object of its text it would be run. */

import { expect, test } from 'bun:test';
import { scriptedGateway } from '../../gateway/scripted.ts';

const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"path":"/tm' } };
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const whole = {
  json: {
    id: 'c',
    object: 'chat.completion',
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'So.', tool_calls: [call] },
        finish_reason: 'length',
      },
    ],
  },
};
const streamed = {
  sse: [
    chunk({ content: 'So.' }),
    chunk({ tool_calls: [{ index: 0, ...call }] }),
    chunk({}, 'length'),
    'data: [DONE]\n\n',
  ],
};

test.each([false, true])('stream: %p', async (stream) => {
  const gateway = scriptedGateway('openai-chat', [stream ? streamed : whole]);
  const answer = await gateway.ask('google-gemini', {
    model: 'm',
    stream,
    contents: [{ parts: [{ text: 'hi' }] }],
    tools: [{ functionDeclarations: [{ name: 'f' }] }],
  });
  expect(answer.text).toContain('So.');
  expect(answer.text).toContain('MAX_TOKENS');
  expect(answer.text).not.toContain('functionCall');
  expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain('content_dropped');
});

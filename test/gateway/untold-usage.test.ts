/** A vendor that does not count the prompt: agents compact by that count, so clients of Messages get an estimate and no 0. */

import { expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from './scripted.ts';

type Vendor = 'openai-chat' | 'openai-responses' | 'google-gemini';

const message = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'fine', annotations: [] }],
};
const response = {
  id: 'r',
  object: 'response',
  model: 'm',
  status: 'completed',
  output: [message],
};
const candidate = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'fine' }] }, finishReason: 'STOP' }],
};
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const ANSWERS: Readonly<Record<Vendor, readonly [whole: Scripted, streamed: Scripted]>> = {
  'openai-chat': [
    {
      json: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          { index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' },
        ],
      },
    },
    { sse: [chunk({ content: 'fine' }), chunk({}, 'stop'), 'data: [DONE]\n\n'] },
  ],
  'openai-responses': [
    { json: response },
    {
      sse: [
        `data: ${JSON.stringify({ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } })}\n\n`,
        `data: ${JSON.stringify({ type: 'response.output_item.done', output_index: 0, item: message })}\n\n`,
        `data: ${JSON.stringify({ type: 'response.completed', response })}\n\n`,
      ],
    },
  ],
  'google-gemini': [{ json: candidate }, { sse: [`data: ${JSON.stringify(candidate)}\n\n`] }],
};

const CASES = (Object.keys(ANSWERS) as Vendor[]).flatMap((vendor) =>
  [false, true].map((stream) => [vendor, stream] as const),
);

const usageIn = (text: string, stream: boolean): JsonObject => {
  const json = stream
    ? text
        .split('\n')
        .find((line) => line.startsWith('data: {"type":"message_delta"'))!
        .slice(6)
    : text;
  return (JSON.parse(json) as { usage: JsonObject }).usage;
};

test.each(CASES)('%s, streamed: %p', async (vendor, stream) => {
  const counts: number[] = [];
  for (const words of [10, 10_000]) {
    const gateway = scriptedGateway(vendor, [ANSWERS[vendor][stream ? 1 : 0]]);
    const answer = await gateway.ask('anthropic-messages', {
      model: 'm',
      max_tokens: 9,
      stream,
      messages: [{ role: 'user', content: 'word '.repeat(words) }],
    });
    expect(answer.status).toBe(200);
    counts.push(Number(usageIn(answer.text, stream).input_tokens));
    expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toContain('tokens_estimated');
  }
  expect(counts[0]!).toBeGreaterThan(0);
  expect(counts[1]!).toBeGreaterThan(5000);
  expect(counts[1]!).toBeLessThan(20_000);
});

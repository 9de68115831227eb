/** A feature that refuses an answer at its very end: the client gets an error and a reset, never a silent end. */

import { describe, expect, test } from 'bun:test';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { StreamEvent } from '../../../src/conversation/events.ts';
import type { Feature } from '../../../src/features/feature.ts';
import { scriptedGateway } from '../scripted.ts';

const REFUSAL = 'This answer cannot be used.';
const refuse = (): never => {
  throw new GatewayError('upstream', REFUSAL);
};

const featureWith = (
  event: (event: StreamEvent) => StreamEvent,
  end: () => readonly StreamEvent[],
): Feature => ({ name: 'refusing', intercept: () => ({ event, end }) });

const REFUSING: Readonly<Record<string, Feature>> = {
  'at the finish': featureWith(
    (event) => (event.type === 'finish' ? refuse() : event),
    () => [],
  ),
  'at the end': featureWith(
    (event) => (event.type === 'end' ? refuse() : event),
    () => [],
  ),
};
const REFUSES_BEHIND = featureWith((event) => event, refuse);

const ASKED = {
  model: 'm',
  stream: true,
  max_tokens: 9,
  messages: [{ role: 'user', content: 'hi' }],
};

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const SAID = chunk({ role: 'assistant', content: 'Hello.' });
const FINISH = chunk({}, 'stop');
const DONE = 'data: [DONE]\n\n';

const STREAMS: Readonly<Record<string, readonly string[]>> = {
  'in one chunk': [SAID + FINISH + DONE],
  'in chunks of one frame': [SAID, FINISH, DONE],
  'without [DONE]': [SAID, FINISH],
};

describe.each(['openai-chat', 'anthropic-messages'] as const)('%s', (client) => {
  for (const [when, feature] of Object.entries(REFUSING)) {
    test.each(Object.entries(STREAMS))(`${when}, %s`, async (_, sse) => {
      const { ask, summaries } = scriptedGateway('openai-chat', [{ sse }], [feature]);
      const { text, reset } = await ask(client, ASKED);
      expect(text).toContain('Hello.');
      expect(text).toContain(REFUSAL);
      expect(text).not.toContain('[DONE]');
      expect(text).not.toContain('message_stop');
      expect(reset).toBe(true);
      expect(summaries.map(({ error }) => error?.message)).toEqual([REFUSAL]);
    });
  }

  test('what breaks behind the ending that the client has got costs nothing', async () => {
    const sse = [SAID, FINISH, DONE];
    const { ask, summaries } = scriptedGateway('openai-chat', [{ sse }], [REFUSES_BEHIND]);
    const { text, reset } = await ask(client, ASKED);
    expect(text).toMatch(/\[DONE\]|message_stop/);
    expect([reset, summaries[0]!.error]).toEqual([false, undefined]);
  });
});

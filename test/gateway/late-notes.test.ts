/** What is noted while a stream runs is told with the exchange, too. */

import { expect, test } from 'bun:test';
import type { Feature } from '../../src/features/feature.ts';
import { scriptedGateway } from './scripted.ts';

const chunk = (delta: unknown, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

/** Notes every word that goes by. */
const listener: Feature = {
  name: 'listener',
  intercept: (_sent, { notes }) => ({
    event(event) {
      if (event.type === 'delta') notes.add('heard', undefined, event.text);
      return event;
    },
    end: () => [],
  }),
};

test('a note made in the middle of a stream is not missing from the exchange’s log line', async () => {
  const words = ['one', 'two', 'three'];
  const answer = { sse: [...words.map((content) => chunk({ content })), chunk({}, 'stop')] };
  const { ask: request, summaries } = scriptedGateway('openai-chat', [answer], [listener]);
  const messages = [{ role: 'user', content: 'count' }];
  const { status } = await request('openai-chat', { model: 'm', stream: true, messages });
  expect(status).toBe(200);
  expect(summaries[0]?.notes.map(({ what }) => what)).toEqual(words);
});

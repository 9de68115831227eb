/** A vendor that ends a stream with a failure only its own clients know: the client of an agent hears of an error. */

import { describe, expect, test } from 'bun:test';
import type { Feature } from '../../../src/features/feature.ts';
import { scriptedGateway } from '../scripted.ts';

const WATCHING: Feature = {
  name: 'watching',
  intercept: () => ({ event: (event) => event, end: () => [] }),
};

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const SAID = chunk({ role: 'assistant', content: 'Half an ans' });
const DONE = 'data: [DONE]\n\n';
const ASKED = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] };

describe.each(['network_error', 'insufficient_system_resource', 'error'])('%s', (reason) => {
  test.each([
    ['in one chunk', (parts: readonly string[]) => [parts.join('')]],
    ['in chunks of one frame', (parts: readonly string[]) => parts],
  ])('%s', async (_, cut) => {
    const sse = cut([SAID, chunk({}, reason), DONE]);
    const { ask, summaries } = scriptedGateway('openai-chat', [{ sse }], [WATCHING]);
    const { text } = await ask('openai-chat', ASKED);
    expect(text.startsWith(SAID)).toBe(true);
    const last = JSON.parse(
      text
        .trim()
        .split('\n')
        .at(-1)!
        .replace(/^data: /, ''),
    );
    expect(last.error.message).toContain(reason);
    expect(text).not.toContain('[DONE]');
    expect(summaries[0]!.error?.message).toContain(reason);
  });
});

test('a reason that is new but no failure passes byte for byte', async () => {
  const sse = [SAID, chunk({}, 'eos'), DONE];
  const { ask } = scriptedGateway('openai-chat', [{ sse }], [WATCHING]);
  expect((await ask('openai-chat', ASKED)).text).toBe(sse.join(''));
});

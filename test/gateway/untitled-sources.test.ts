/** Sources without a title: @ai-sdk/anthropic and @ai-sdk/openai want a text there, and refuse the whole answer else. */

import { expect, test } from 'bun:test';
import type { ProtocolName } from '../../src/conversation/protocol-names.ts';
import { type Scripted, scriptedGateway } from './scripted.ts';

const URL = 'https://a.test/b';
const chunk = (delta: object, finish: string | null, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`;
const annotations = [{ type: 'url_citation', url_citation: { url: URL } }];
const whole = (message: object, more: object = {}): Scripted => ({
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'So it is.', ...message },
        finish_reason: 'stop',
      },
    ],
    ...more,
  },
});

/** Perplexity's addresses, and an annotation that has no more. */
const SAID: Readonly<Record<string, readonly [whole: Scripted, streamed: Scripted]>> = {
  'an address alone': [
    whole({}, { citations: [URL] }),
    { sse: [chunk({ content: 'So it is.' }, null, { citations: [URL] }), chunk({}, 'stop')] },
  ],
  'an annotation without a title': [
    whole({ annotations }),
    { sse: [chunk({ content: 'So it is.' }, null), chunk({ annotations }, 'stop')] },
  ],
};

const CLIENTS: readonly (readonly [ProtocolName, object])[] = [
  ['anthropic-messages', { max_tokens: 9, messages: [{ role: 'user', content: 'a' }] }],
  ['openai-responses', { input: 'a', store: false }],
];

for (const [what, answers] of Object.entries(SAID)) {
  for (const [client, body] of CLIENTS) {
    test.each([false, true])(`${what} has a title for ${client}, streamed: %p`, async (stream) => {
      const gateway = scriptedGateway('openai-chat', [answers[Number(stream)]!]);
      const { text } = await gateway.ask(client, { model: 'm', stream, ...body });
      expect(text).toContain(`"url":"${URL}"`);
      expect(text).toMatch(/"title":"[^"]*"/);
      expect(text).not.toContain('"title":null');
    });
  }
}

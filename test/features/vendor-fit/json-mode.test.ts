/** JSON mode at servers that know schemas alone: it becomes a schema of any object, known beforehand or learnt from the refusal. */

import { expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { scriptedGateway } from '../../gateway/scripted.ts';

const ANSWER = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: '{"a":1}' }, finish_reason: 'stop' },
    ],
  },
};
// https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189
const REFUSED = {
  status: 400,
  json: { error: "'response_format.type' must be 'json_schema' or 'text'" },
};
const messages = [{ role: 'user', content: 'Answer in JSON.' }] as const;
const CLIENTS = [
  ['openai-chat', { messages, response_format: { type: 'json_object' } }],
  ['openai-responses', { input: 'Answer in JSON.', text: { format: { type: 'json_object' } } }],
] as const;
const WANTED = {
  type: 'json_schema',
  json_schema: { name: 'answer', schema: { type: 'object' } },
};
const FEATURES = [refusalRetry(), vendorFit()];

interface Sent {
  readonly response_format?: object;
}
const formats = (sent: readonly unknown[]) =>
  sent.map((body) => (body as Sent).response_format ?? null);

test.each(CLIENTS)('LM Studio reads a schema from a client of %s', async (client, body) => {
  const { ask, sent } = scriptedGateway('openai-chat', [ANSWER], FEATURES, '', {
    profile: 'lmstudio',
  });
  expect((await ask(client, { model: 'm', ...body })).status).toBe(200);
  expect(formats(sent)).toEqual([WANTED]);
});

test.each(CLIENTS)('a refusal of JSON mode is mended for a client of %s', async (client, body) => {
  const { ask, sent } = scriptedGateway('openai-chat', [REFUSED, ANSWER], FEATURES);
  expect((await ask(client, { model: 'm', ...body })).status).toBe(200);
  expect(formats(sent)).toEqual([{ type: 'json_object' }, WANTED]);
});

test('text and schemas go out as they came', async () => {
  const schema = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };
  for (const format of [{ type: 'text' }, schema]) {
    const { ask, sent } = scriptedGateway('openai-chat', [ANSWER], FEATURES, '', {
      profile: 'lmstudio',
    });
    await ask('openai-chat', { model: 'm', messages, response_format: format });
    expect(formats(sent)).toEqual([format]);
  }
});

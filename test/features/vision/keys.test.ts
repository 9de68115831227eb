/** A description answers to what was written beside its image, so a key gets none that was made for another. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type FakeUpstream, say, startFakeUpstream } from '../../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const provider = {
    protocol: 'openai-chat',
    base_url: upstream.baseUrl('openai-chat'),
    keys: ['sk-up'],
  };
  gateway = await startInProcess({
    profiles: { blind: { images: false } },
    providers: {
      blind: { ...provider, profile: 'blind', models: ['blind'] },
      eyes: { ...provider, models: ['see'] },
    },
    server_tools: { vision: { target: 'eyes/see' } },
    samples: { mode: 'off' },
    auth: {
      keys: [
        { name: 'ann', key: 'key-of-ann' },
        { name: 'bob', key: 'key-of-bob' },
      ],
    },
  });
  upstream.answerWith(({ body }) =>
    say(body.model === 'see' ? `You asked: ${JSON.stringify(body.messages)}` : 'Nice picture.'),
  );
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** What the model that cannot see got. */
async function show(key: string, text: string): Promise<string> {
  const url = `data:image/png;base64,${PIXEL}`;
  const content = [
    { type: 'text', text },
    { type: 'image_url', image_url: { url } },
  ];
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'blind', messages: [{ role: 'user', content }] }),
  });
  expect(await response.text()).toContain('Nice picture.');
  return JSON.stringify(
    upstream.modelRequests.findLast(({ body }) => body.model === 'blind')!.body,
  );
}
const looks = () => upstream.modelRequests.filter(({ body }) => body.model === 'see').length;

test('the words of one key do not reach another through the description of the same image', async () => {
  expect(await show('key-of-ann', 'The patient is Zoe.')).toContain('patient is Zoe');
  const seen = await show('key-of-bob', 'What is it?');
  expect(seen).toContain('You asked');
  expect(seen).not.toContain('Zoe');
  expect(looks()).toBe(2);
  // Each key's own history stays as it was.
  expect(await show('key-of-ann', 'The patient is Zoe.')).toContain('patient is Zoe');
  expect(looks()).toBe(2);
});

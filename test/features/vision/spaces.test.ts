/** Images in conversations of a memory space: described once there, unknown elsewhere, erased with the space. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
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
  });
  upstream.answerWith(({ body }) =>
    say(body.model === 'see' ? 'A zebra on a red carpet.' : 'Nice picture.'),
  );
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function show(space?: string): Promise<void> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model: 'blind',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
          ],
        },
      ],
      ...(space === undefined ? {} : { hopgate: { memory: { space, recall: 'auto' } } }),
    }),
  });
  expect(await response.text()).toContain('Nice picture.');
  const reported = upstream.modelRequests.findLast(({ body }) => body.model === 'blind')!;
  expect(JSON.stringify(reported.body)).toContain('zebra');
}
const looks = () => upstream.modelRequests.filter(({ body }) => body.model === 'see').length;
const onDisk = async () =>
  Buffer.from(await Bun.file(join(gateway.home, 'state', 'descriptions.db')).bytes()).includes(
    'zebra',
  );

test('an erased space leaves no descriptions', async () => {
  await show('s');
  await show('s');
  expect(looks()).toBe(1);
  await fetch(`${gateway.url}/v1/memory/s`, { method: 'DELETE' });
  expect(await onDisk()).toBe(false);
  await show('t');
  await show();
  expect(looks()).toBe(3);
  await fetch(`${gateway.url}/v1/memory/s`, { method: 'DELETE' });
  await show('t');
  await show();
  expect(looks()).toBe(3);
});

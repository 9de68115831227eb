/** The guard of the page's API: whose exchanges a key sees, and how large a request may be. */

import { expect, test } from 'bun:test';
import { GatewayError } from '../../../src/conversation/errors.ts';
import { viewerOf } from '../../../src/ui/api/guard.ts';
import { readJson } from '../../../src/ui/api/parameters.ts';
import { accessWith } from '../../support/access.ts';

const KEY = 'a-key-of-some-length';
const request = new Request('http://localhost/ui/api/info', { headers: { 'x-api-key': KEY } });

test.each([
  [['all'], undefined],
  [['own'], 'x'],
  [['all', 'own'], 'x'],
  [['own', 'all'], 'x'],
  [['all', 'all'], undefined],
] as const)('keys of one name that see %j', async (sees, owner) => {
  const keys = sees.map((one, n) => ({ name: 'x', key: n === 0 ? KEY : `${KEY}-${n}`, sees: one }));
  const access = accessWith({ keys });
  const viewer = await viewerOf(request, { access: () => access });
  expect([viewer.key, viewer.owner]).toEqual(['x', owner]);
});

test('a body without a length is read no further than its limit', async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 16_384;
      controller.enqueue(new Uint8Array(16_384).fill(0x20));
    },
  });
  const headers = { 'content-type': 'application/json' };
  const request = new Request('http://localhost/', { method: 'POST', body: endless, headers });
  const thrown = await readJson(request).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(GatewayError);
  expect((thrown as GatewayError).status).toBe(413);
  expect(sent).toBeLessThan(1_000_000);
});

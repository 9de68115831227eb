/** The background work that gives events their vectors. */

import { expect, test } from 'bun:test';
import { backFill } from '../../../../src/features/memory/store/back-fill.ts';

test('one that is closed while it asks for events sends none of them, and ends', async () => {
  const asked = Promise.withResolvers<void>();
  const found = Promise.withResolvers<void>();
  let sent = 0;
  const filler = backFill({
    work: {
      async next(_model, behind) {
        asked.resolve();
        await found.promise;
        return { events: [{ row: 1, text: 'tea', source: '' }], behind };
      },
      put: () => Promise.resolve(),
    },
    embedder: {
      name: 'p/m',
      embedQuery: () => Promise.resolve(undefined),
      // An endpoint that does not look at a signal which is aborted already.
      embed: () => {
        sent++;
        return new Promise(() => {});
      },
    },
    onFailure() {},
    after: 0,
  });
  filler.wake();
  await asked.promise;
  const closed = filler.close();
  found.resolve();
  await closed;
  expect(sent).toBe(0);
});

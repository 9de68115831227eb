/** What a search says of exchanges that were not read for it. */

import { expect, test } from 'bun:test';
import type { SampleStore } from '../../../src/samples/sample.ts';
import { TextSearch } from '../../../src/ui/api/search/text-search.ts';

test('exchanges that are read while a search runs count as unread: it may have missed them', async () => {
  let unread = 2;
  const texts = {
    progress: () => ({ all: 2, unread }),
    *find() {
      yield;
      unread = 0;
      return { by: new Map(), partial: false };
    },
    text: () => undefined,
  };
  const store = () => ({ texts }) as unknown as SampleStore;
  const search = new TextSearch({ store, recent: undefined, parts: {} as never });
  expect(await search.find('login')).toMatchObject({ ids: [], unread: 2 });
  expect(await search.find('logout')).toMatchObject({ ids: [], unread: 0 });
});

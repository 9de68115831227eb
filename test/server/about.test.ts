/** `GET /`: JSON for programs, the way to the page for browsers. */

import { expect, test } from 'bun:test';
import { aboutPlugin } from '../../src/server/own-routes.ts';

const get = (headers: Record<string, string>) =>
  aboutPlugin({ version: '1.2.3' }).handle(new Request('http://127.0.0.1:5520/', { headers }));

test('a browser is led to the page', async () => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const answer = await get({ accept });
  expect(answer.status).toBe(302);
  expect(answer.headers.get('location')).toBe('/ui');
  expect(answer.headers.get('vary')).toBe('accept');
});

test('curl and programs get JSON', async () => {
  const headerSets: Record<string, string>[] = [
    {},
    { accept: '*/*' },
    { accept: 'application/json' },
  ];
  for (const headers of headerSets) {
    const answer = await get(headers);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ name: 'hopgate', version: '1.2.3' });
  }
});

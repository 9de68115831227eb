/** A plugin that could not be loaded once does not stay broken: the next request loads it again. */

import { expect, test } from 'bun:test';
import { Elysia } from 'elysia';
import { CODECS } from '../../src/app/codecs.ts';
import { WITHOUT_KEY } from '../../src/keys/principal.ts';
import { ErrorResponses } from '../../src/server/errors.ts';
import { onDemand } from '../../src/server/plugin-routes.ts';

test('a failed load is an error of that request alone', async () => {
  const errors = new ErrorResponses({
    fallback: CODECS['openai-chat'],
    anthropic: CODECS['anthropic-messages'],
    google: CODECS['google-gemini'],
    access: () => () => WITHOUT_KEY,
    onUnknownPath: () => {},
  });
  let loads = 0;
  const load = async () => {
    if (++loads === 1) throw new Error('EMFILE: too many open files');
    return new Elysia().get('/x', () => new Response('there'));
  };
  const app = new Elysia().onError(errors.handle(() => [])).use(onDemand('/x', errors, load));
  const get = () => app.fetch(new Request('http://localhost/x'));
  const first = await get();
  expect([first.status, await first.text()]).toEqual([500, expect.stringContaining('error')]);
  expect(await (await get()).text()).toBe('there');
  expect(await (await get()).text()).toBe('there');
  expect(loads).toBe(2);
});

/** Opening the page: with keys, without samples, with nothing recorded, and while the gateway is down. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { browserSuite } from './page-browser.ts';

const KEY = 'hg-key-of-the-operator-0123456789';

browserSuite('coming to the page', (browser) => {
  let upstream: FakeUpstream;
  let gateway: Gateway | undefined;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
  }, 180_000);
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    upstream.clear();
  });
  afterAll(async () => {
    await upstream.stop();
  });

  // The browser's remarks on error statuses are not faults of the page.
  beforeEach(() => browser.tolerate(/Failed to load resource/));

  test('with keys a form asks once, reports a wrong key, and keeps the key in this tab only', async () => {
    gateway = await startGateway(
      threeProviders(upstream, {
        samples: { mode: 'all' },
        auth: { keys: [{ name: 'operator', key: KEY }] },
      }),
    );
    upstream.enqueue(say('Fine.'));
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
      body: JSON.stringify({ model: 'via-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    const id = answer.headers.get('x-hopgate-request-id')!;
    await answer.text();

    const visit = await browser.visit(gateway.url);
    const { page } = visit;
    await visit.open(`#/x/${id}`);
    const field = page.getByLabel('Key of this gateway');
    await field.fill('not-the-key');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('alert').getByText('not one of the gateway').waitFor();
    await field.fill(KEY);
    await page.keyboard.press('Enter');
    // The page returns to the address, and the live feed works with a key.
    await page.locator('.speakers').waitFor();
    await page.locator(`.row[data-id="${id}"]`).waitFor();
    await page.locator('.feed[data-state="live"]').waitFor();
    await page.reload();
    await page.locator('.speakers').waitFor();
    expect(page.url()).not.toContain(KEY);
    const stored: unknown = await page.locator('body').evaluate((body) => {
      const view = body.ownerDocument.defaultView;
      return [view.localStorage.length, view.document.cookie];
    });
    expect(stored).toEqual([0, '']);
    // Another tab asks for its own key.
    const other = await browser.visit(gateway.url);
    await other.open('#/');
    await other.page.getByLabel('Key of this gateway').waitFor();
  });

  test('where nothing is recorded or held the page says how to switch it on', async () => {
    const nothing = { samples: { mode: 'off' }, workers: 2 };
    gateway = await startGateway(threeProviders(upstream, nothing));
    const visit = await browser.visit(gateway.url);
    await visit.open('#/');
    await visit.page.getByRole('heading', { name: 'Recording is off' }).waitFor();
    expect(await visit.page.locator('.snippet').textContent()).toContain('mode: all');
  });

  test('with nothing recorded it shows a working command line, and then its exchange', async () => {
    gateway = await startGateway(threeProviders(upstream, { samples: { mode: 'all' } }));
    const visit = await browser.visit(gateway.url);
    const { page } = visit;
    await visit.open('#/');
    await page.getByRole('heading', { name: 'Waiting for the first exchange' }).waitFor();
    const line = (await page.locator('.snippet pre').textContent())!;
    upstream.enqueue(say('Fine.'));
    // Not spawnSync: the vendor lives in this process.
    const run = Bun.spawn(['bash', '-c', line], { stdout: 'pipe', stderr: 'ignore' });
    expect(await new Response(run.stdout).text()).toContain('Fine.');
    await page.locator('.row').waitFor();
    expect(await page.locator('.blank').count()).toBe(0);
  });

  test('a lost gateway is reported, and the rows stay', async () => {
    gateway = await startGateway(threeProviders(upstream, { samples: { mode: 'all' } }));
    upstream.enqueue(say('Fine.'));
    await (
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'via-chat', messages: [{ role: 'user', content: 'Hello' }] }),
      })
    ).text();
    const visit = await browser.visit(gateway.url);
    const { page } = visit;
    await visit.open('#/');
    await page.locator('.row').waitFor();
    await gateway.stop();
    gateway = undefined;
    await page.locator('.feed[data-state="lost"]').waitFor();
    expect(await page.locator('.row').count()).toBe(1);
  });
});

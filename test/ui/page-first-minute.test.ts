/** The first minute in a browser: three requests with recording off are there, one opens, a button starts recording. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { browserSuite } from './page-browser.ts';
import { faintTexts } from './page-contrast.ts';

browserSuite('the first minute', (browser) => {
  let upstream: FakeUpstream;
  let gateway: Gateway;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    gateway = await startGateway(threeProviders(upstream, { samples: { mode: 'off' } }));
  }, 180_000);
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  const post = async (path: string, body: unknown, headers = {}): Promise<string> => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    await answer.text();
    return answer.headers.get('x-hopgate-request-id')!;
  };
  const chat = (content: string) => ({
    model: 'via-chat',
    messages: [{ role: 'user', content }],
  });
  const three = async () => {
    upstream.enqueue(say('Good morning.'), say('Good day.'), say('Good night.'));
    return [
      await post('/v1/chat/completions', chat('Morning?')),
      await post(
        '/v1/responses',
        { model: 'via-chat', input: 'Day?' },
        { 'user-agent': 'codex_cli_rs/0.50.0 (Linux)' },
      ),
      await post('/v1/messages', {
        ...chat('Night?'),
        max_tokens: 99,
      }),
    ] as const;
  };

  test('the address of the gateway leads to its last exchanges, recorded or not', async () => {
    const asked = await three();
    const { page } = await browser.visit(gateway.url);
    await page.goto(gateway.url);
    await page.locator('.row').nth(2).waitFor();
    const ids = await page
      .locator('.row')
      .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-id')));
    expect(ids).toEqual(asked.toReversed());
    const told = page.locator(`.row[data-id="${asked[1]}"] .story`);
    await told.getByText('Good day.').waitFor();
    expect(await told.locator('.asked').textContent()).toBe('Day?');
    expect(await told.locator('.client').textContent()).toBe('Codex');
    const line = page.locator('.keepline');
    expect(await line.textContent()).toContain(
      'Recording is off. The last 50 exchanges are in memory',
    );
    expect(await page.locator('body').evaluate(faintTexts)).toEqual([]);

    await page.locator(`.row[data-id="${asked[0]}"]`).click();
    await page.locator('.speaker', { hasText: 'Morning?' }).first().waitFor();
    await page.locator('.answer', { hasText: 'Good morning.' }).waitFor();
    await page.keyboard.press('2');
    await page.locator('.waterfall .line').first().waitFor();
    expect(await page.locator('.facts').first().textContent()).toContain('In memory');

    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Record all exchanges' }).click();
    await line.getByText('All exchanges are recorded.').waitFor();
    expect(await line.textContent()).toContain('for 14 days, failed ones for 90 days');
    expect(await line.textContent()).toContain(
      'until hopgate restarts or loads its configuration again, which says samples.mode: off',
    );
    upstream.enqueue(say('Kept.'));
    const kept = await post('/v1/chat/completions', chat('Keep this.'));
    await page.locator(`.row[data-id="${kept}"]:not([data-memory])`).waitFor();
    expect(await page.locator('.row[data-memory]').count()).toBe(3);
    await page.getByRole('button', { name: 'Stop recording' }).click();
    await line.getByText('Recording is off.').waitFor();
  });

  test('with failures recorded, the successes are there too', async () => {
    const switched = await fetch(`${gateway.url}/ui/api/recording`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hopgate-ui': '1' },
      body: JSON.stringify({ mode: 'errors' }),
    });
    expect(switched.status).toBe(200);
    const asked = await three();
    for (const colorScheme of ['light', 'dark'] as const) {
      const seen = await browser.visit(gateway.url, {
        colorScheme,
        viewport: { width: 360, height: 640 },
      });
      await seen.open('#/');
      for (const id of asked) await seen.page.locator(`.row[data-id="${id}"]`).waitFor();
      const line = seen.page.locator('.keepline');
      expect(await line.textContent()).toContain('Only failed exchanges are recorded.');
      expect(await seen.page.locator('body').evaluate(faintTexts)).toEqual([]);
      const wider = await seen.page
        .locator('.keepline')
        .evaluate((node) => node.scrollWidth > node.ownerDocument.documentElement.clientWidth);
      expect(wider).toBe(false);
    }
  });

  test('where not all exchanges are recorded, the charts give no share of those that are', async () => {
    const { page, open } = await browser.visit(gateway.url);
    await open('#/charts');
    await page.locator('.chart').first().waitFor();
    expect(await page.locator('.chart h2').first().textContent()).toBe('Recorded');
    const figures = page.locator('.figures > div');
    const failed = await figures.filter({ hasText: 'Failed' }).locator('dd').textContent();
    expect(failed).toMatch(/^\d+$/);
  });

  test('a chart without data has no scale, whose lines would go through its words', async () => {
    const { page, open } = await browser.visit(gateway.url);
    await open('#/charts?error=none-of-this-kind');
    const empty = page.locator('.chart-picture:has(.none)');
    await empty.first().waitFor();
    expect(await empty.locator('.grid').count()).toBe(0);
  });
});

/** The pages for administrators in a real browser: access, keys from the first to the revoked, budgets, usage, health, audit. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { browserSuite } from './page-browser.ts';
import { faintTexts } from './page-contrast.ts';

const ADMIN = 'an-admin-key-of-the-page-tests';
const CLIENT = 'a-client-key-of-the-page-tests';
/** Of no budget. */
const OPERATOR = 'an-operator-key-of-the-page-tests';

interface Vendor {
  readonly url: string;
  /** What the next answers are, in order; then a plain one. */
  readonly answers: (() => Response)[];
  stop(): void;
}

const LEFT = {
  'x-ratelimit-limit-requests': '5000',
  'x-ratelimit-remaining-requests': '4211',
  'x-ratelimit-reset-requests': '4m12s',
};

/** A vendor whose headers say what is left of its limits. */
function startVendor(): Vendor {
  const answers: (() => Response)[] = [];
  const plain = () =>
    Response.json(
      {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: 'm1',
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
      },
      { headers: LEFT },
    );
  const server = Bun.serve({ port: 0, fetch: () => (answers.shift() ?? plain)() });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    answers,
    stop: () => void server.stop(true),
  };
}

browserSuite('the pages for administrators', (browser) => {
  let vendor: Vendor;
  let gateway: InProcess;
  let off: InProcess;

  const providers = () => ({
    glm: {
      protocol: 'openai-chat',
      base_url: vendor.url,
      keys: ['sk-of-the-vendor-1'],
      models: ['m1'],
      prices: { m1: { input: 1, output: 2 } },
      retry: { attempts: 1 },
    },
    spare: { protocol: 'openai-chat', base_url: 'demo:', models: ['demo'] },
  });

  beforeAll(async () => {
    vendor = startVendor();
    const samples = { mode: 'off' };
    gateway = await startInProcess({
      providers: providers(),
      samples,
      auth: {
        admin_keys: [ADMIN],
        keys: [
          { name: 'fixed', key: CLIENT, labels: { team: 'web' } },
          { name: 'operator', key: OPERATOR },
        ],
      },
      budgets: [{ name: 'web-team', keys: { team: 'web' }, usd: 0.005, per: 'month' }],
    });
    off = await startInProcess({ providers: providers(), samples });
  }, 180_000);
  afterAll(async () => {
    await Promise.all([gateway?.stop(), off?.stop()]);
    vendor.stop();
  });
  // Without a key the first requests are refused, and the browser remarks on it.
  beforeEach(() => browser.tolerate(/Failed to load resource/));

  async function chat(key: string, model = 'glm/m1'): Promise<number> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await response.text();
    return response.status;
  }

  /** Opens a page of the gateway with the admin key. */
  async function open(hash: string, options = {}): Promise<Page> {
    const visit = await browser.visit(gateway.url, options);
    await visit.open(hash);
    await visit.page.getByLabel('Admin key of this gateway').fill(ADMIN);
    await visit.page.keyboard.press('Enter');
    await visit.page.locator('.admin-frame').waitFor();
    return visit.page;
  }

  async function makeKey(page: Page, name: string): Promise<string> {
    await page.getByRole('link', { name: 'New key' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByRole('button', { name: 'Create key' }).click();
    return (await page.locator('.secret-text').textContent())!;
  }

  test('every page for administrators asks for the admin key before it shows anything', async () => {
    browser.tolerate(/Failed to load resource/);
    const { page, open } = await browser.visit(gateway.url);
    for (const address of ['#/keys', '#/keys/new', '#/keys/fixed', '#/audit']) {
      await page.goto('about:blank');
      await open(address);
      await page.getByLabel('Admin key of this gateway').waitFor();
      expect(await page.locator('.admin-frame').count()).toBe(0);
    }
  });

  test('the admin key is asked for, a wrong one is refused, and it stays in this tab only', async () => {
    const visit = await browser.visit(gateway.url);
    const { page } = visit;
    await visit.open('#/keys');
    const field = page.getByLabel('Admin key of this gateway');
    await field.fill('not-the-key');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Incorrect API key').waitFor();
    await field.fill(CLIENT);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('not for the admin API').waitFor();
    await field.fill(ADMIN);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'fixed' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'fixed' }).waitFor();
    const stored: unknown = await page.locator('body').evaluate((body) => {
      const view = body.ownerDocument.defaultView;
      return [view.localStorage.length, view.document.cookie];
    });
    expect(stored).toEqual([0, '']);
    expect(page.url()).not.toContain(ADMIN);
    // The exchanges have keys of their own.
    await page.getByRole('link', { name: 'Exchanges' }).click();
    await page.getByLabel('Key of this gateway').waitFor();
  });

  test('an admin key in the form of the exchanges leads to the keys', async () => {
    const visit = await browser.visit(gateway.url);
    await visit.open('#/');
    await visit.page.getByLabel('Key of this gateway').fill(ADMIN);
    await visit.page.keyboard.press('Enter');
    await visit.page.getByRole('link', { name: 'fixed' }).waitFor();
    expect(new URL(visit.page.url()).hash).toBe('#/keys');
  });

  test('a single user without keys sees usage and health, and nothing that needs an administrator', async () => {
    const answer = await fetch(`${off.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'glm/m1', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const { page, open: openPage } = await browser.visit(off.url);
    await openPage('#/usage');
    const row = page.locator('tbody tr').first();
    await row.waitFor();
    expect(await row.locator('td[data-label="Cost"]').textContent()).toBe('$0.0020');
    expect(await page.locator('thead th').first().textContent()).toBe('Model');
    const places = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    expect(await places.allTextContents()).toEqual([
      'Exchanges',
      'Sessions',
      'Charts',
      'Usage',
      'Health',
    ]);
    await places.last().click();
    await page.getByRole('region', { name: 'glm' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Administration' }).count()).toBe(0);
  });

  test('where no price is known, usage shows tokens, and no cost of nothing', async () => {
    const unpriced = await startInProcess({
      providers: { spare: providers().spare },
      samples: { mode: 'off' },
    });
    try {
      const answer = await fetch(`${unpriced.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }),
      });
      await answer.text();
      const { page, open: openPage } = await browser.visit(unpriced.url);
      await openPage('#/usage');
      await page.locator('.usage-chart rect.mark').first().waitFor();
      const pressed = page.getByRole('group', { name: 'Show' }).locator('[aria-pressed="true"]');
      expect(await pressed.textContent()).toBe('Tokens');
      expect(await page.locator('.figures').textContent()).toContain('Cost–');
      await page.getByRole('group', { name: 'Show' }).getByText('Cost').click();
      await page.getByText('no data in this period').waitFor();
      expect(await pressed.textContent()).toBe('Cost');
    } finally {
      await unpriced.stop();
    }
  });

  test('a key that sees its own exchanges alone is shown no place of administrators', async () => {
    const visit = await browser.visit(gateway.url);
    await visit.open('#/');
    await visit.page.getByLabel('Key of this gateway').fill(CLIENT);
    await visit.page.keyboard.press('Enter');
    const places = visit.page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    await places.first().waitFor();
    expect(await places.allTextContents()).toEqual(['Exchanges', 'Sessions', 'Charts']);
    const asked = await fetch(`${gateway.url}/ui/api/reports/usage`, {
      headers: { authorization: `Bearer ${CLIENT}` },
    });
    expect(asked.status).toBe(403);
  });

  test('without admin keys in the configuration what needs one says how to switch the API on', async () => {
    for (const hash of ['#/keys', '#/budgets', '#/audit']) {
      const visit = await browser.visit(off.url);
      await visit.open(hash);
      await visit.page.getByRole('heading', { name: 'The admin API is off' }).waitFor();
      expect(await visit.page.locator('.snippet').textContent()).toContain('admin_keys');
    }
  });

  test('a key is made, shown once, used, changed, blocked, rotated and revoked', async () => {
    const page = await open('#/keys');
    await page.getByRole('link', { name: 'New key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Ann');
    await page.getByLabel('Labels').fill('team=web, env');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('alert').getByText('“env” is no label').waitFor();
    await page.getByLabel('Labels').fill('team=research');
    await page.getByLabel('Models').fill('glm/*');
    await page.getByLabel('Requests a minute').fill('50');
    await page.getByRole('button', { name: 'Add a budget' }).click();
    await page.getByLabel('USD').fill('0.01');
    await page.getByRole('button', { name: 'Create key' }).click();
    const first = (await page.locator('.secret-text').textContent())!;
    expect(first).toMatch(/^hk_/);
    expect([await chat(first), await chat(first, 'spare/demo')]).toEqual([200, 403]);

    // Once it is left, no page shows the key again.
    const { hash } = new URL(page.url());
    await page.getByRole('button', { name: 'I have it' }).click();
    expect(await page.locator('.secret').count()).toBe(0);
    await page.reload();
    await page.getByRole('heading', { name: 'Ann' }).waitFor();
    expect(await page.content()).not.toContain(first);

    await page.getByLabel('Models').fill('');
    await page.getByLabel('Requests at the same time').fill('4');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await chat(first, 'spare/demo')).toBe(200);

    await page.getByRole('button', { name: 'Block' }).click();
    await page.getByRole('button', { name: 'Unblock' }).waitFor();
    expect(await chat(first)).toBe(401);
    await page.getByRole('button', { name: 'Unblock' }).click();
    await page.getByRole('button', { name: 'Block', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('The old secret still works').selectOption('0');
    await page.locator('dialog').getByRole('button', { name: 'Rotate' }).click();
    const second = (await page.locator('.secret-text').textContent())!;
    expect(second).not.toBe(first);
    expect([await chat(first), await chat(second)]).toEqual([401, 200]);

    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.keyboard.press('Escape');
    expect(await chat(second)).toBe(200);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.locator('.state').getByText('revoked').waitFor();
    expect(await chat(second)).toBe(401);

    // Revoked keys are listed on request; the audit has every step, of this key alone too.
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'fixed' }).waitFor();
    expect(await page.getByRole('link', { name: 'Ann' }).count()).toBe(0);
    await page.getByLabel('Show revoked keys').check();
    await page.getByRole('link', { name: 'Ann' }).waitFor();
    const id = hash.split('/').at(-1)!;
    await page.goto(`${gateway.url}/ui#/audit?key=${id}`);
    await page.getByText('Verified:').waitFor();
    const steps = await page.locator('tbody tr td[data-label="What"]').allTextContents();
    expect(steps).toEqual([
      'revoked a key',
      'rotated a key',
      'changed a key',
      'changed a key',
      'changed a key',
      'created a key',
    ]);
    const changes = page.locator('tbody tr').nth(4).locator('.changes');
    expect(await changes.textContent()).toContain('limits.concurrent 4');
  });

  test('two administrators: the second change of the same version is refused and says so', async () => {
    const page = await open('#/keys');
    await makeKey(page, 'shared');
    const { hash } = new URL(page.url());
    const other = await open(hash);
    await other.getByLabel('Name', { exact: true }).fill('theirs');
    await other.getByRole('button', { name: 'Save' }).click();
    await other.getByText('Saved.').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('mine');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('Another administrator').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'theirs' }).waitFor();
  });

  test('names and labels from elsewhere are text, never markup', async () => {
    const page = await open('#/keys');
    const name = '<img src=x onerror=alert(1)>\u202etxt';
    await makeKey(page, name);
    await page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' }).waitFor();
    for (const hash of ['#/keys', '#/audit', '#/usage']) {
      await page.goto(`${gateway.url}/ui${hash}`);
      await page.locator('.admin-frame:not([aria-busy])').waitFor();
      expect(await page.locator('.admin-frame img').count()).toBe(0);
    }
  });

  test('a key of the configuration is shown and cannot be changed', async () => {
    const page = await open('#/keys/fixed');
    await page.getByText('This key is in the configuration file').waitFor();
    expect(await page.getByRole('button', { name: 'Save' }).count()).toBe(0);
    const labels = page.getByLabel('Labels');
    expect(await labels.inputValue()).toBe('team=web');
    expect(await labels.isDisabled()).toBe(true);
    // A budget that it shares with the other keys of its team.
    await page.getByText('web-team (shared)', { exact: true }).waitFor();
  });

  test('budgets show what is spent, and usage what it was spent on, as chart, table and CSV', async () => {
    expect(await chat(CLIENT)).toBe(200);
    expect(await chat(CLIENT)).toBe(200);
    const page = await open('#/budgets');
    const row = page.locator('tbody tr').filter({ hasText: 'web-team' });
    await row.waitFor();
    // Two tries of 1000 tokens in at 1 and 500 out at 2 USD per million.
    expect(await row.locator('td[data-label="Spent"]').textContent()).toBe('$0.0040');
    expect(await row.locator('td[data-label="For"]').textContent()).toContain('team: web');
    expect(await row.getAttribute('data-tone')).toBe('warn');
    expect(await row.locator('.mark-line').count()).toBe(2);

    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.locator('.usage-chart rect.mark').first().waitFor();
    const fixed = page.locator('tbody tr').filter({ hasText: 'fixed' });
    expect(await fixed.locator('td[data-label="Cost"]').textContent()).toBe('$0.0040');
    await page.getByRole('button', { name: 'team (label)' }).click();
    await page.getByRole('rowheader', { name: 'web' }).waitFor();
    await page.getByRole('button', { name: 'Target' }).click();
    await page.getByRole('rowheader', { name: 'glm/m1' }).waitFor();
    expect(page.url()).toContain('by=target');
    await page.getByRole('button', { name: '24 h' }).click();
    await page.getByRole('button', { name: 'hour', pressed: true }).waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'these totals' }).click();
    const download = await saved;
    const text = await Bun.file((await download.path())!).text();
    expect(text.split('\r\n')[0]).toStartWith('target,cost_usd,tries,');
    expect(text).toContain('glm/m1,');
  });

  test('a budget smaller than a request is no budget above its warning mark, and all bars are of one length', async () => {
    const page = await open('#/keys');
    const made = await page.evaluate(async (admin) => {
      const response = await fetch('/admin/v1/keys', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${admin}` },
        body: JSON.stringify({ name: 'tiny', budgets: [{ usd: 0.000001, per: 'day' }] }),
      });
      return ((await response.json()) as { key: string }).key;
    }, ADMIN);
    expect(await chat(made)).toBe(429);
    await page.goto('about:blank');
    await page.goto(`${gateway.url}/ui#/budgets`);
    await page.getByText('Too small for a request').waitFor();
    const rows = page.locator('.budgets tbody tr');
    const marked = await rows.evaluateAll(
      (all) =>
        all.filter(
          (row) =>
            row.getAttribute('data-tone') === 'warn' && row.querySelector('.problem') === null,
        ).length,
    );
    const figure = page
      .locator('.budgets .figures div')
      .filter({ hasText: 'Above a warning mark' });
    expect(await figure.locator('dd').textContent()).toBe(String(marked));
    const lengths = await page
      .locator('.budgets .budget-bar')
      .evaluateAll((bars) => bars.map((bar) => Math.round(bar.getBoundingClientRect().width)));
    expect(lengths.length).toBeGreaterThan(1);
    expect(new Set(lengths).size).toBe(1);
  });

  test('health says what rests, why and until when, and what the vendor says is left', async () => {
    const refused = () =>
      Response.json(
        { error: { message: 'Too many requests of this organization', type: 'rate_limit' } },
        { status: 429, headers: { ...LEFT, 'retry-after': '120' } },
      );
    expect([await chat(OPERATOR), await chat(OPERATOR, 'spare/demo')]).toEqual([200, 200]);
    const page = await open('#/health');
    const glm = page.getByRole('region', { name: 'glm' });
    await glm.getByText('of 5k requests').waitFor();
    expect(await glm.locator('.quota').textContent()).toMatch(
      /^4\.2k of 5k requests, resets in 4 min/,
    );
    vendor.answers.push(refused, refused);
    expect(await chat(OPERATOR)).toBe(429);
    // The page looks again by itself.
    await glm.getByText('rate limit of the vendor (429), until').waitFor();
    await glm.getByText('Too many requests of this organization').waitFor();
    expect(await glm.locator('header .state').textContent()).toBe('cooling down');
    const spare = page.getByRole('region', { name: 'spare' });
    expect(await spare.locator('header').textContent()).toContain('needs no key');
  });

  /** Each of them with something in it: a chart needs a request. */
  const VIEWS = [
    ['#/keys', 'table.data'],
    ['#/keys/new', '.key-form'],
    ['#/keys/fixed', '.key-grid'],
    ['#/budgets', '.budget-bar'],
    ['#/usage', '.usage-chart rect.mark'],
    ['#/health', '.provider'],
    ['#/audit', '.chain .state'],
  ] as const;

  test.each(['light', 'dark'] as const)(
    'every text has enough contrast (%s)',
    async (colorScheme) => {
      await chat(OPERATOR);
      const page = await open('#/keys', { colorScheme });
      for (const [hash, ready] of VIEWS) {
        await page.goto(`${gateway.url}/ui${hash}`);
        await page.locator(ready).first().waitFor();
        expect([hash, await page.locator('body').evaluate(faintTexts)]).toEqual([hash, []]);
      }
    },
  );

  test.each([360, 1024, 3840])(
    'a window of %d pixels needs no sideways scrolling',
    async (width) => {
      await chat(OPERATOR);
      const page = await open('#/keys', { viewport: { width, height: 800 } });
      for (const [hash, ready] of VIEWS) {
        await page.goto(`${gateway.url}/ui${hash}`);
        await page.locator(ready).first().waitFor();
        const wider = await page
          .locator('.page-pane')
          .evaluate((pane) => pane.scrollWidth > pane.clientWidth);
        expect([hash, wider]).toEqual([hash, false]);
      }
    },
  );

  test('a narrow window: no label of a cell reaches into the next one', async () => {
    await chat(OPERATOR, 'spare/demo');
    const page = await open('#/health', { viewport: { width: 390, height: 800 } });
    for (const [hash, ready] of [
      ['#/health', '.provider td'],
      ['#/keys', 'table.data td'],
    ] as const) {
      await page.goto(`${gateway.url}/ui${hash}`);
      await page.locator(ready).first().waitFor();
      const over = await page
        .locator('table.data td')
        .evaluateAll((all) =>
          all.filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.outerHTML),
        );
      expect([hash, over]).toEqual([hash, []]);
    }
  });

  test('every control has a name, and everything is reached by keyboard', async () => {
    await chat(OPERATOR);
    const page = await open('#/keys');
    for (const [hash, ready] of VIEWS) {
      await page.goto(`${gateway.url}/ui${hash}`);
      await page.locator(ready).first().waitFor();
      const nameless = await page
        .locator('.page-pane :is(button, a, input, select)')
        .evaluateAll((all) =>
          all
            .filter((one) => {
              const labels = 'labels' in one ? (one.labels?.length ?? 0) : 0;
              const text = `${one.textContent}${one.getAttribute('aria-label') ?? ''}`.trim();
              return labels === 0 && text === '';
            })
            .map((one) => one.outerHTML),
        );
      expect([hash, nameless]).toEqual([hash, []]);
    }
    await page.keyboard.press('g');
    await page.keyboard.press('k');
    await page.locator('table.data').first().waitFor();
    await page.keyboard.press('n');
    await page.getByLabel('Name', { exact: true }).waitFor();
    await page.keyboard.type('by keyboard');
    await page.keyboard.press('Enter');
    await page.locator('.secret-text').waitFor();
  });
});

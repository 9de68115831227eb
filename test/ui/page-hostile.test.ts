/** Hostile samples that try to run code in the operator's browser: nothing runs, everything is shown as text. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import { say } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';
import { browserSuite } from './page-browser.ts';
import { type PageSetup, startPageSetup } from './page-setup.ts';

const MARKUP = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(2)>',
  '"><svg onload=alert(3)>',
  '<a href="javascript:alert(4)">press</a>',
  '<iframe srcdoc="<script>parent.alert(5)</script>"></iframe>',
  '<style>*{display:none}</style>',
  '</pre></script><b onmouseover=alert(6)>over</b>',
  '{{constructor.constructor("alert(7)")()}}',
  '<base href="https://evil.example/"><form action="https://evil.example/"><button>',
].join('\n');
const BIDI = 'invoice_\u202egpj.exe \u2066\u0000\u001b[31m\u200b\ufeff\ud800 end';
const NAME = `m1"><img src=x onerror=alert(8)>\u202e`;

browserSuite('hostile samples', (browser) => {
  let setup: PageSetup;
  let hostile: string;
  let huge: string;

  beforeAll(async () => {
    setup = await startPageSetup({ server_tools: {} });
    setup.upstream.enqueue(
      {
        parts: [
          { kind: 'reasoning', text: MARKUP },
          { kind: 'text', text: `${MARKUP}\n${BIDI}` },
          { kind: 'call', name: 'onclick', arguments: JSON.stringify({ [MARKUP]: MARKUP }) },
        ],
      },
      say('A large one.'),
    );
    const body = (text: string) => ({
      model: 'via-chat',
      stream: true,
      messages: [
        { role: 'system', content: text },
        { role: 'user', content: [{ type: 'text', text }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'x', arguments: text } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: text },
      ],
      tools: [
        {
          type: 'function',
          function: {
            name: 'x',
            description: text,
            parameters: { type: 'object', [MARKUP]: BIDI },
          },
        },
        { type: 'function', function: { name: 'onclick', parameters: { type: 'object' } } },
      ],
      metadata: { session: MARKUP.slice(0, 60) },
    });
    hostile = await setup.post('/v1/chat/completions', body(`${MARKUP}\n${BIDI}`), {
      'user-agent': MARKUP.replaceAll('\n', ' '),
      'session-id': '<script>alert(9)</script>',
    });
    huge = await setup.post('/v1/chat/completions', {
      model: 'via-chat',
      messages: Array.from({ length: 50 }, (_, i) => ({
        role: i % 2 === 0 ? 'user' : 'assistant',
        content: `${MARKUP} ${'0123456789 '.repeat(9500)}`,
      })),
    });
    expect(setup.upstream.refusals).toEqual([]);
    // Every view of an exchange shows the model's name.
    await setup.post('/v1/chat/completions', {
      model: NAME,
      messages: [{ role: 'user', content: 'Hello' }],
    });
  }, 180_000);
  afterAll(async () => {
    await setup?.stop();
  });

  test('every view shows only text: no element, no dialog, no request, no violation', async () => {
    const visit = await browser.visit(setup.gateway.url);
    const { page } = visit;
    const views = [
      ['#/', '.row'],
      [`#/?q=${encodeURIComponent(MARKUP)}&model=${encodeURIComponent(NAME)}`, '.blank'],
      [`#/x/${hostile}`, '.answer'],
      [`#/x/${hostile}/timeline`, '.waterfall'],
      ['#/sessions', '.sessions-page h1'],
      [`#/x/${hostile}/messages`, '.turn'],
      [`#/x/${hostile}/messages?edge=client-response`, '.turn'],
      [`#/x/${hostile}/messages?as=json`, '.tree'],
      [`#/x/${hostile}/messages?edge=provider-response&as=json`, '.tree'],
      [`#/x/${hostile}/messages?as=raw`, 'pre.raw'],
      [`#/x/${hostile}/messages?as=headers`, 'dl.headers'],
      [`#/x/${hostile}/diff`, '.rulebar .counts'],
      [`#/x/${hostile}/diff?a=client-request&b=client-response&as=json`, '.changelist'],
      [`#/x/${hostile}/diff?rule=${encodeURIComponent(MARKUP)}`, '.rulebar .counts'],
      [`#/x/${hostile}/messages?as=events`, '.events'],
      [`#/x/${encodeURIComponent(MARKUP)}`, '.blank.missing'],
      ['#/charts', '.chart rect.mark'],
    ] as const;
    for (const [hash, ready] of views) {
      await visit.open(hash);
      await page.locator(ready).first().waitFor();
      await until(async () => (await page.locator('[aria-busy=true]').count()) === 0);
      const button = page.getByRole('button', { name: 'Expand all' });
      if (await button.isVisible()) await button.click();
      for (const folded of await page.locator('details:not([open]) > summary').all()) {
        if (await folded.isVisible()) await folded.click();
      }
      const grown = await page
        .locator(
          'img, iframe, style, base, form[action], [onerror], [onload], [onmouseover], script',
        )
        .evaluateAll((all) =>
          all.map(({ localName, parentNode }) => `${parentNode!.nodeName} ${localName}`),
        );
      // The page's own.
      expect([hash, ...grown.toSorted()]).toEqual([hash, 'HEAD script', 'HEAD style']);
      const links = await page
        .locator('a[href]')
        .evaluateAll((all) => all.map((link) => link.getAttribute('href')));
      expect(links.filter((link) => !/^(#|\/docs|\/ui)/.test(link))).toEqual([]);
    }
    await page.waitForTimeout(200);
    // A missing page answers 404, which is the only remark the browser may make.
    browser.tolerate(/Failed to load resource.*40[04]/);
  });

  test('invisible and direction-changing characters are shown by their codes', async () => {
    const visit = await browser.visit(setup.gateway.url);
    await visit.open(`#/x/${hostile}/messages`);
    const turn = visit.page.locator('.turn[data-role="user"]').first();
    await turn.waitFor();
    const signs = await turn.locator('.ctl').allTextContents();
    expect(signs).toEqual(
      expect.arrayContaining(['U+202E', 'U+2066', 'U+200B', 'U+FEFF', '␀', '␛']),
    );
    expect(await turn.textContent()).not.toMatch(/[\u202e\u2066\u200b\ufeff]/);
    expect(await turn.textContent()).toContain('<script>alert(1)</script>');
  });

  test('a body of 5 MB is read in parts and keeps the page quick', async () => {
    const visit = await browser.visit(setup.gateway.url);
    const { page } = visit;
    const views = [
      [`#/x/${huge}/messages`, '.turn'],
      [`#/x/${huge}/messages?as=json`, '.content p'],
      [`#/x/${huge}/messages?as=raw`, 'pre.raw'],
      [`#/x/${huge}/diff`, '.rulebar .counts'],
    ] as const;
    for (const [hash, ready] of views) {
      await visit.open(hash);
      await page.locator(ready).first().waitFor();
      const { length } = (await page.locator('body').textContent())!;
      expect([hash, length < 700_000]).toEqual([hash, true]);
      // The page answers a key at once.
      const began = performance.now();
      await page.keyboard.press('2');
      await page.locator('.waterfall').waitFor();
      expect([hash, performance.now() - began < 1500]).toEqual([hash, true]);
    }
    await visit.open(`#/x/${huge}/messages`);
    const more = page.locator('.turn .more').first();
    await more.click();
    await page.waitForTimeout(300);
    expect((await page.locator('.turn .text').first().textContent())!.length).toBeGreaterThan(
      15_000,
    );
  });
});

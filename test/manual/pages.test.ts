/** The manual inside the program: safe pages, and a search that finds the right place. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { docsIndex, docsPage } from '../../src/manual/index.ts';
import { anchorOf, renderMarkdown } from '../../src/manual/markdown.ts';
import { counterpartOf, GROUPS, PAGES, PHOTOS, PICTURES } from '../../src/manual/pages.ts';
import { manualPlugin } from '../../src/manual/plugin.ts';
import { FILES } from './files.ts';

const html = async (path: string) => (await docsPage(path)?.text()) ?? '';
const same = (target: string) => target;

describe('pages', () => {
  test('every file of docs/ is a page, as the file has it', () => {
    const files = FILES.filter(({ path }) => path.startsWith('docs/'));
    for (const { path, text } of files) {
      const name = path.replace(/^docs\/|\.md$/g, '');
      expect(PAGES.find((page) => page.name === name)?.text).toBe(text);
    }
    expect(PAGES.every(({ title }) => title !== '')).toBe(true);
  });

  test('a page is HTML that loads nothing from elsewhere; its one script and style sheet are those of the policy', async () => {
    for (const { name } of PAGES) {
      const response = docsPage(`/docs/${name}`)!;
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      const policy = response.headers.get('content-security-policy')!;
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      const text = await response.text();
      const script = /<script>([\s\S]*?)<\/script>/.exec(text)![1]!;
      const scriptHash = new Bun.CryptoHasher('sha256').update(script).digest('base64');
      expect(policy).toContain(`script-src 'sha256-${scriptHash}'`);
      const rest = text
        .replace('<link rel="icon" href="data:,">', '')
        .replace(`<script>${script}</script>`, '');
      expect(rest).not.toMatch(/<script|<iframe|<link|\son\w+=|style=/i);
      // The one style sheet is the one that the policy names.
      const style = /<style>([\s\S]*?)<\/style>/.exec(text)![1]!;
      const hash = new Bun.CryptoHasher('sha256').update(style).digest('base64');
      expect(policy).toContain(`'sha256-${hash}'`);
    }
  });

  test('links between pages lead to pages, places and pictures that are there', async () => {
    for (const { name } of PAGES) {
      const text = await html(`/docs/${name}`);
      for (const [, to] of text.matchAll(/(?:href|src)="(\/docs[^"]*|#[^"]+)"/g)) {
        const [path = '', anchor] = to!.split('#', 2);
        const target = path === '' ? text : await html(path);
        expect([name, to, target !== '']).toEqual([name, to, true]);
        if (anchor !== undefined) {
          expect([name, to, target.includes(`id="${anchor}"`)]).toEqual([name, to, true]);
        }
      }
    }
  });

  test('the page that is open shows its sections', async () => {
    const text = await html('/docs/errors');
    const nav = text.slice(text.indexOf('<nav'), text.indexOf('</nav>'));
    expect(nav).toContain('<li><a href="#kinds-of-errors">Kinds of errors</a></li>');
    expect(nav.match(/class="within"/g)).toHaveLength(1);
    expect(text).toContain(
      '<h2 id="kinds-of-errors"><a href="#kinds-of-errors">Kinds of errors</a></h2>',
    );
  });

  test('every English page is in the contents, once', () => {
    const listed = GROUPS.flatMap(({ pages }) => pages);
    const english = PAGES.filter(({ language }) => language === 'en').map(({ name }) => name);
    expect(listed.toSorted()).toEqual(english.toSorted());
  });

  test('a page has the name and version, the pages beside it, and the other language', async () => {
    const text = await docsPage('/docs/keys', undefined, '9.8.7')!.text();
    expect(await docsPage('/docs/two-keys', undefined, '9.8.7')!.text()).toContain(
      '<small>9.8.7</small>',
    );
    expect(text).toContain('href="/docs/keys.zh-CN" lang="zh-CN"');
    const order = GROUPS.flatMap(({ pages }) => pages);
    const at = order.indexOf('keys');
    expect(text).toContain(`rel="prev" href="/docs/${order[at - 1]}"`);
    expect(text).toContain(`rel="next" href="/docs/${order[at + 1]}"`);
    const chinese = await html('/docs/keys.zh-CN');
    expect(chinese).toContain('<html lang="zh-CN">');
    expect(chinese).toContain('href="/docs/limits.zh-CN"');
    expect(counterpartOf(PAGES.find(({ name }) => name === 'keys.zh-CN')!)?.name).toBe('keys');
  });

  test('pictures of the page exist for both themes', async () => {
    expect(await html('/docs/browser')).toMatch(
      /<picture><source media="\(prefers-color-scheme: dark\)" srcset="(\/docs\/img\/[\w-]+)-dark\.png"><img src="\1-light\.png"/,
    );
  });

  test('every picture of a page is shown, and every picture in the program is in a page', async () => {
    const shown = new Set<string>();
    for (const { name, text } of PAGES) {
      const page = await html(`/docs/${name}`);
      for (const [, file] of text.matchAll(/!\[[^\]]*\]\((?:docs\/)?img\/([^)]+)\)/g)) {
        expect([name, file, page.includes(`src="/docs/img/${file}"`)]).toEqual([name, file, true]);
        shown.add(file!).add(file!.replace('-light.', '-dark.'));
      }
    }
    const carried = [...Object.keys(PHOTOS), ...Object.keys(PICTURES)];
    expect(carried.filter((name) => !shown.has(name))).toEqual([]);
  });

  test('the Markdown itself and the pictures are served too', async () => {
    expect(docsPage('/docs/notes.md')!.headers.get('content-type')).toStartWith('text/markdown');
    for (const name of Object.keys(PHOTOS)) {
      const picture = docsPage(`/docs/img/${name}`)!;
      expect(picture.headers.get('content-type')).toBe('image/png');
      const bytes = new Uint8Array(await picture.arrayBuffer());
      expect(Buffer.from(bytes.subarray(1, 4)).toString()).toBe('PNG');
    }
    for (const name of Object.keys(PICTURES)) {
      const picture = docsPage(`/docs/img/${name}`)!;
      expect(picture.headers.get('content-type')).toStartWith('image/svg+xml');
      const drawing = await picture.text();
      expect(drawing).not.toMatch(/<script|href|\son\w+=/i);
      // Drawn for light and dark.
      expect(drawing).toContain('@media(prefers-color-scheme:dark)');
    }
  });

  test.each([
    '/',
    '/docsx',
    '/docs/nothing',
    '/docs/../README.md',
    '/docs/img/../../package.json',
    '/docs/img/rooms.svg.md',
    '/docs/__proto__',
    '/docs/img/__proto__',
    '/v1/models',
  ])('%s is no page', (path) => {
    expect(docsPage(path)).toBeUndefined();
  });
});

describe('Markdown', () => {
  test.each([
    ['shared *engines* here', 'shared <em>engines</em> here'],
    [
      '*Made by* and **bold *inner* one**',
      '<em>Made by</em> and <strong>bold <em>inner</em> one</strong>',
    ],
    ['5 * 3 * 2', '5 * 3 * 2'],
    ['`claude-*` and gpt-* and x', '<code>claude-*</code> and gpt-* and x'],
    ['\\*literal\\*', '*literal*'],
    ['*.example and *.test', '*.example and *.test'],
  ])('emphasis: %s', (text, shown) => {
    expect(renderMarkdown(text, same)).toContain(`<p>${shown}</p>`);
  });

  test('what a page may hold', () => {
    const text = [
      '# A `b` & c',
      '- one',
      '- two\n  goes on\n  - inner',
      '1. first',
      '',
      '| a | b |\n|---|---|\n| `x\\|y` | p \\| q |',
      '```sh\necho "<b>"\n```',
      '> said **so**',
      '[here](notes.md) ![pic](img/a.svg)',
    ].join('\n\n');
    const out = renderMarkdown(text, same);
    expect(out).toContain('<h1 id="a-b--c">A <code>b</code> &amp; c</h1>');
    expect(out).toContain('<td><code>x|y</code></td><td>p | q</td>');
    expect(out).toContain(
      '<code class="language-sh">echo <span class="s">&quot;&lt;b&gt;&quot;</span>\n</code>',
    );
    expect(out).toContain('<blockquote><p>said <strong>so</strong></p></blockquote>');
    expect(out).toContain('<a href="notes.md">here</a> <img src="img/a.svg" alt="pic">');
    expect(out).toContain('<li>inner</li>');
    expect(out).toContain('<ol>');
  });

  test('a cell of a wide table names its column, for phones', () => {
    const out = renderMarkdown('| `a` | [b](x.md) "q" | c |\n|---|---|---|\n| 1 | 2 | |', same);
    expect(out).toContain('<table class="stacked">');
    expect(out).toContain(
      '<tr><td>1</td><td data-label="b &quot;q&quot;">2</td><td data-label="c"></td></tr>',
    );
  });

  test('no HTML and no scheme of a page gets through', () => {
    const evil = '<img src=x onerror=alert(1)> [x](javascript:alert(1)) `<script>`';
    const safe = renderMarkdown(evil, (target) => (/^https?:/.test(target) ? target : undefined));
    expect(safe).not.toMatch(/<img|<script|href|javascript:alert\(1\)"/);
  });

  test('whatever the text, only known tags come out', () => {
    const pieces = fc.constantFrom(
      '<',
      '>',
      '"',
      '`',
      '```',
      '\n',
      '\n\n',
      '|',
      '- ',
      '# ',
      '**',
      '[a](',
      ')',
      '![',
      '> ',
      'x',
      '  ',
      '|---|',
      '\\',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const out = renderMarkdown(parts.join(''), same);
        const rest = out.replace(
          /<\/?(?:h[1-6]|p|ul|ol|li|pre|code|table|thead|tbody|tr|th|td|div|blockquote|strong|em|hr|a|img|span|button|picture|source)(?: [a-z-]+="[^"<>]*")*>/g,
          '',
        );
        expect(rest).not.toMatch(/[<>]/);
      }),
      { numRuns: 500 },
    );
  });

  test('anchors are those of other renderers', () => {
    expect(anchorOf('DeepSeek with Claude Code')).toBe('deepseek-with-claude-code');
    expect(anchorOf('`a_b`: c, d')).toBe('a_b-c-d');
    expect(anchorOf('可以信赖的几点')).toBe('可以信赖的几点');
  });
});

describe('the search page', () => {
  const found = async (query: string) => (await docsPage('/docs', query)!.text()) ?? '';
  const addresses = (text: string) =>
    [...text.matchAll(/<li><a href="(\/docs\/[^"]+)">/g)].map(([, to]) => to!);
  const hits = (text: string) => addresses(/<ol class="hits">[\s\S]*?<\/ol>/.exec(text)?.[0] ?? '');

  test('every page has the form that leads to it', async () => {
    for (const { name } of PAGES) {
      const form = /<form action="\/docs" role="search"><input type="search" name="q" value=""/;
      expect(await html(`/docs/${name}`)).toMatch(form);
    }
    const policy = docsPage('/docs', 'x')!.headers.get('content-security-policy')!;
    expect(policy).toContain("form-action 'self'");
    expect(policy).toContain("default-src 'none'");
  });

  test('leads to the place and shows the words that were asked for', async () => {
    const text = await found('web fetch');
    expect(hits(text)[0]).toBe('/docs/server-tools#web-fetch');
    expect(text).toContain('<mark>web</mark>_<mark>fetch</mark>');
    expect(text).toContain('name="q" value="web fetch"');
    expect(hits(await found('常数时间'))[0]).toBe('/docs/zh-CN#可以信赖的几点');
  });

  test('every hit is a page with that place', async () => {
    const all = hits(await found('the a of model key note'));
    expect(all.length).toBe(30);
    for (const hit of all) {
      const [path = '', anchor] = hit.split('#', 2);
      expect([hit, anchor === undefined || (await html(path)).includes(`id="${anchor}"`)]).toEqual([
        hit,
        true,
      ]);
    }
  });

  test('the words that matter are marked, whatever their endings, and those of every question are not', async () => {
    const text = await found('how do I add a key');
    expect(text).toMatch(/<mark>keys?<\/mark>/i);
    expect(text).not.toMatch(/<mark>(?:how|do|i|a)<\/mark>/i);
    expect(await found('retry')).toMatch(/<mark>retr(?:y|ies|ied)<\/mark>/i);
  });

  test('a browser with a wrong address gets a page with what it may mean, a program gets an error', async () => {
    const other = new Response('{}', { status: 404 });
    const manual = manualPlugin({ version: '1', noPage: () => other });
    const ask = (path: string, accept: string) =>
      manual.handle(new Request(`http://127.0.0.1${path}`, { headers: { accept } }));
    expect(await ask('/docs/nothing', '*/*')).toBe(other);
    const page = await ask('/docs/claude-code', 'text/html,*/*');
    expect(page.status).toBe(404);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const text = await page.text();
    expect(text).toContain('The manual has no page <code>/docs/claude-code</code>');
    expect(text).toContain('<a href="/docs/claude-code-on-glm');
    const chinese = await (await ask('/docs/nothing.zh-CN', 'text/html')).text();
    expect(chinese).toContain('<html lang="zh-CN">');
    expect(chinese).toContain('<a href="/docs/nothing" lang="en" hreflang="en">');
    expect(text).toContain('<a href="/docs/claude-code.zh-CN" lang="zh-CN" hreflang="zh-CN">');
    const han = await (await ask(`/docs/${encodeURIComponent('配置')}`, 'text/html')).text();
    expect(han).toContain('<a href="/docs" lang="en" hreflang="en">');
    for (const evil of ['%3Cscript%3Ealert(1)%3C/script%3E', '%E0%A4%A', '__proto__', '']) {
      const answer = await (await ask(`/docs/x${evil}`, 'text/html')).text();
      expect(answer.match(/<script/gi)).toHaveLength(1);
    }
  });

  test('nothing found is said, nothing asked is the first page', async () => {
    expect(await found('xyzzyplugh')).toContain('<h1>Nothing found</h1>');
    expect(await found('   ')).toBe(await html('/docs'));
    expect(hits(await found('web '.repeat(10_000))).length).toBeGreaterThan(0);
  });

  test('what is asked is shown as text, whatever it is', async () => {
    const evil = '"><script>alert(1)</script> web';
    const text = await found(evil);
    expect(text.match(/<script/gi)).toHaveLength(1);
    expect(text).toContain('value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt; web"');
  });

  test('whatever is asked, an excerpt is text with marks and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 60, unit: 'grapheme' }), async (query) => {
        const text = await found(query);
        for (const [, excerpt] of text.matchAll(/<\/a><p>(.*?)<\/p><\/li>/g)) {
          expect(excerpt!.replace(/<\/?mark>/g, '')).not.toMatch(/[<>]/);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('search', () => {
  const index = docsIndex({ host: '127.0.0.1', port: 5520 });
  const first = (query: string) => index.search(query, 5)[0]?.url;

  test.each([
    ['what does tool_text_shortened mean', '/docs/notes#tool_text_shortened'],
    ['deepseek with claude code', '/docs/recipes#deepseek-with-claude-code'],
    ['web search engines searxng tavily', '/docs/server-tools#web-search'],
    ['MCP servers', '/docs/server-tools#mcp-servers'],
    ['tool text shortened', '/docs/notes#tool_text_shortened'],
    ['配置', '/docs/configuration.zh-CN'],
    ['密钥', '/docs/keys.zh-CN'],
    ['重试', '/docs/errors.zh-CN#何时重试'],
    ['如何验证', '/docs/zh-CN#如何验证'],
    ['docker', '/docs/docker'],
    ['container', '/docs/docker'],
    ['kubernetes', '/docs/scale-out#run-it'],
    ['how do I add a key', '/docs/keys'],
    ['behind nginx', '/docs/behind-nginx'],
    ['why was my request changed', '/docs/changed-requests'],
    ['two keys for one vendor', '/docs/two-keys'],
  ])('"%s" leads to %s', (query, to) => {
    expect(first(query)).toStartWith(`http://127.0.0.1:5520${to}`);
  });

  test.each([
    ['streaming', /stream/i],
    ['logging', /\blogs?\b/i],
    ['会话', /session|会话/i],
    ['configuring', /configur/i],
    ['failover', /failover|fallback|retr(?:y|ied)|重试/i],
  ])('"%s" is found by its stem or by another word for it', (query, text) => {
    const hits = index.search(query, 5);
    expect(hits.length).toBe(5);
    expect(`${hits[0]!.title} ${hits[0]!.text}`).toMatch(text);
  });

  test('every address it gives is a page', () => {
    for (const { url } of index.search('the gateway model key', 500)) {
      const { pathname } = new URL(url);
      expect(docsPage(pathname)).toBeDefined();
    }
  });

  test('a query without any known word finds nothing', () => {
    expect(index.search('xyzzy plugh', 5)).toEqual([]);
    expect(index.search('', 5)).toEqual([]);
  });

  test('addresses can be opened whatever the server is bound to', () => {
    const url = (host: string) => docsIndex({ host, port: 1 }).search('notes', 1)[0]!.url;
    expect(url('0.0.0.0')).toStartWith('http://127.0.0.1:1/docs/');
    expect(url('::1')).toStartWith('http://[::1]:1/docs/');
  });
});

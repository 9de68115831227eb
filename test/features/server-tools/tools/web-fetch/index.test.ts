/** web_fetch: pages it reads, pages it refuses, and that no spelling or resolver leads to private addresses. */

import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { decodeHostedContent } from '../../../../../src/codecs/anthropic-messages/hosted-tools.ts';
import { type ToolContext, ToolError } from '../../../../../src/features/server-tools/tool.ts';
import {
  type WebFetchOptions,
  webFetchTool,
} from '../../../../../src/features/server-tools/tools/web-fetch/index.ts';

const PAGE = `<!doctype html><html><head><title>Herbs &amp; spices</title><base href="/garden/"></head>
<body><nav><a href="/">Home</a></nav><script>steal()</script>
<main><h1>Herbs</h1><p>Grow <b>basil</b> in <a href="pots">pots</a>.</p>
<img src="basil.png" alt="A plant"><img src="data:image/png;base64,AAAA" alt="tiny">
<table><tr><th>Herb</th><th>Water</th></tr><tr><td>Mint</td><td>much | more</td></tr></table>
<pre><code>water(2);\nwait();</code></pre><ul><li>one</li><li>two</li></ul>
<p>${'Filler sentence. '.repeat(20)}</p></main><footer>All rights</footer></body></html>`;

let hits: string[] = [];
const pages: Record<string, (request: Request) => Response | Promise<Response>> = {
  '/page': () => html(PAGE),
  '/json': () => Response.json({ a: [1, 2] }),
  '/text': () =>
    new Response('  plain <b>text</b>\n', { headers: { 'content-type': 'text/plain' } }),
  '/pdf': () => new Response('%PDF-1.7', { headers: { 'content-type': 'application/pdf' } }),
  '/consent': (request) =>
    request.headers.get('cookie')?.includes('ok=1')
      ? html('<p>behind the consent</p>')
      : new Response('', {
          status: 302,
          headers: { location: '/consent', 'set-cookie': 'ok=1; Path=/; Secure' },
        }),
  '/cookie-away': () =>
    new Response('', {
      status: 302,
      headers: {
        location: `http://other.test:${server.port}/cookies`,
        'set-cookie': 'secret=1; Domain=.test',
      },
    }),
  '/cookies': (request) => html(`<p>cookies: ${request.headers.get('cookie') ?? 'none'}</p>`),
  '/later': () => new Response('no', { status: 429, headers: { 'retry-after': '30' } }),
  '/binary': () => new Response(new Uint8Array([1, 0, 2]), { headers: { 'content-type': '' } }),
  '/missing': () => new Response('no', { status: 404 }),
  '/busy': () => new Response('no', { status: 503 }),
  '/gbk': () =>
    new Response(new Uint8Array([0x3c, 0x70, 0x3e, 0xc4, 0xe3, 0xba, 0xc3]), {
      headers: { 'content-type': 'text/html; charset=GBK' },
    }),
  '/gzip': () =>
    new Response(gzipSync('<p>packed</p>'), {
      headers: { 'content-type': 'text/html', 'content-encoding': 'gzip' },
    }),
  '/bomb': () =>
    new Response(gzipSync(Buffer.alloc(50_000_000, 'x')), {
      headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
    }),
  '/br': () =>
    new Response('x', { headers: { 'content-type': 'text/html', 'content-encoding': 'br' } }),
  '/slow': async () => {
    await Bun.sleep(3000);
    return html('<p>late</p>');
  },
  '/drip': () =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          await Bun.sleep(50);
          controller.enqueue(new TextEncoder().encode('x '));
        },
      }),
      { headers: { 'content-type': 'text/plain' } },
    ),
  '/loop': () => redirect('/loop'),
  '/hop': () => redirect('/page'),
  '/to-metadata': () => redirect('http://169.254.169.254/latest/meta-data/'),
  '/to-decimal': () => redirect('http://2130706433/page'),
  '/to-file': () => redirect('file:///etc/passwd'),
  '/to-other': () => redirect(`http://other.test:${server.port}/page`),
};
const html = (text: string) => new Response(text, { headers: { 'content-type': 'text/html' } });
const redirect = (location: string) => new Response('', { status: 302, headers: { location } });
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname } = new URL(request.url);
    hits.push(`${request.headers.get('host')}${pathname}`);
    return pages[pathname]?.(request) ?? new Response('?', { status: 404 });
  },
});
afterAll(() => server.stop(true));

const here = `http://127.0.0.1:${server.port}`;
const tool = (options: Partial<WebFetchOptions> = {}) =>
  webFetchTool({
    inject: 'declared',
    timeoutMs: 2000,
    maxBytes: 2_000_000,
    maxText: 50_000,
    maxRedirects: 4,
    allow: [`127.0.0.1:${server.port}`],
    now: () => new Date('2026-01-02T03:04:05Z'),
    ...options,
  });
const context = (more: Partial<ToolContext> = {}): ToolContext => ({
  signal: new AbortController().signal,
  callId: 'call_1',
  options: {},
  log: () => {},
  ...more,
});
const get = (
  path: string,
  options: Partial<WebFetchOptions> = {},
  more: Partial<ToolContext> = {},
) => tool(options).run({ url: path.startsWith('/') ? here + path : path }, context(more));
const textOf = ({ text }: Awaited<ReturnType<typeof get>>) =>
  typeof text === 'function' ? text(1) : text;
const refused = async (promise: Promise<unknown>): Promise<ToolError> => {
  const thrown = await promise.then(
    () => new Error('was fetched'),
    (reason) => reason,
  );
  if (!(thrown instanceof ToolError)) throw thrown;
  return thrown;
};

describe('pages', () => {
  test('HTML becomes Markdown without scripts and navigation, links absolute', async () => {
    const { payload } = await get('/page');
    const { text, ...rest } = payload as { text: string };
    expect(rest).toEqual({
      url: `${here}/page`,
      title: 'Herbs & spices',
      truncated: false,
    } as never);
    expect(text).toContain('# Herbs');
    expect(text).toContain(`Grow **basil** in [pots](${here}/garden/pots).`);
    expect(text).toContain(`![A plant](${here}/garden/basil.png)tiny`);
    expect(text).toContain('| Herb | Water |\n| --- | --- |\n| Mint | much \\| more |');
    expect(text).toContain('```\nwater(2);\nwait();\n```');
    expect(text).toMatch(/-\s+one\n-\s+two/);
    for (const gone of ['steal', 'Home', 'All rights', 'base64', '<'])
      expect(text).not.toContain(gone);
  });

  test('a layout table becomes blocks, a table inside it stays a table', async () => {
    pages['/layout'] = () =>
      html(
        '<table><tr><td><h2>Side</h2></td><td><table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table></td></tr></table>',
      );
    const { payload } = await get('/layout');
    expect(payload).toMatchObject({
      text: '## Side\n\n| a | b |\n| --- | --- |\n| c | d |',
    });
  });

  test('JSON and text stay unchanged', async () => {
    expect(await get('/json')).toMatchObject({ payload: { text: '{"a":[1,2]}', title: '' } });
    expect(await get('/text')).toMatchObject({ payload: { text: 'plain <b>text</b>' } });
  });

  test('the charset of the answer is used', async () => {
    expect(await get('/gbk')).toMatchObject({ payload: { text: '你好' } });
  });

  test('a compressed page is read; a decompression bomb is cut at the size limit', async () => {
    expect(await get('/gzip')).toMatchObject({ payload: { text: 'packed' } });
    const { payload } = await get('/bomb', { maxBytes: 10_000 });
    expect(payload).toMatchObject({ text: 'x'.repeat(10_000), truncated: true });
    expect((await refused(get('/br'))).code).toBe('url_not_accessible');
  });

  test.each(['/pdf', '/binary'])('%s is refused by its content', async (path) => {
    const error = await refused(get(path));
    expect(error.code).toBe('unsupported_content_type');
  });

  test('a long page comes in parts that join without loss', async () => {
    const whole = (await get('/page')).payload as { text: string };
    let text = '';
    for (let parts = 0; parts < 100; parts++) {
      const { payload } = await tool({ maxText: 37 }).run(
        { url: `${here}/page`, start: text.length },
        context(),
      );
      const part = payload as { text: string; truncated: boolean };
      text += part.text;
      if (!part.truncated) break;
    }
    expect(text).toBe(whole.text);
    const first = await get('/page', { maxText: 37 });
    expect(textOf(first)).toContain('"start": 37');
  });

  test('a source number comes first only where the client reads citations', async () => {
    expect((await get('/json', {}, { wantsCitations: true })).text).toBeFunction();
    expect(textOf(await get('/json', {}, { wantsCitations: true }))).toStartWith(
      `[1] ${here}/json\n`,
    );
    expect((await get('/json')).text).toBe(`${here}/json\nURL: ${here}/json\n\n{"a":[1,2]}`);
  });

  test('the client’s limit in tokens applies', async () => {
    const { payload } = await get('/page', {}, { options: { max_content_tokens: 10 } });
    expect((payload as { text: string }).text).toHaveLength(40);
  });

  test('server errors are reported, with whether a retry may help', async () => {
    expect(await refused(get('/missing'))).toMatchObject({
      code: 'url_not_accessible',
      retryable: false,
    });
    expect(await refused(get('/busy'))).toMatchObject({ retryable: true });
    expect((await refused(tool().run({}, context()))).code).toBe('invalid_tool_input');
  });

  test('a page that wants its cookie back is read, and the cookie reaches no other host or fetch', async () => {
    expect(textOf(await get('/consent'))).toContain('behind the consent');
    expect(textOf(await get('/cookies'))).toContain('cookies: none');
    const options = {
      allow: [`127.0.0.1:${server.port}`, 'other.test'],
      resolve: async () => ['127.0.0.1'],
    };
    expect(textOf(await get('/cookie-away', options))).toContain('cookies: none');
  });

  test('a page that asks for patience says for how long', async () => {
    expect((await refused(get('/later'))).message).toContain('try again in 30 seconds');
  });

  test('slow servers and slow bodies run into the time limit', async () => {
    for (const path of ['/slow', '/drip']) {
      const error = await refused(get(path, { timeoutMs: 300 }));
      expect(error.message).toContain('0.3 s');
    }
  });

  test('a client that leaves ends the fetch at once, with the client’s reason', async () => {
    const abort = new AbortController();
    const promise = get('/slow', {}, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error('gone')), 50);
    await expect(promise).rejects.toThrow('gone');
  });

  test('the Messages codec decodes the result block', async () => {
    const { shown, sources } = await get(
      '/page',
      {},
      { options: { citations: { enabled: true } } },
    );
    const [block] = shown!;
    expect(decodeHostedContent(block!.wire!.value)).toEqual([block!]);
    expect(block).toMatchObject({
      wire: {
        value: {
          type: 'web_fetch_result',
          url: `${here}/page`,
          content: { type: 'document', title: 'Herbs & spices', citations: { enabled: true } },
          retrieved_at: '2026-01-02T03:04:05.000Z',
        },
      },
    });
    expect(sources).toMatchObject([{ url: `${here}/page`, title: 'Herbs & spices' }]);
  });

  test('hostile markup neither hangs nor throws', async () => {
    const nasty = [
      '<div>'.repeat(50_000),
      '<b>'.repeat(50_000),
      '<table><tr><td>'.repeat(3000),
      '<a href=x>'.repeat(5000),
      `<ul>${'<li>x'.repeat(20_000)}`,
      '<'.repeat(100_000),
      `<main>${'<p>x'.repeat(20_000)}`,
      `<head><title>${'x'.repeat(100_000)}`,
      '&#0;&#x110000;&bogus;',
      '<select><script></select>x',
    ];
    for (const markup of nasty) {
      pages['/nasty'] = () => html(`${markup} end`);
      const started = performance.now();
      const { ok } = await get('/nasty', { timeoutMs: 8000 });
      expect(ok).toBe(true);
      expect([markup.slice(0, 20), performance.now() - started < 5000]).toEqual([
        markup.slice(0, 20),
        true,
      ]);
    }
  }, 60_000);
});

describe('unusual pages', () => {
  const put = (body: string | Uint8Array, headers: Record<string, string>) => {
    pages['/odd'] = () =>
      new Response(typeof body === 'string' ? body : new Blob([Buffer.from(body)]), { headers });
  };
  const HTML_TYPE = { 'content-type': 'text/html' };

  test('a long title is shortened', async () => {
    put(`<title>${'<'.repeat(2_000_000)}`, HTML_TYPE);
    const outcome = await get('/odd', { maxText: 40_000 });
    expect(textOf(outcome).length).toBeLessThan(2000);
    expect(JSON.stringify(outcome.shown).length).toBeLessThan(3000);
    expect(JSON.stringify(outcome.sources).length).toBeLessThan(3000);
  });

  test('a long address is cut in the text', async () => {
    const path = `/${'p'.repeat(7000)}`;
    pages[path] = () => html('<p>x</p>');
    expect(textOf(await get(path)).length).toBeLessThan(2500);
  });

  test('a page whose content comes from scripts gets a remark', async () => {
    put('<body><div id="root"></div><script src="app.js"></script></body>', HTML_TYPE);
    expect(textOf(await get('/odd'))).toContain('Scripts produce the content');
    put('<body><div></div></body>', HTML_TYPE);
    expect(textOf(await get('/odd'))).toContain('has no text');
    put(`<script></script><p>${'Words. '.repeat(60)}</p>`, HTML_TYPE);
    expect(textOf(await get('/odd'))).not.toContain('scripts');
  });

  test('a PDF is recognised under any content type', async () => {
    for (const type of ['application/pdf', 'text/plain', 'application/octet-stream']) {
      put('%PDF-1.7\n%\xe2\xe3', { 'content-type': type });
      const error = await refused(get('/odd'));
      expect([error.code, error.message]).toEqual([
        'unsupported_content_type',
        expect.stringContaining('PDF'),
      ]);
    }
  });

  test('an answer without a content type is read where it is text', async () => {
    const type = { 'content-type': 'application/octet-stream' };
    put('# Plain, größer', type);
    expect(await get('/odd')).toMatchObject({ payload: { text: '# Plain, größer' } });
    put('<!doctype html><p>page</p>', type);
    expect(await get('/odd')).toMatchObject({ payload: { text: 'page' } });
    put(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0xff, 0xfe]), type);
    expect((await refused(get('/odd'))).code).toBe('unsupported_content_type');
  });

  test('UTF-16 is recognised by its first bytes', async () => {
    const text = '\ufeff<p>größer 你好</p>';
    const little = Buffer.from(text, 'utf16le');
    put(little, HTML_TYPE);
    expect(await get('/odd')).toMatchObject({ payload: { text: 'größer 你好' } });
    put(Buffer.from(little).swap16(), HTML_TYPE);
    expect(await get('/odd')).toMatchObject({ payload: { text: 'größer 你好' } });
  });

  test('deflate with or without its frame and brotli are decoded; other encodings are an error', async () => {
    const packed: readonly (readonly [string, Uint8Array])[] = [
      ['deflate', deflateSync('<p>packed</p>')],
      ['deflate', deflateRawSync('<p>packed</p>')],
      ['br', brotliCompressSync('<p>packed</p>')],
    ];
    for (const [encoding, body] of packed) {
      put(body, { ...HTML_TYPE, 'content-encoding': encoding });
      expect(await get('/odd')).toMatchObject({ payload: { text: 'packed' } });
    }
    put('x', { ...HTML_TYPE, 'content-encoding': 'deflate' });
    expect((await refused(get('/odd'))).message).toContain('not encoded as deflate');
    put('x', { ...HTML_TYPE, 'content-encoding': 'compress' });
    expect((await refused(get('/odd'))).message).toContain('compress, which cannot be undone');
  });

  test('a redirect to a domain that the client blocks is not requested', async () => {
    const blocked = { options: { blocked_domains: ['other.test'] } };
    hits = [];
    const options = { allow: ['127.0.0.1'], resolve: async () => ['127.0.0.1'] };
    const error = await refused(get('/to-other', options, blocked));
    expect(error.code).toBe('url_not_allowed');
    expect(hits).toHaveLength(1);
  });

  test('the parts of a page keep their formatting', async () => {
    put(
      '<h2>A <a href="#x">b</a></h2><ul><li>one<ul><li>two</ul><li>three</ul><ol start=3><li>four' +
        '<pre class="language-js"><code>a();\n  b();</code></pre></ol><blockquote><p>q</p><p>r</p>' +
        '</blockquote><a href="/c"><div><h3>Card</h3><p>text</p></div></a>x<br>y <em> z </em>!',
      HTML_TYPE,
    );
    const { text } = (await get('/odd')).payload as { text: string };
    expect(text).toBe(
      `## A [b](${here}/odd#x)\n\n- one\n  - two\n- three\n\n3. four\n\n   \`\`\`js\n   a();\n     b();\n   \`\`\`\n\n` +
        `> q\n>\n> r\n\n### [Card](${here}/c)\n\n[text](${here}/c)\n\nx  \ny *z* !`,
    );
  });
});

describe('addresses that are not public', () => {
  const port = server.port;
  test.each([
    `http://localhost:${port}/page`,
    `http://LOCALHOST.:${port}/page`,
    `http://a.localhost:${port}/page`,
    `http://127.1:${port}/page`,
    `http://2130706433:${port}/page`,
    `http://0x7f000001:${port}/page`,
    `http://0177.0.0.1:${port}/page`,
    `http://0x7f.1:${port}/page`,
    `http://017700000001:${port}/page`,
    `http://127.0.0.1.:${port}/page`,
    `http://%31%32%37.0.0.1:${port}/page`,
    `http://１２７.0.0.1:${port}/page`,
    `http://127。0。0。1:${port}/page`,
    `http://0:${port}/page`,
    `http://[::1]:${port}/page`,
    `http://[::ffff:127.0.0.1]:${port}/page`,
    `http://[::ffff:7f00:1]:${port}/page`,
    `http://[0:0:0:0:0:ffff:7f00:0001]:${port}/page`,
    `http://[64:ff9b::7f00:1]:${port}/page`,
    `http://[2002:7f00:1::]:${port}/page`,
    `http://[::]:${port}/page`,
    `http://[fe80::1]:${port}/page`,
    `http://[fd00:ec2::254]/`,
    'http://169.254.169.254/latest/meta-data/',
    'http://168.63.129.16/',
    'http://100.100.100.200/',
    `http://user:pass@127.0.0.1:${port}/page`,
    `http://1.1.1.1@127.0.0.1:${port}/page`,
    `http:127.0.0.1:${port}/page`,
    `http:\\\\127.0.0.1:${port}\\page`,
    `ftp://127.0.0.1:${port}/page`,
    `file:///etc/passwd`,
    `gopher://127.0.0.1:${port}/`,
    'http://1.1.1.1:22/',
    '/page-relative',
    '',
  ])('%s', async (url) => {
    hits = [];
    const none = tool({ allow: [], resolve: async () => ['127.0.0.1'] });
    const error = await refused(none.run({ url }, context()));
    expect(['url_not_allowed', 'invalid_tool_input']).toContain(error.code);
    expect(hits).toEqual([]);
  });

  test('a name that resolves to a private address is refused, even with other public addresses', async () => {
    hits = [];
    for (const found of [
      ['127.0.0.1'],
      ['1.1.1.1', '10.0.0.1'],
      ['::1'],
      ['::ffff:10.0.0.1'],
      ['nonsense'],
    ]) {
      const resolve = async () => found;
      const error = await refused(get(`http://evil.test:${port}/page`, { allow: [], resolve }));
      expect([found, error.code]).toEqual([found, 'url_not_allowed']);
    }
    expect(hits).toEqual([]);
  });

  test('a name is resolved once for each connection', async () => {
    // One lookup per hop: the connection goes to the checked address, whatever the resolver says later.
    const answers = ['203.0.113.1', '127.0.0.1'];
    let requestCount = 0;
    hits = [];
    const resolve = async () => [answers[Math.min(requestCount++, 1)]!];
    const options = { allow: ['203.0.113.0/24'], resolve, timeoutMs: 400 };
    await refused(get(`http://rebind.test:${port}/page`, options));
    expect({ asked: requestCount, hits }).toEqual({ asked: 1, hits: [] });
  });

  test('a redirect to the same name resolves and checks it again', async () => {
    let requestCount = 0;
    const resolve = async () => [requestCount++ === 0 ? '127.0.0.1' : '10.0.0.1'];
    hits = [];
    const error = await refused(
      get(`http://rebind.test:${port}/hop`, { allow: ['127.0.0.1'], resolve }),
    );
    expect(error.code).toBe('url_not_allowed');
    expect({ asked: requestCount, hits }).toEqual({ asked: 2, hits: [`rebind.test:${port}/hop`] });
  });

  test.each(['/to-metadata', '/to-file', '/to-other'])('a redirect %s is refused', async (path) => {
    const resolve = async () => ['192.168.1.1'];
    expect((await refused(get(path, { resolve }))).code).toBe('url_not_allowed');
  });

  test('another spelling of a listed address after a redirect is recognised', async () => {
    const error = await refused(get('/to-decimal', { resolve: async () => [] }));
    expect(error.code).toBe('url_not_allowed');
  });

  test('redirects are followed up to the limit', async () => {
    expect(await get('/hop')).toMatchObject({ payload: { url: `${here}/page` } });
    hits = [];
    expect((await refused(get('/loop', { maxRedirects: 3 }))).message).toContain(
      'more than 3 redirects',
    );
    expect(hits).toHaveLength(4);
  });

  test('a listed name is fetched from its resolved address with its own Host header', async () => {
    hits = [];
    const options = { allow: ['wiki.test'], resolve: async () => ['127.0.0.1'] };
    const { payload } = await get(`http://wiki.test:${port}/json`, options);
    expect(payload).toMatchObject({ url: `http://wiki.test:${port}/json` });
    expect(hits).toEqual([`wiki.test:${port}/json`]);
  });

  test("the client's domain lists apply to the targets of redirects too", async () => {
    const allowed = { options: { allowed_domains: ['docs.test'] } };
    expect((await refused(get('/page', {}, allowed))).code).toBe('url_not_allowed');
    const options = { allow: ['docs.test', 'www.docs.test'], resolve: async () => ['127.0.0.1'] };
    await get(`http://www.docs.test:${port}/json`, options, allowed);
    const blocked = { options: { blocked_domains: ['docs.test/js'] } };
    expect((await refused(get(`http://docs.test:${port}/json`, options, blocked))).code).toBe(
      'url_not_allowed',
    );
    await get(`http://docs.test:${port}/text`, options, blocked);
    const sneaky = { options: { allowed_domains: ['ocs.test'] } };
    expect((await refused(get(`http://docs.test:${port}/json`, options, sneaky))).code).toBe(
      'url_not_allowed',
    );
  });
});

describe('certificates', () => {
  const openssl = Bun.which('openssl');
  const name = 'the certificate must be the name’s, though the connection goes to the address';
  if (openssl === null) test.skip(`SKIPPED, no openssl on this machine: ${name}`, () => {});
  else {
    test(name, async () => {
      const dir = mkdtempSync(join(tmpdir(), 'hopgate-cert-'));
      const [key, cert] = [join(dir, 'k.pem'), join(dir, 'c.pem')];
      const made = Bun.spawnSync([
        openssl,
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-keyout',
        key,
        '-out',
        cert,
        '-days',
        '2',
        '-subj',
        '/CN=pinned.test',
        '-addext',
        'subjectAltName=DNS:pinned.test',
      ]);
      expect(made.exitCode).toBe(0);
      const ca = readFileSync(cert, 'utf8');
      const secure = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        tls: { key: readFileSync(key, 'utf8'), cert: ca },
        fetch: (request) => Response.json({ host: request.headers.get('host') }),
      });
      const options = { allow: ['127.0.0.1'], resolve: async () => ['127.0.0.1'] };
      try {
        const good = await get(`https://pinned.test:${secure.port}/`, { ...options, ca });
        expect(good.payload).toMatchObject({ text: `{"host":"pinned.test:${secure.port}"}` });
        // Directly afterwards, over a possibly reused connection to the same address.
        for (const other of ['other.test', '127.0.0.1']) {
          const error = await refused(get(`https://${other}:${secure.port}/`, { ...options, ca }));
          expect([other, error.code]).toEqual([other, 'url_not_accessible']);
        }
        const untrusted = await refused(get(`https://pinned.test:${secure.port}/`, options));
        expect(untrusted.code).toBe('url_not_accessible');
      } finally {
        secure.stop(true);
        rmSync(dir, { recursive: true });
      }
    });
  }
});

/** HTTP tools: the place of each argument, what arguments can never change, and the results. */

import { afterAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type ToolContext, ToolError } from '../../../../../src/features/server-tools/tool.ts';
import {
  buildRequest,
  type HttpToolOptions,
  httpTool,
  schemaForModel,
} from '../../../../../src/features/server-tools/tools/http/index.ts';
import type { Json, JsonObject } from '../../../../../src/lib/json/json.ts';
import { expectCpuBelow } from '../../../../support/cpu-time.ts';

const schema = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  ...more,
});
const request = (url: string, properties: JsonObject, args: JsonObject, method = 'GET') => {
  const built = buildRequest({ url, method, schema: schema(properties) }, args);
  return { url: built.url.href, body: built.body };
};

describe('the place of each argument', () => {
  test('arguments go into the path, the query of the template, and the rest by method', () => {
    const url = 'https://a.test/v1/{city}/now?u={units}&lang={lang}&v=2';
    const all = { city: {}, units: {}, lang: {}, days: {} };
    const args = { city: 'São Paulo/x', units: 'c&d', days: 3 };
    expect(request(url, all, args)).toEqual({
      url: 'https://a.test/v1/S%C3%A3o%20Paulo%2Fx/now?u=c%26d&v=2&days=3',
      body: undefined,
    });
    expect(request(url, all, args, 'POST')).toEqual({
      url: 'https://a.test/v1/S%C3%A3o%20Paulo%2Fx/now?u=c%26d&v=2',
      body: { days: 3 },
    });
  });

  test('x-in and x-name are applied, and hidden from the model', () => {
    const properties = {
      a: { type: 'string', 'x-in': 'query', 'x-name': 'q' },
      b: { type: 'string', 'x-name': 'beta' },
    };
    expect(request('https://a.test/', properties, { a: '1', b: '2' }, 'PUT')).toEqual({
      url: 'https://a.test/?q=1',
      body: { beta: '2' },
    });
    expect(schemaForModel(schema(properties))).toEqual(
      schema({ a: { type: 'string' }, b: { type: 'string' } }),
    );
  });

  test('lists repeat their key, objects are JSON, null and undefined are left out', () => {
    const args = { l: [1, 'b'], o: { x: 1 }, n: null, u: undefined, t: true };
    const all = { l: {}, o: {}, n: {}, u: {}, t: {} };
    expect(request('https://a.test/', all, args).url).toBe(
      'https://a.test/?l=1&l=b&o=%7B%22x%22%3A1%7D&t=true',
    );
  });

  test('arguments that the schema does not declare are left out, unless it is open', () => {
    expect(request('https://a.test/', { a: {} }, { a: 1, admin: true }).url).toBe(
      'https://a.test/?a=1',
    );
    const open = { type: 'object', properties: {}, additionalProperties: true };
    const { body } = buildRequest(
      { url: 'https://a.test/', method: 'POST', schema: open },
      { x: 1 },
    );
    expect(body).toEqual({ x: 1 });
  });

  test('a {+path} keeps its slashes', () => {
    expect(request('https://a.test/f/{+p}', { p: {} }, { p: '/a b//c?d#e' }).url).toBe(
      'https://a.test/f/a%20b/c%3Fd%23e',
    );
  });

  test.each([
    ['https://a.test/f/{p}', '..'],
    ['https://a.test/f/{p}/x', '.'],
    ['https://a.test/f/{+p}', 'a/../../b'],
    ['https://a.test/f/{p}{p}', '.'],
    ['https://a.test/f/{p}', ''],
    ['https://a.test/f/.{p}', '.'],
  ])('%s with %p is refused', (url, p) => {
    expect(() => request(url, { p: {} }, { p })).toThrow(ToolError);
  });

  test('missing arguments are named', () => {
    const spec = {
      url: 'https://a.test/',
      method: 'GET',
      schema: schema({}, { required: ['a', 'b'] }),
    };
    expect(() => buildRequest(spec, { a: 1 })).toThrow('Missing arguments: b.');
  });

  test('no argument changes the host, the port, the scheme or the fixed part of the path', () => {
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '//evil.test',
        '@evil.test',
        ':80@evil.test',
        '\\\\evil.test',
        '/../..',
        '%2e%2e',
        '?',
        '#',
        'https://evil.test/',
        '..\\..',
        '\t//evil',
        '\u0000',
        '。',
        '．．',
      ),
      fc.webUrl(),
    );
    const url = 'https://api.test:8443/fixed/{a}/{+b}?c={c}';
    fc.assert(
      fc.property(value, value, value, fc.json(), (a, b, c, json) => {
        const args = { a, b, c, d: JSON.parse(json) as Json };
        let built: URL;
        try {
          built = new URL(request(url, { a: {}, b: {}, c: {}, d: {} }, args).url);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ToolError);
          return;
        }
        expect(built.origin).toBe('https://api.test:8443');
        expect(built.pathname).toStartWith('/fixed/');
        expect(built.username + built.password + built.hash).toBe('');
        expect(built.searchParams.get('c')).toBe(c.toWellFormed());
      }),
      { numRuns: 500 },
    );
  });
});

interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Headers;
}
let received: SentRequest[] = [];
const answers: Record<string, () => Response | Promise<Response>> = {
  '/json': () => Response.json({ ok: 1 }),
  '/text': () => new Response('hello'),
  '/long': () => new Response('x'.repeat(5000), { headers: { 'content-type': 'text/plain' } }),
  '/jpg': () =>
    new Response(new Uint8Array([255, 216]), { headers: { 'content-type': 'image/jpg' } }),
  '/png': () =>
    new Response(new Uint8Array([137, 80]), { headers: { 'content-type': 'image/png' } }),
  '/zip': () =>
    new Response(new Uint8Array([80, 75]), { headers: { 'content-type': 'application/zip' } }),
  '/none': () => new Response(null, { status: 204 }),
  '/bad': () => Response.json({ error: 'no such city' }, { status: 422 }),
  '/busy': () => new Response('', { status: 429 }),
  '/slow': async () => {
    await Bun.sleep(2000);
    return new Response('late');
  },
  '/near': () => Response.redirect('/json', 307),
  '/see': () => Response.redirect('/json', 303),
  '/loop': () => Response.redirect('/loop', 302),
  '/away': () => Response.redirect(`http://localhost:${server.port}/json`, 302),
};
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(incoming) {
    const { pathname, search } = new URL(incoming.url);
    const { method, headers } = incoming;
    received.push({ method, path: pathname + search, body: await incoming.text(), headers });
    return answers[pathname]?.() ?? new Response('?', { status: 404 });
  },
});
afterAll(() => server.stop(true));

const SECRET = { reveal: () => 'sk-very-secret' };
const tool = (path: string, more: Partial<HttpToolOptions> = {}) =>
  httpTool({
    name: 'weather',
    description: 'The weather',
    method: 'GET',
    url: `http://127.0.0.1:${server.port}${path}`,
    schema: schema({ city: { type: 'string' } }),
    headers: {},
    query: {},
    timeoutMs: 1000,
    maxBytes: 1000,
    ...more,
  });
const context = (signal = new AbortController().signal): ToolContext => ({
  signal,
  callId: 'c',
  options: {},
  log: () => {},
});
const call = (path: string, args: JsonObject = {}, more: Partial<HttpToolOptions> = {}) => {
  received = [];
  return tool(path, more).run(args, context());
};

describe('a schema is enforced before anything is sent', () => {
  const url = 'https://a.test/deploy/{env}';
  const rules: JsonObject = {
    env: { type: 'string', enum: ['staging'] },
    size: { type: 'integer', minimum: 1, maximum: 9 },
    tag: { type: 'string', pattern: '^[a-z]+$', maxLength: 5 },
    who: { type: 'object', properties: { id: { const: 7 } }, additionalProperties: false },
  };
  const spec = { url, method: 'POST', schema: schema(rules, { additionalProperties: false }) };
  const refused: readonly (readonly [JsonObject, string])[] = [
    [{ env: 'production' }, 'The argument "env" must be one of "staging".'],
    [{ env: 'staging', size: '3' }, 'The argument "size" must be of type integer.'],
    [{ env: 'staging', size: 10 }, 'The argument "size" must be at most 9.'],
    [{ env: 'staging', tag: '../x' }, 'The argument "tag" must match the pattern ^[a-z]+$.'],
    [{ env: 'staging', tag: 'toolong' }, 'The argument "tag" must have at most 5 characters.'],
    [{ env: 'staging', who: { id: 8 } }, 'The argument "who.id" must be 7.'],
    [{ env: 'staging', who: { id: 7, x: 1 } }, 'The argument "who.x" is not known.'],
    [{ env: 'staging', other: 1 }, 'The argument "other" is not known.'],
  ];
  for (const [args, message] of refused) {
    test(JSON.stringify(args), () => {
      expect(() => buildRequest(spec, args)).toThrow(message);
      try {
        buildRequest(spec, args);
      } catch (thrown) {
        expect((thrown as ToolError).code).toBe('invalid_tool_input');
      }
    });
  }

  test('valid arguments are sent, and null for an optional one is left out', () => {
    const { url: sent, body } = buildRequest(spec, { env: 'staging', size: 3, tag: null });
    expect([sent.href, body]).toEqual(['https://a.test/deploy/staging', { size: 3 }]);
  });

  test('a pattern with catastrophic backtracking takes no time', async () => {
    const evil = schema({ q: { type: 'string', pattern: '^(a+)+$' } });
    const args = { q: `${'a'.repeat(20_000)}!` };
    const of = { url: 'https://a.test/', method: 'GET', schema: evil };
    await expectCpuBelow(500, () =>
      expect(() => buildRequest(of, args)).toThrow('must match the pattern'),
    );
    const long = { q: 'a'.repeat(4_000_000) };
    expect(() => buildRequest(of, long)).toThrow('too long to be checked');
  });
});

describe('one call', () => {
  test('sends the operator’s headers and keys, which no argument can replace', async () => {
    const { text, payload } = await call(
      '/json',
      { city: 'Ulm', key: 'mine' },
      {
        headers: { 'x-key': SECRET },
        query: { key: SECRET },
        schema: schema({ city: {}, key: {} }),
      },
    );
    expect({ text, payload }).toEqual({ text: '{"ok":1}', payload: { ok: 1 } });
    expect(received[0]!.path).toBe('/json?city=Ulm&key=sk-very-secret');
    expect(received[0]!.headers.get('x-key')).toBe('sk-very-secret');
  });

  test('posts JSON, or a form where the header says so', async () => {
    await call('/json', { city: 'Ulm' }, { method: 'POST' });
    expect(received[0]).toMatchObject({ method: 'POST', body: '{"city":"Ulm"}' });
    expect(received[0]!.headers.get('content-type')).toBe('application/json');
    const form = { reveal: () => 'application/x-www-form-urlencoded' };
    await call('/json', { city: 'U m' }, { method: 'POST', headers: { 'content-type': form } });
    expect(received[0]!.body).toBe('city=U+m');
  });

  test('text, nothing, and long answers', async () => {
    expect(await call('/text')).toMatchObject({ ok: true, text: 'hello', payload: 'hello' });
    expect(await call('/none')).toMatchObject({ ok: true, text: '(no content)' });
    const long = await call('/long');
    expect(long.text).toBe(`${'x'.repeat(1000)}\n[cut off after 1000 bytes]`);
  });

  test('an image is passed on as an image; other binary data is refused', async () => {
    expect((await call('/png')).media).toEqual([
      {
        type: 'media',
        media: 'image',
        source: { type: 'base64', mediaType: 'image/png', data: 'iVA=' },
      },
    ]);
    expect(await call('/jpg')).toMatchObject({ media: [{ source: { mediaType: 'image/jpeg' } }] });
    await expect(call('/zip')).rejects.toThrow('application/zip');
  });

  test('error answers become results with the server’s text', async () => {
    const bad = await call('/bad');
    expect(bad).toMatchObject({
      ok: false,
      payload: { ok: false, tool: 'weather', retryable: false },
    });
    expect(bad.text).toContain('no such city');
    expect(await call('/busy')).toMatchObject({
      code: 'too_many_requests',
      payload: { retryable: true },
    });
  });

  test('answers are read in their charset, and Retry-After becomes a hint', async () => {
    const gbk = new Uint8Array([0xc4, 0xe3, 0xba, 0xc3]);
    const put = (headers: Record<string, string>, status = 200) => {
      answers['/odd'] = () => new Response(gbk, { status, headers });
    };
    put({ 'content-type': 'text/plain; charset="GBK"' });
    expect((await call('/odd')).text).toBe('你好');
    put({ 'content-type': 'text/plain; charset=nonsense' });
    expect((await call('/odd')).ok).toBe(true);
    put({ 'content-type': 'text/plain; charset=gbk', 'retry-after': '30' }, 429);
    expect((await call('/odd')).text).toContain('status 429 (try again in 30 seconds): 你好');
    const date = new Date(Date.now() + 90_000).toUTCString();
    put({ 'content-type': 'text/plain', 'retry-after': date }, 503);
    expect((await call('/odd')).text).toMatch(/try again in (?:89|90) seconds/);
    put({ 'content-type': 'text/plain', 'retry-after': 'soon' }, 503);
    expect((await call('/odd')).text).not.toContain('try again');
  });

  test('a slow server runs into the time limit, and a client that leaves ends the call', async () => {
    await expect(call('/slow', {}, { timeoutMs: 100 })).rejects.toThrow(
      'did not answer within 0.1 s',
    );
    const abort = new AbortController();
    const promise = tool('/slow').run({}, context(abort.signal));
    setTimeout(() => abort.abort(new Error('gone')), 30);
    await expect(promise).rejects.toThrow('gone');
  });

  test('an unreachable server fails without its URL, which may hold a key', async () => {
    const failing = call('/x', {}, { url: 'http://127.0.0.1:1/x', query: { key: SECRET } });
    const message = await failing.then(String, String);
    expect(message).toContain('cannot be reached');
    expect(message).not.toContain('secret');
    expect(message).not.toContain('127.0.0.1');
  });

  test('redirects stay within the origin, so headers reach no other host', async () => {
    expect(await call('/near')).toMatchObject({ ok: true });
    expect(await call('/see', { city: 'x' }, { method: 'POST' })).toMatchObject({ ok: true });
    expect(received.map(({ method }) => method)).toEqual(['POST', 'GET']);
    await expect(call('/away')).rejects.toThrow('redirects to another host');
    expect(received).toHaveLength(1);
    await expect(call('/loop')).rejects.toThrow('redirects');
  });
});

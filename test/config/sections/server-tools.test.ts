/** web_fetch, HTTP tools and MCP servers of the file: defaults, secrets and problems. */

import { describe, expect, test } from 'bun:test';
import { inspect } from 'node:util';
import type { HttpToolConfig } from '../../../src/config/sections/server-tools/http-tools.ts';
import type { WebFetchConfig } from '../../../src/config/sections/server-tools/index.ts';
import type { McpServerConfig } from '../../../src/config/sections/server-tools/mcp-servers.ts';
import type { HttpToolOptions } from '../../../src/features/server-tools/tools/http/index.ts';
import type { McpToolsServer } from '../../../src/features/server-tools/tools/mcp/index.ts';
import type { WebFetchOptions } from '../../../src/features/server-tools/tools/web-fetch/index.ts';
import { bad, good, PROVIDER } from '../support.ts';

// At compile time: what the file says is what the tools take, without a translation in between.
const takesFetch = (config: WebFetchConfig): WebFetchOptions => config;
const takesHttp = (config: HttpToolConfig): HttpToolOptions => config;
const takesMcp = (config: McpServerConfig): McpToolsServer => config;

const tools = (yaml: string) => `${PROVIDER}server_tools:\n${yaml.replace(/^/gm, '  ')}`;
const http = (yaml: string) => tools(`http:\n  t:\n${yaml.replace(/^/gm, '    ')}`);
const problem = (yaml: string) => {
  const [first] = bad(yaml);
  return `${first!.path}: ${first!.message}`;
};

const WEATHER = `description: The weather
url: "https://api.test/v1/{city}/now?units={units}"
schema:
  type: object
  properties: { city: { type: string }, units: { type: string }, days: { type: integer, x-in: query } }
  required: [city]`;

describe('web_fetch', () => {
  test('is off unless it is named', () => {
    expect(good(PROVIDER).serverTools).toEqual({ http: [], mcp: [] });
  });

  test('has defaults for everything, and allows no private address', () => {
    expect(good(tools('web_fetch: {}')).serverTools.webFetch).toEqual({
      inject: 'declared',
      timeoutMs: 20_000,
      maxBytes: 5_000_000,
      maxText: 40_000,
      maxRedirects: 5,
      allow: [],
    });
    expect(good(tools('web_fetch:')).serverTools.webFetch?.allow).toEqual([]);
  });

  test('has the form that the tool expects, like the others', () => {
    const {
      webFetch,
      http: offered,
      mcp,
    } = good(
      tools(
        'web_fetch: {}\nhttp: { t: { description: d, url: "http://a.test" } }\nmcp: { m: { command: x } }',
      ),
    ).serverTools;
    expect(takesFetch(webFetch!)).toBe(webFetch!);
    expect(takesHttp(offered[0]!)).toBe(offered[0]!);
    expect(takesMcp(mcp[0]!)).toBe(mcp[0]!);
  });

  test('a time limit cannot be switched off', () => {
    expect(problem(tools('web_fetch: { timeout: 0 }'))).toContain('must be 0.1 or more');
  });

  test('unknown keys are problems', () => {
    expect(problem(tools('web_fetch: { allowed: [x] }'))).toContain('unknown key');
  });
});

describe('HTTP tools', () => {
  test('have defaults, lower-case headers and wrapped keys', () => {
    const text = http(
      `${WEATHER}\nheaders: { Authorization: "Bearer \${KEY}" }\nquery: { key: "\${KEY}" }`,
    );
    const [tool] = good(text, { KEY: 'sk-secret' }).serverTools.http;
    expect(tool).toMatchObject({
      name: 't',
      method: 'GET',
      url: 'https://api.test/v1/{city}/now?units={units}',
      timeoutMs: 30_000,
      maxBytes: 262_144,
      schema: { type: 'object', required: ['city'], properties: { days: { 'x-in': 'query' } } },
    });
    expect(tool!.headers.authorization!.reveal()).toBe('Bearer sk-secret');
    expect(tool!.query.key!.reveal()).toBe('sk-secret');
    expect(inspect(tool, { depth: 9 }) + JSON.stringify(tool)).not.toContain('sk-secret');
  });

  test('may have no arguments at all', () => {
    const [tool] = good(http('description: d\nurl: "http://127.0.0.1:1/x"')).serverTools.http;
    expect(tool!.schema).toEqual({ type: 'object', properties: {} });
  });

  test.each([
    ['an argument in the host', 'https://{city}/x', 'no argument can stand in the host'],
    ['an argument in a part of the host', 'https://{city}.api.test/', 'no argument can stand'],
    ['an argument in the port', 'https://api.test:{city}/', 'no argument can stand'],
    ['an argument as credentials', 'https://{city}@api.test/', 'no argument can stand'],
    ['credentials', 'https://u:p@api.test/{city}', 'no user name or password'],
    ['an undeclared argument', 'https://api.test/{town}', 'names no property'],
    ['an open brace', 'https://api.test/{city', 'brace'],
    ['a fragment', 'https://api.test/#{city}', 'fragment'],
    ['another scheme', 'ftp://api.test/', 'does not fit'],
  ])('%s in the URL is a problem', (_what, url, message) => {
    const text = http(WEATHER.replace('https://api.test/v1/{city}/now?units={units}', url));
    expect(problem(text)).toContain(message);
    expect(problem(text)).toStartWith('server_tools.http.t.url');
  });

  test.each([
    ['type: string, properties: { city: {} }', 'must have type: object'],
    ['type: object, properties: { city: {}, a: { x-in: header } }', 'must be query or body'],
    ['type: object, properties: { city: { enmu: [x] } }', 'properties.city.enmu'],
    ['type: object, properties: { city: { pattern: "(" } }', 'is no regular expression'],
    ['type: object, properties: { city: {}, a: { x-in: body } }', 'a GET request has no body'],
    ['type: object, properties: { city: { x-in: query } }', 'do not stand in the URL'],
  ])('schema %s is a problem', (schema, message) => {
    const text = http(`description: d\nurl: "https://api.test/{city}"\nschema: { ${schema} }`);
    expect(problem(text)).toContain(message);
    expect(problem(text)).toStartWith('server_tools.http.t.schema');
  });

  test('an unset variable in a header is a problem, not an empty key', () => {
    expect(problem(http(`${WEATHER}\nheaders: { x: "\${NOPE_KEY}" }`))).toContain('NOPE_KEY');
  });

  test('illegal names and unknown keys are problems', () => {
    expect(problem(http(WEATHER).replace('    t:', '    "t t":'))).toContain('not a legal name');
    expect(problem(http(`${WEATHER}\nbody: x`))).toContain('unknown key');
    expect(problem(http('url: "https://x.test/"'))).toContain('needs the key "description"');
  });
});

describe('MCP servers', () => {
  test('a program gets its environment wrapped and the home as its directory', () => {
    const text = tools(
      `mcp: { files: { command: ~/bin/files, args: [--ro], env: { T: "\${T}" } } }`,
    );
    const [server] = good(text, { T: 'tok' }).serverTools.mcp;
    expect(server).toMatchObject({
      name: 'files',
      command: '/home/u/bin/files',
      args: ['--ro'],
      cwd: '/home/u',
      timeoutMs: 60_000,
    });
    expect(server!.tools).toBeUndefined();
    expect(server!.env.T!.reveal()).toBe('tok');
    expect(JSON.stringify(server)).not.toContain('"tok"');
  });

  test('an address gets headers and an allow list', () => {
    const text = tools(
      'mcp: { far: { url: "https://m.test/mcp", headers: { X-Key: k }, tools: [a, "b*"], timeout: 5 } }',
    );
    expect(good(text).serverTools.mcp).toMatchObject([
      { name: 'far', url: 'https://m.test/mcp', tools: ['a', 'b*'], timeoutMs: 5000 },
    ]);
    expect(good(text).serverTools.mcp[0]!.headers['x-key']!.reveal()).toBe('k');
  });

  test.each([
    ['{ a: {} }', 'either the key "command" or the key "url"'],
    ['{ a: { command: x, url: "http://x.test" } }', 'either the key "command" or the key "url"'],
    ['{ a__b: { command: x } }', 'not a legal name'],
    ['{ a: { cmd: x } }', 'unknown key'],
  ])('%s is a problem', (mcp, message) => {
    expect(problem(tools(`mcp: ${mcp}`))).toContain(message);
  });
});

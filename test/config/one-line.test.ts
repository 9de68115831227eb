/** Keys and header values that no header can carry are refused when the file is loaded, with their position. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
import { describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load.ts';
import { bad, good, PROVIDER } from './support.ts';

const SECRET = 'sk-first\nsk-second';
const MESSAGE =
  'holds a line break or another character beyond printable ASCII, which no header can carry';
const HEADER_MESSAGE =
  'holds a line break, a control character or one beyond Latin-1, which no header can carry';
const provider = (more: string) =>
  `providers:\n  p: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", ${more} }\n`;

describe('a value that is sent as a header and cannot be', () => {
  test.each([
    ["a provider's only key", provider('keys: "${KEY}"'), 'providers.p.keys', 2],
    ['one of its keys', provider('keys: [good, "${KEY}"]'), 'providers.p.keys[1]', 2],
    ['a header of it', provider('headers: { x-a: "${KEY}" }'), 'providers.p.headers.x-a', 2],
    ["the gateway's key", `${PROVIDER}auth: { keys: ["\${KEY}"] }\n`, 'auth.keys[0]', 3],
    [
      "the gateway's key with a name",
      `${PROVIDER}auth: { keys: [{ name: a, key: "\${KEY}" }] }\n`,
      'auth.keys[0].key',
      3,
    ],
    [
      "a search engine's key",
      `${PROVIDER}server_tools: { web_search: { engines: [{ type: tavily, keys: "\${KEY}" }] } }\n`,
      'server_tools.web_search.engines[0].keys',
      3,
    ],
    [
      "an HTTP tool's header",
      `${PROVIDER}server_tools: { http: { t: { description: d, url: "http://a.test", headers: { a: "\${KEY}" } } } }\n`,
      'server_tools.http.t.headers.a',
      3,
    ],
    [
      "an MCP server's header",
      `${PROVIDER}server_tools: { mcp: { m: { url: "http://a.test", headers: { a: "\${KEY}" } } } }\n`,
      'server_tools.mcp.m.headers.a',
      3,
    ],
    [
      "the memory's key",
      `${PROVIDER}memory: { url: "http://a.test", key: "\${KEY}" }\n`,
      'memory.key',
      3,
    ],
  ])('%s is told by its place, and never shown', (_, text, path, line) => {
    const message = path.includes('.headers.') ? HEADER_MESSAGE : MESSAGE;
    // As Latin-1, the last two are a line break; those before are what comes along when a key is pasted.
    const pasted = ['“sk-first”', 'sk\u2011first', 'sk-first\u200b', '\ufeffsk-first', 'sk-密'];
    const split = [SECRET, 'sk-first\0', 'sk-first\r', '\nsk-first', 'sk-first\u0007'];
    for (const secret of [...split, ...pasted, 'sk-first\u010aX-Other: 1', 'sk-first\u010d']) {
      const problems = bad(text, { KEY: secret });
      expect(problems).toMatchObject([{ path, line, message }]);
      expect(JSON.stringify(problems)).not.toContain('sk-');
    }
    expect(good(text, { KEY: 'sk-first' })).toBeDefined();
  });

  test('a key in the file itself is refused too', () => {
    expect(bad(provider('keys: "a\\nb"'))[0]).toMatchObject({ message: MESSAGE });
    expect(bad(provider('keys: "a\\0b"'))[0]).toMatchObject({ message: MESSAGE });
  });

  test.each([
    ['a preset', 'providers: { deepseek: {} }\n', 'DEEPSEEK_API_KEY', 'providers.deepseek'],
    [
      'a search engine',
      `${PROVIDER}server_tools: { web_search: { engines: [{ type: tavily }] } }\n`,
      'TAVILY_API_KEY',
      'server_tools.web_search.engines[0]',
    ],
  ])('the variable that %s looks for is told by its name', (_, text, variable, path) => {
    const problems = bad(text, { [variable]: SECRET });
    expect(problems).toMatchObject([
      { path, message: `the environment variable ${variable} ${MESSAGE}` },
    ]);
    expect(JSON.stringify(problems)).not.toContain('sk-');
  });

  test('a key of the environment is refused without a file too', async () => {
    const environment = environmentFrom({ HOME: '/none', DEEPSEEK_API_KEY: SECRET });
    const loaded = await loadConfig({ environment });
    expect(loaded.ok).toBe(false);
    expect(JSON.stringify(loaded)).toContain(MESSAGE);
    expect(JSON.stringify(loaded)).not.toContain('sk-');
  });
});

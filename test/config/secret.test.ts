/** Credentials are never visible when a configuration is printed, logged or has problems. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
import { describe, expect, test } from 'bun:test';
import { inspect } from 'node:util';
import pino from 'pino';
import { describeProblem } from '../../src/config/file/problem.ts';
import { Secret, secretsIn } from '../../src/config/secret.ts';
import { env, good, parse } from './support.ts';

const SECRET = 'sk-live-0123456789abcdef';
const FILE = `
providers:
  p:
    protocol: anthropic-messages
    base_url: https://vendor.test
    keys: ["${SECRET}", "$\{K}"]
    headers: { x-org-token: "${SECRET}" }
    query: { key: "${SECRET}" }
    proxy: http://user:${SECRET}@proxy.test:3128
auth: { keys: ["${SECRET}", { name: laptop, key: "${SECRET}" }] }
server_tools: { web_search: { engines: [{ type: tavily, keys: ["${SECRET}"] }] } }
`;

describe('a configuration full of credentials', () => {
  const config = good(FILE, { K: SECRET });

  test.each([
    ['JSON', JSON.stringify(config)],
    ['Bun.inspect', Bun.inspect(config, { depth: 20 })],
    ['util.inspect', inspect(config, { depth: 20, showHidden: true })],
    ['a template', `${config.providers.p!.keys[0]} ${config.auth.keys[0]!.key}`],
    ['a copy', JSON.stringify({ ...config.providers.p!.keys[0] })],
    ['the environment', Bun.inspect(env({ OPENAI_API_KEY: SECRET }), { depth: 9 })],
  ])('shows none as %s', (_, text) => {
    expect(text).not.toContain(SECRET);
  });

  test('shows none of them in a log line', () => {
    let line = '';
    pino(
      {},
      {
        write: (text: string) => {
          line += text;
        },
      },
    ).info({ config }, 'loaded');
    expect(line).toContain('vendor.test');
    expect(line).not.toContain(SECRET);
  });

  test('still returns them where they are revealed', () => {
    expect(config.providers.p!.keys.map((key) => key.reveal())).toEqual([SECRET, SECRET]);
    expect(config.providers.p!.transport.proxy!.reveal()).toContain(SECRET);
  });

  test.each([
    ['a wrong word from the environment', 'log: { level: "${K}" }'],
    ['a wrong address from the environment', 'providers: { p: { preset: glm, base_url: "${K}" } }'],
    [
      'a list of keys that is a mapping',
      `providers: { p: { preset: glm, keys: { a: ${SECRET} } } }`,
    ],
    ['broken YAML behind a key', `auth: { keys: ["${SECRET}]`],
    ['a key of the wrong kind', `auth: { keys: [[${SECRET}]] }`],
  ])('a problem with %s does not repeat it', (_, text) => {
    const result = parse(text, { K: SECRET });
    if (result.ok) throw new Error('was taken');
    expect(result.problems.length).toBeGreaterThan(0);
    expect(result.problems.map((p) => describeProblem(p)).join('\n')).not.toContain(SECRET);
  });
});

test('what stands in a header is a secret of its own: behind its scheme, in Basic, in a cookie', () => {
  const basic = Buffer.from('ann:long-password').toString('base64');
  const config = good(`
providers:
  a:
    protocol: openai-chat
    base_url: https://a.example/v1
    headers: { authorization: "Bearer token-of-a-1", Cookie: "sid=session-of-a; theme=dark" }
  b:
    protocol: openai-chat
    base_url: https://b.example/v1
    headers: { authorization: "Basic ${basic}", x-mode: "mode=production" }
`);
  const secrets = secretsIn(config);
  for (const one of [
    'token-of-a-1',
    'Bearer token-of-a-1',
    'session-of-a',
    basic,
    'long-password',
  ]) {
    expect(secrets).toContain(one);
  }
  for (const word of ['production', 'dark', 'Bearer']) expect(secrets).not.toContain(word);
});

describe('a secret', () => {
  test('compares by value, and has a label that reveals nothing', () => {
    const secret = new Secret(SECRET);
    expect(secret.equals(SECRET)).toBe(true);
    expect(secret.equals(`${SECRET}x`)).toBe(false);
    expect(secret.equals('')).toBe(false);
    expect(secret.label).toMatch(/^key-[0-9a-f]{6}$/);
    expect(secret.label).not.toBe(new Secret('other').label);
  });
});

/** Common mistakes in a configuration: reported at their position, with what to write instead. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file

import { describe, expect, test } from 'bun:test';
import { describeProblem } from '../../src/config/file/problem.ts';
import { refusalToServe } from '../../src/config/servable.ts';
import { bad, good, PROVIDER, parse } from './support.ts';

const GLM =
  'providers:\n  glm: { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [glm-4.7, "glm-5*"] }\n';

const reports = (text: string, variables: Record<string, string> = {}) => {
  const result = parse(text, variables);
  const problems = result.ok ? [] : result.problems;
  return [...problems, ...result.warnings].map((one) => describeProblem(one, 'f'));
};

describe('globs without quotes', () => {
  test.each([
    ['model: *claude', 'f:5:14: *claude stands for', 'did you mean "*claude"?'],
    ['model: *claude*', 'f:5:14: *claude* stands for', 'did you mean "*claude*"?'],
    ['model: *-haiku', 'f:5:14: *-haiku stands for', 'did you mean "*-haiku"?'],
    ['model: *', 'f:5:14: a * alone', 'did you mean "*"?'],
    ['model: [*]', 'f:5:15: a * alone', 'did you mean "*"?'],
    ['{ model: * }', 'f:5:16: a * alone', 'did you mean "*"?'],
    ['model: ["a", *b]', 'f:5:20: *b stands for', 'did you mean "*b"?'],
  ])('%s', (line, begins, ends) => {
    const [first] = reports(`${PROVIDER}routes:\n  - when:\n      ${line}\n    to: [p/x]\n`);
    expect(first).toStartWith(begins);
    expect(first).toContain('in quotes');
    expect(first).toContain(ends);
  });
});

describe('a YAML error is reported once, at its position', () => {
  test.each([
    ['a quote that never ends', `${PROVIDER}listen: "127.0.0.1:1\nworkers: 2\n`, 'f:3:9: '],
    [
      'a single one',
      `${PROVIDER}listen: '127.0.0.1:1\nworkers: 2\n`,
      "f:3:9: a text that begins with '",
    ],
    ['one in a list', `${PROVIDER}auth: { keys: ["abc] }\nworkers: 2\n`, 'f:3:16: '],
    ['tabs', `${PROVIDER}log:\n\tlevel: info\n\tformat: json\n`, 'f:4:1: a tab cannot'],
    [
      'a key twice',
      `${PROVIDER}listen: 1\nlisten: 2\n`,
      'f:4:1: the key "listen" is there already, in line 3',
    ],
  ])('%s', (_, text, begins) => {
    const lines = reports(text);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toStartWith(begins);
  });
});

describe('a key with what stood around it', () => {
  test.each([
    ['"sk-a"', 'a key stands in quotation marks, which is sent with it'],
    ["'sk-a'", 'a key stands in quotation marks, which is sent with it'],
    [' sk-a', 'a key begins or ends with a blank, which is sent with it'],
    ['sk-a ', 'a key begins or ends with a blank, which is sent with it'],
    ['Bearer sk-a', 'a key begins with "Bearer", which is sent with it'],
    ['sk-"a', undefined],
    ['"', undefined],
  ])('%j', (key, message) => {
    const warned = (text: string, name: string) => {
      const result = parse(text, { [name]: key });
      if (!result.ok) throw new Error(JSON.stringify(result.problems));
      return result.warnings.map((one) => [one.path, one.message]);
    };
    const at = (path: string) => (message === undefined ? [] : [[path, message]]);
    expect(warned('providers:\n  deepseek: { keys: ["${K}"] }\n', 'K')).toEqual(
      at('providers.deepseek.keys[0]'),
    );
    expect(warned('providers: { deepseek: {} }\n', 'DEEPSEEK_API_KEY')).toEqual(
      at('providers.deepseek'),
    );
  });
});

describe('variables without braces', () => {
  test.each([
    ['keys: ["$ZHIPU_API_KEY"]'],
    ['keys: $ZHIPU_API_KEY'],
    ['headers: { authorization: "Bearer $ZHIPU_API_KEY" }'],
    ['keys: ["${ZHIPU_API_KEY"]'],
    ['headers: { x-team: "${TEAM" }'],
  ])('%s', (line) => {
    const text = `providers:\n  p:\n    protocol: openai-chat\n    base_url: http://127.0.0.1:1/v1\n    ${line}\n`;
    const problems = bad(text, { ZHIPU_API_KEY: 'a-secret-value', TEAM: 'x' });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ line: 5 });
    const message = describeProblem(problems[0]!);
    if (!line.includes('${')) expect(message).toContain('did you mean "${ZHIPU_API_KEY}"');
    expect(message).not.toContain('a-secret-value');
  });

  test('a dollar sign elsewhere is a dollar sign, and "$${" is "${"', () => {
    expect(good(`${PROVIDER}auth: { keys: ["pa$$word-of-length"] }\n`).auth.keys).toHaveLength(1);
    expect(good(`${PROVIDER}auth: { keys: ["$\${not a reference}"] }\n`).auth.keys).toHaveLength(1);
  });
});

describe('targets that are legal but unlikely', () => {
  test.each([
    ['glm/glm4.7', 'glm does not list the model "glm4.7" (did you mean "glm/glm-4.7"?)'],
    ['glm/claude-*', 'becomes "claude-claude-x" (did you mean "glm/*"?)'],
  ])('%s', (to, message) => {
    const result = parse(`${GLM}routes:\n  - to: ["${to}"]\n`);
    expect(result.ok).toBe(true);
    expect(result.warnings.map((one) => describeProblem(one))).toEqual([
      expect.stringContaining(message),
    ]);
  });

  test('another version, an unrelated name, a matching glob, a path before the star: no warning', () => {
    for (const to of ['glm/glm-4.6', 'glm/quite-another', 'glm/glm-5.1', 'glm/*', 'glm/zai/*']) {
      expect(reports(`${GLM}routes:\n  - to: ["${to}"]\n`)).toEqual([]);
    }
  });
});

describe('messages that say what to write', () => {
  test.each([
    [
      'open.bigmodel.cn/api',
      'must begin with https:// or http:// (did you mean "https://open.bigmodel.cn/api"?)',
    ],
    [
      'localhost:11434/v1',
      'must begin with https:// or http:// (did you mean "http://localhost:11434/v1"?)',
    ],
    ['127.0.0.1:8000', '(did you mean "http://127.0.0.1:8000"?)'],
    ['ftp://host/x', 'must begin with https://'],
    ['http://user:pass@host/v1', 'must hold no user name or password'],
    ['https://token@host/v1', 'must hold no user name or password'],
    ['https://@host/v1', 'must hold no user name or password'],
    ['https://host/v1?key=abc', 'must have no ?query'],
    ['https://host/v1#x', 'must have no #fragment'],
    ['https://ho st/v1', 'is not a URL'],
  ])('base_url: %s', (url, message) => {
    const text = `providers:\n  p: { protocol: openai-chat, base_url: ${JSON.stringify(url)} }\n`;
    const problems = bad(text);
    expect(problems).toHaveLength(1);
    expect(describeProblem(problems[0]!)).toContain(message);
    expect(describeProblem(problems[0]!)).not.toContain('pass@');
  });

  test('a password in a URL from a reference is refused and never shown', () => {
    const text = 'providers:\n  p: { protocol: openai-chat, base_url: "${U}" }\n';
    for (const U of ['http://user:s3cret@host/v1', 'user:s3cret@host/v1']) {
      const message = JSON.stringify(bad(text, { U }));
      expect(message).toContain('base_url');
      expect(message).not.toContain('s3cret');
    }
  });

  test('other addresses may hold no password either', () => {
    for (const more of [
      'server_tools: { mcp: { m: { url: "http://u:p@host/mcp" } } }',
      'memory: { url: "http://u:p@host/recall" }',
    ]) {
      expect(describeProblem(bad(`${PROVIDER}${more}\n`)[0]!)).toContain(
        'no user name or password',
      );
    }
  });

  test('to: glm', () => {
    expect(reports(`${GLM}routes:\n  - to: glm\n`)[0]).toContain('must be provider/model');
    expect(reports(`${GLM}routes:\n  - to: glm\n`)[0]).toContain('(did you mean "glm/*"?)');
  });

  test('a short gateway key gets a warning that does not repeat it', () => {
    for (const keys of ['[abc]', '[{ name: ann, key: abc }]']) {
      const [only, ...others] = reports(`${PROVIDER}auth: { keys: ${keys} }\n`);
      expect(only).toContain('is short');
      expect(only).not.toContain('abc');
      expect(others).toEqual([]);
    }
  });
});

describe('all problems are reported at once', () => {
  test('problems of the schema and of the sections', () => {
    const lines = reports(
      `${GLM}wrokers: 2\nroutes:\n  - to: [gml/x]\n  - { to: [glm/x], whn: {} }\naliases: { a: b, b: a }\n`,
    );
    expect(lines.join('\n')).toMatch(/wrokers: unknown key/);
    expect(lines.join('\n')).toMatch(/routes\[0\]\.to\[0\]: there is no provider "gml"/);
    expect(lines.join('\n')).toMatch(/routes\[1\]\.whn: unknown key/);
    expect(lines.join('\n')).toMatch(/goes round in a circle/);
  });

  test('problems that only follow from another one are not reported', () => {
    expect(bad(`${PROVIDER.replace('protocol', 'protocl')}routes:\n  - to: [p/x]\n`)).toHaveLength(
      1,
    );
    expect(bad(`${PROVIDER.replace('"http://127.0.0.1:1/v1"', '5')}`)).toHaveLength(1);
    expect(bad(`${GLM.replace('providers', 'prividers')}routes:\n  - to: [glm/x]\n`)).toHaveLength(
      1,
    );
  });
});

describe('what serve refuses', () => {
  test.each([
    ['0.0.0.0:1', true],
    ['"*:1"', true],
    ['"[::]:1"', true],
    ['192.168.1.5:1', true],
    ['myhost:1', true],
    ['127.0.0.1:1', false],
    ['"[::1]:1"', false],
    ['localhost:1', false],
    ['app.localhost:1', false],
    // Names that only begin like an address of this machine.
    ['127.example.com:1', true],
    ['localhost.example.com:1', true],
    ['5520', false],
  ])('listen: %s', (listen, refused) => {
    const config = good(`${PROVIDER}listen: ${listen}\n`);
    expect(refusalToServe(config) !== undefined).toBe(refused);
    const keyed = good(`${PROVIDER}listen: ${listen}\nauth: { keys: [long-enough-key] }\n`);
    expect(refusalToServe(keyed)).toBeUndefined();
  });

  test.each(['999.1.1.1:80', '"[zz]:80"', '"[1::2::3]:1"', '127.0.0.1:99999', '1.2.3:80'])(
    'an address that there cannot be: %s',
    (listen) => {
      expect(bad(`${PROVIDER}listen: ${listen}\n`)[0]?.path).toBe('listen');
    },
  );
});

describe('an amount with a unit says the number to write', () => {
  test.each([
    ['timeouts: { idle: 5 minutes }', 'must be a number, not text: write 300 (seconds)'],
    ['timeouts: { connect: 10000ms }', 'must be a number, not text: write 10 (seconds)'],
    ['timeouts: { total: 1hour }', 'must be a number, not text: write 3600 (seconds)'],
    ['keep_alive: "15"', 'must be a number, not text: write 15 (seconds)'],
    ['limits: { body_bytes: 50MB }', 'must be a whole number, not text: write 52428800 (bytes)'],
    ['limits: { body_bytes: 1 GiB }', 'must be a whole number, not text: write 1073741824 (bytes)'],
    ['workers: "2"', 'must be a whole number, not text: write 2'],
    ['timeouts: { idle: soon }', 'must be a number, not text: it counts seconds'],
    ['timeouts: { idle: 5 MB }', 'must be a number, not text: it counts seconds'],
    ['workers: two', 'must be a whole number, not text'],
  ])('%s', (line, message) => {
    const [first, ...more] = bad(`${PROVIDER}${line}\n`);
    expect(first!.message).toBe(message);
    expect(more).toEqual([]);
  });

  test('a text from a variable is not repeated', () => {
    const [first] = reports(`${PROVIDER}timeouts: { idle: "\${IDLE}" }\n`, { IDLE: '77 minutes' });
    expect(first).toEndWith('must be a number, not text: it counts seconds');
  });
});

describe('a base_url that is the address of an endpoint', () => {
  const of = (url: string) =>
    reports(`providers: { p: { protocol: openai-chat, base_url: "${url}", models: [m] } }\n`);

  test.each([
    ['http://127.0.0.1:1/v1/chat/completions', 'http://127.0.0.1:1/v1'],
    ['http://127.0.0.1:1/v1/chat/completions/', 'http://127.0.0.1:1/v1'],
    ['http://127.0.0.1:1/v1/responses', 'http://127.0.0.1:1/v1'],
    ['http://127.0.0.1:1/v1/messages', 'http://127.0.0.1:1'],
    ['http://127.0.0.1:1/v1beta/models/m:generateContent', 'http://127.0.0.1:1/v1beta'],
  ])('%s is %s', (url, meant) => {
    expect(of(url)).toHaveLength(1);
    expect(of(url)[0]).toContain(`did you mean "${meant}"?`);
  });

  test.each(['http://127.0.0.1:1/v1', 'http://127.0.0.1:1/chat', 'http://127.0.0.1:1/my/messages'])(
    '%s is none',
    (url) => expect(of(url)).toEqual([]),
  );
});

describe('what other programs call it', () => {
  test.each([
    ['providers: { p: { protocol: openai-chat, base_url: "http://a.test", api_key: x } }', 'keys'],
    ['providers: { p: { protocol: openai-chat, base_url: "http://a.test", token: x } }', 'keys'],
    ['providers: { p: { protocol: openai-chat, api_base: "http://a.test" } }', 'base_url'],
    ['providers: { p: { protocol: openai-chat, baseURL: "http://a.test" } }', 'base_url'],
    ['providers: { p: { protocol: openai-chat, url: "http://a.test" } }', 'base_url'],
    ['providers: { p: { type: openai-chat, base_url: "http://a.test" } }', 'protocol'],
    [`${PROVIDER}listen: { host: 127.0.0.1, port: 1 }`, 'address'],
    [`${PROVIDER}server: { port: 1 }`, 'listen'],
    [`${PROVIDER}backends: { p: {} }`, 'providers'],
    [`${PROVIDER}routes: [{ fallbacks: [p/x] }]`, 'to'],
    [`${PROVIDER}auth: { keys: [{ name: a, api_key: abcdefgh }] }`, 'key'],
  ])('%s: %s', (text, meant) => {
    const line = reports(`${text}\n`).find((one) => one.includes('unknown key'));
    expect(line).toEndWith(`: unknown key (did you mean "${meant}"?)`);
  });

  test.each([
    '$NAME',
    'Bearer $NAME',
    '$env:NAME',
    'os.environ/NAME',
    'process.env.NAME',
    '{env:NAME}',
    '%NAME%',
    '{{NAME}}',
    '{{ env.NAME }}',
  ])('the variable %s is sent unchanged', (written) => {
    const lines = reports(`providers: { glm: { keys: ['${written}'] } }\n`);
    expect(lines).toEqual([
      'f:1:28: providers.glm.keys[0]: is sent unchanged (did you mean "${NAME}"?)',
    ]);
  });

  test.each(['sk-$NAME', '%2F', 'os.environ', '{NAME}', 'a%NAME%b'])('%s is a key', (written) => {
    expect(reports(`providers: { glm: { keys: ['${written}'] } }\n`)).toEqual([]);
  });
});

describe('one key for two', () => {
  const digest = `sha256:${new Bun.CryptoHasher('sha256').update('abcdefgh').digest('hex')}`;
  test.each([
    ['{ name: b, key: abcdefgh }', 'auth.keys[1].key: is also auth.keys[0]'],
    [`{ name: b, key: "${digest}" }`, 'auth.keys[1].key: is also auth.keys[0]'],
    ['abcdefgh', 'auth.keys[1]: is also auth.keys[0]'],
    ['"Bearer abcdefgh"', 'auth.keys[1]: begins with "Bearer"'],
  ])('%s', (second, begins) => {
    const [line, ...more] = reports(`${PROVIDER}auth: { keys: [abcdefgh, ${second}] }\n`);
    expect(line).toContain(begins);
    expect(more).toEqual([]);
  });
});

/** References to the environment and to files: replaced, left out, or reported. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
import { afterAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bad, good, PROVIDER, parse } from '../support.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopgate-references-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('references', () => {
  test('variables, defaults, parts of texts, escapes and files', () => {
    writeFileSync(join(folder, 'key.txt'), '  sk-file \n');
    const config = good(
      `
providers:
  p:
    protocol: \${PROTO:-openai-chat}
    base_url: http://127.0.0.1:\${PORT}/v1
    keys: ["\${K}", "\${file:key.txt}", "\${file:${folder}/key.txt}"]
    headers: { Authorization: "Bearer \${K}", x-literal: "$\${K}" }
workers: \${WORKERS}
model_list: { claude_aliases: "\${YES}" }
`,
      { PORT: '81', K: 'sk-k', WORKERS: '2', YES: 'true' },
      join(folder, 'hopgate.yaml'),
    );
    const p = config.providers.p!;
    expect(p.protocol).toBe('openai-chat');
    expect(p.baseUrl).toBe('http://127.0.0.1:81/v1');
    expect(p.keys.map((key) => key.reveal())).toEqual(['sk-k', 'sk-file', 'sk-file']);
    expect(p.headers.authorization!.reveal()).toBe('Bearer sk-k');
    expect(p.headers['x-literal']!.reveal()).toBe('${K}');
    expect(config.workers).toBe(2);
    expect(config.modelList.claudeAliases).toBe(true);
  });

  test('an empty key of a provider is left out like an unset one', () => {
    for (const [written, variables] of [
      ['${SECOND:-}', {}],
      ['${SECOND}', { SECOND: '' }],
      ['${SECOND:- }', { SECOND: ' ' }],
    ] as const) {
      const text = `providers:\n  p: { preset: glm, keys: ["one", "${written}"] }\n`;
      const result = parse(text, variables as Record<string, string>);
      if (!result.ok) throw new Error(JSON.stringify(result.problems));
      expect(result.config.providers.p!.keys.map((key) => key.reveal())).toEqual(['one']);
      expect(result.warnings).toMatchObject([{ path: 'providers.p.keys[1]' }]);
    }
  });

  test('a default that is a reference itself is a mistake, not a text', () => {
    const nested = '${NOPE:-${K}}';
    const message = 'a reference cannot hold another one';
    const result = parse(`${PROVIDER}  q: { preset: glm, keys: ["${nested}"] }\n`, { K: 'k' });
    if (!result.ok) throw new Error(JSON.stringify(result.problems));
    expect(result.config.providers.q!.keys).toEqual([]);
    expect(result.warnings.map(({ message }) => message)).toContain(
      `${message}; this key is left out`,
    );
    expect(bad(`${PROVIDER}listen: "${nested}"\n`)).toMatchObject([{ path: 'listen', message }]);
  });

  test('an unset key of a provider is left out with a warning', () => {
    const result = parse('providers:\n  p: { preset: glm, keys: ["${NOPE}", "${K}"] }\n', {
      K: 'k',
    });
    if (!result.ok) throw new Error('refused');
    expect(result.config.providers.p!.keys.map((key) => key.reveal())).toEqual(['k']);
    expect(result.warnings).toMatchObject([{ path: 'providers.p.keys[0]', line: 2, column: 28 }]);
    expect(result.warnings[0]!.message).toContain('NOPE is not set');
  });

  test('a provider without any key gets a warning, unless it is on this machine', () => {
    const warnings = (text: string) => {
      const result = parse(text);
      return result.ok ? result.warnings.map(({ path }) => path) : ['refused'];
    };
    expect(warnings('providers: { p: { preset: glm, keys: "${NOPE}" } }')).toEqual([
      'providers.p.keys',
      'providers.p.keys',
    ]);
    expect(warnings('providers: { glm: {} }')).toEqual(['providers.glm']);
    expect(warnings(PROVIDER)).toEqual([]);
  });

  test.each([
    ['elsewhere', `${PROVIDER}listen: "\${NOPE}"`, 'listen'],
    [
      'among auth.keys, where leaving it out would open a door',
      `${PROVIDER}auth: { keys: ["\${NOPE}"] }`,
      'auth.keys[0]',
    ],
    ['in a file that is not there', `${PROVIDER}log: { level: "\${file:/nope/x}" }`, 'log.level'],
    ['without a name', `${PROVIDER}log: { level: "\${}" }`, 'log.level'],
  ])('an unset reference is a problem %s', (_, text, path) => {
    expect(bad(text)).toMatchObject([{ path }]);
  });

  test('an empty variable counts as unset', () => {
    expect(bad(`${PROVIDER}listen: "\${E}"`, { E: '' })).toHaveLength(1);
  });

  test('a reference without quotes inside brackets gets a message that says what to do', () => {
    expect(bad('providers: { p: { keys: [${K}] } }')[0]!.message).toContain('quotes');
  });
});

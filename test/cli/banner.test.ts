/** The banner: curl lines that a shell takes apart into requests that the configuration serves. */

import { describe, expect, test } from 'bun:test';
import { banner } from '../../src/cli/banner.ts';
import { CLIENTS } from '../../src/cli/commands/setup/clients/index.ts';
import { isServed } from '../../src/cli/served-models.ts';
import { addressOf } from '../../src/codecs/google-gemini/address.ts';
import type { Config } from '../../src/config/config.ts';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { GLM_CONFIG } from './world.ts';

function configOf(text: string): Config {
  const result = parseConfig(text, 'hopgate.yaml', environmentFrom({}, '/nonexistent'));
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

/** Runs a line in a shell in which `curl` prints its arguments. */
function argumentsOf(line: string, variables: Record<string, string> = {}): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${line}`;
  const { stdout } = Bun.spawnSync(['sh', '-c', script], { env: { PATH: '/bin', ...variables } });
  return stdout.toString().split('\0').slice(0, -1);
}

const curls = (config: Config) =>
  banner(config, 'http://127.0.0.1:5520').filter((line) => line.includes('curl '));

describe('banner', () => {
  test('says how it is called, and of a file without providers that it has none', () => {
    const config = configOf('log: { level: warn }');
    expect(banner(config, 'http://127.0.0.1:1', 'npm start --').join('\n')).toMatch(
      /\nPoint a client at it: npm start -- setup NAME, with one of\n {2}claude, codex, opencode, /,
    );
    expect(banner(config, 'http://127.0.0.1:1')[0]).toBe(
      'Providers (hopgate.yaml names no provider, and no API key or model server was found: the built-in demo model answers):',
    );
  });

  test('names every provider and where it is, but no key', () => {
    const text = banner(configOf(GLM_CONFIG), 'http://127.0.0.1:5520').join('\n');
    expect(text).toContain('glm  openai-chat  https://open.bigmodel.cn/api/paas/v4, 1 key');
    expect(text).not.toContain('abcdefgh12345678');
  });

  test('one curl line per protocol, each a request for a model that is served', () => {
    const config = configOf(GLM_CONFIG);
    const lines = curls(config);
    const paths = lines.map((line) => new URL(argumentsOf(line)[0]!).pathname);
    expect(paths).toEqual([
      '/v1/chat/completions',
      '/v1/responses',
      '/v1/messages',
      '/v1beta/models/glm-4.7:generateContent',
    ]);
    for (const line of lines) {
      const words = argumentsOf(line);
      const body = JSON.parse(words[words.indexOf('-d') + 1]!);
      const model = body.model ?? addressOf(new URL(words[0]!).pathname)!.model;
      expect(isServed(config, model, 'openai-chat')).toBe(true);
    }
  });

  test('with auth the key comes from a variable of the shell', () => {
    const config = configOf(`${GLM_CONFIG}auth: { keys: [the-client-key] }\n`);
    const line = curls(config)[0]!;
    expect(line).not.toContain('the-client-key');
    expect(argumentsOf(line, { HOPGATE_KEY: 'k1' })).toContain('authorization: Bearer k1');
  });

  test('the lines work when they are pasted in order, the key in place of its words', () => {
    const config = configOf(`${GLM_CONFIG}auth: { keys: [the-client-key] }\n`);
    const lines = banner(config, 'http://127.0.0.1:5520');
    expect(lines.join('\n')).not.toContain('the-client-key');
    const first = lines.findIndex((line) => line.includes(' export HOPGATE_KEY='));
    const pasted = lines.slice(first, first + 5).join('\n');
    for (const [text, key] of [
      [pasted, 'one of auth.keys'],
      [pasted.replace('one of auth.keys', 'k 1'), 'k 1'],
    ] as const) {
      const words = argumentsOf(text);
      expect(words.filter((word) => word === `authorization: Bearer ${key}`)).toHaveLength(4);
      expect(words.filter((word) => word.startsWith('http://'))).toHaveLength(4);
    }
    // One that the shell has already stays.
    const words = argumentsOf(pasted, { HOPGATE_KEY: 'k2' });
    expect(words.filter((word) => word === 'authorization: Bearer k2')).toHaveLength(4);
    expect(banner(configOf(GLM_CONFIG), 'http://127.0.0.1:1').join()).not.toContain('HOPGATE_KEY');
  });

  test('a quote in a model name stays one argument', () => {
    const config = configOf(
      GLM_CONFIG.replace('[glm-4.7, glm-4.6]', '["it\'s"]').replace(
        'to: [glm/glm-4.7]',
        'to: ["glm/it\'s"]',
      ),
    );
    const words = argumentsOf(curls(config)[0]!);
    expect(JSON.parse(words[words.indexOf('-d') + 1]!).model).toBe("it's");
    const gemini = argumentsOf(curls(config).at(-1)!)[0]!;
    expect(addressOf(new URL(gemini).pathname)).toMatchObject({ model: "it's" });
  });

  test('names every client that setup knows, in lines of at most 80 characters', () => {
    const lines = banner(configOf(GLM_CONFIG), 'http://127.0.0.1:5520', 'npm start --');
    const last = lines.slice(lines.findIndex((line) => line.startsWith('Point a client')));
    for (const { name } of CLIENTS) expect(last.join(' ').split(/[ ,]+/)).toContain(name);
    expect(Math.max(...last.map(({ length }) => length))).toBeLessThanOrEqual(80);
  });

  test('nothing configured: the demo, with a model that it serves', () => {
    const config = configOf('');
    expect(banner(config, 'http://127.0.0.1:1').join('\n')).toContain('demo');
    expect(argumentsOf(curls(config)[0]!).join(' ')).toContain('"model":"demo"');
  });
});

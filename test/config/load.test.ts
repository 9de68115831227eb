/** Loading a valid file: values, defaults, presets, and which file is used. */

import { afterAll, describe, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentFrom } from '../../src/config/environment.ts';
import { findConfigFile, loadConfig } from '../../src/config/load.ts';
import { env, good, PROVIDER } from './support.ts';

const CONTRACT = `listen: 127.0.0.1:5520
providers:
  glm:
    protocol: openai-chat              # openai-chat | openai-responses | anthropic-messages
    base_url: https://open.bigmodel.cn/api/paas/v4
    keys: ["\${ZHIPU_API_KEY}"]
    profile: glm                       # vendor quirks; default: none
    models: [glm-4.7]                  # ["*"] = any
routes:
  - when: { model: "claude-*" }
    to: [glm/glm-4.7]
  - to: [glm/*]
auth: { keys: [] }
samples: { mode: all, dir: ~/.hopgate/samples }
server_tools:
  web_search: { inject: declared, engines: [{ type: searxng, base_url: "http://127.0.0.1:8888" }] }
  vision: { target: glm/glm-4.5v }
limits: { tool_rounds: 8, body_bytes: 52428800 }
memory: { path: ~/.hopgate/memory.db }
`;

describe('a valid file', () => {
  test('the documented minimum gives every value that it names', () => {
    const config = good(CONTRACT, { ZHIPU_API_KEY: 'zk-1' });
    expect(config.source).toEqual({ kind: 'file', path: '/c/hopgate.yaml' });
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 5520 });
    const glm = config.providers.glm!;
    expect(glm.protocol).toBe('openai-chat');
    expect(glm.baseUrl).toBe('https://open.bigmodel.cn/api/paas/v4');
    expect(glm.keys.map((key) => key.reveal())).toEqual(['zk-1']);
    expect(glm.profile.name).toBe('glm');
    expect(glm.models).toEqual(['glm-4.7']);
    expect(config.routes).toEqual([
      { name: 'route 1', when: { model: ['claude-*'] }, to: [{ target: 'glm/glm-4.7' }] },
      { name: 'route 2', to: [{ target: 'glm/*' }] },
    ] as never);
    expect(config.samples).toMatchObject({ mode: 'all', dir: '/home/u/.hopgate/samples' });
    expect(config.serverTools.webSearch).toMatchObject({
      inject: 'declared',
      engines: [{ type: 'searxng', baseUrl: 'http://127.0.0.1:8888' }],
    });
    expect(config.serverTools.vision?.target).toBe('glm/glm-4.5v');
    expect(config.limits).toMatchObject({ toolRounds: 8, bodyBytes: 52_428_800 });
    expect(config.memory.path).toBe('/home/u/.hopgate/memory.db');
  });

  test('a provider that names no profile has none, whatever it is called', () => {
    const text = 'providers: { glm: { protocol: openai-chat, base_url: "https://x.test/v1" } }';
    expect(good(text).providers.glm!.profile).toEqual({ name: 'none' });
    expect(good(text.replace(' } }', ', profile: none } }')).providers.glm!.profile).toEqual({
      name: 'none',
    });
  });

  test('a preset by name fills in address, protocol, profile, models and key', () => {
    const { glm } = good('providers: { glm: {} }', { ZHIPU_API_KEY: 'zk' }).providers;
    expect(glm).toMatchObject({ protocol: 'openai-chat', auth: 'bearer' });
    expect(glm!.baseUrl).toBe('https://open.bigmodel.cn/api/paas/v4');
    expect(glm!.profile.name).toBe('glm');
    expect(glm!.keys[0]!.reveal()).toBe('zk');
    expect(glm!.models).toContain('glm-4.7');
  });

  test('a provider without a value is that preset too', () => {
    expect(good('providers:\n  deepseek:\n').providers.deepseek!.baseUrl).toBe(
      'https://api.deepseek.com',
    );
  });

  test("a preset's other protocol has its own address, profile and key header", () => {
    const { x } = good(
      'providers: { x: { preset: deepseek, protocol: anthropic-messages } }',
    ).providers;
    expect(x).toMatchObject({
      baseUrl: 'https://api.deepseek.com/anthropic',
      auth: 'x-api-key',
      profile: { name: 'deepseek-anthropic' },
    });
  });

  test('own values replace the preset’s, and a profile of the file replaces the built-in one', () => {
    const config = good(`
providers:
  a: { preset: glm, base_url: "http://127.0.0.1:9/v4/", models: [m], profile: mine }
profiles:
  mine: { extends: glm, images: true, models: { "m*": { documents: true } } }
  glm: { strictTools: true }
`);
    const { profile, baseUrl, models } = config.providers.a!;
    expect({ baseUrl, models }).toEqual({ baseUrl: 'http://127.0.0.1:9/v4', models: ['m'] });
    expect(profile).toMatchObject({
      name: 'mine',
      images: true,
      strictTools: true,
      reasoningParam: 'thinking',
    });
    expect(Object.keys(profile.models!)).toEqual(['m*']);
    // The file of models has rules for the built-in one.
    expect(profile.builtIn).toBe('glm');
  });

  test('a provider without timeouts and retries has those of the top level', () => {
    const config = good(`
timeouts: { idle: 7, first_byte: 1.5 }
retry: { attempts: 5 }
providers:
  a: { base_url: "http://127.0.0.1:1", protocol: openai-chat, timeouts: { idle: 9 } }
  b: { base_url: "http://127.0.0.1:1", protocol: openai-chat, retry: { attempts: 1 } }
`);
    expect(config.providers.a).toMatchObject({
      timeouts: { idleMs: 9000, firstByteMs: 1500, totalMs: 0 },
      retry: { attempts: 5 },
    });
    expect(config.providers.b).toMatchObject({
      timeouts: { idleMs: 7000 },
      retry: { attempts: 1, baseDelayMs: 500 },
    });
  });

  test('the result is deeply frozen', () => {
    const config = good(CONTRACT, { ZHIPU_API_KEY: 'zk' });
    const seen = new Set<unknown>();
    const visit = (value: unknown) => {
      if (typeof value !== 'object' || value === null || seen.has(value)) return;
      seen.add(value);
      expect(Object.isFrozen(value)).toBe(true);
      Object.values(value).forEach(visit);
    };
    visit(config);
    expect(seen.size).toBeGreaterThan(30);
  });

  test.each([
    ['5521', '127.0.0.1', 5521],
    ['"0.0.0.0:80"', '0.0.0.0', 80],
    ['":8080"', '127.0.0.1', 8080],
    ['"[::1]:0"', '::1', 0],
    ['"*:1"', '0.0.0.0', 1],
    ['localhost', 'localhost', 5520],
  ])('listen: %s', (written, host, port) => {
    expect(good(`${PROVIDER}listen: ${written}`).listen).toEqual({ host, port });
  });

  test.each(['4.10', '1e3', '0x10', '007', '12345678901234567890', 'True'])(
    'the name %s is that name, not what its number or value prints as',
    (name) => {
      const { aliases } = good(`${PROVIDER}aliases:\n  ${name}: p/m\n`);
      expect(Object.keys(aliases)).toEqual([name]);
    },
  );

  test('merge keys and anchors work', () => {
    const config = good(`
providers:
  a: &base { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1", models: [x] }
  b: { <<: *base, models: [y] }
`);
    expect(config.providers.b).toMatchObject({ baseUrl: 'http://127.0.0.1:1/v1', models: ['y'] });
  });

  test('names that every object inherits are ordinary names', () => {
    const config = good(
      `${PROVIDER}aliases: { __proto__: p/m, constructor: p/n }\nroutes: [{ when: { headers: { __proto__: [x] } }, to: [p/m] }]`,
    );
    expect(Object.entries(config.aliases)).toEqual([
      ['__proto__', 'p/m'],
      ['constructor', 'p/n'],
    ]);
    expect(Object.keys(config.routes[0]?.when?.headers ?? {})).toEqual(['__proto__']);
  });

  test('HOPGATE_HOME and RCC_TOOL_TEXT_LIMIT are honoured', () => {
    const config = good(PROVIDER, { HOPGATE_HOME: '/srv/h', RCC_TOOL_TEXT_LIMIT: '777' });
    expect(config.samples.dir).toBe('/srv/h/samples');
    expect(config.memory.path).toBe('/srv/h/memory.db');
    expect(config.limits.toolText).toBe(777);
    expect(good(PROVIDER, { RCC_TOOL_TEXT_LIMIT: 'lots' }).limits.toolText).toBe(8192);
  });
});

const folder = mkdtempSync(join(tmpdir(), 'hopgate-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('which file', () => {
  test('the option before the variable before the home; never the working directory', async () => {
    const home = join(folder, 'home');
    const dir = join(home, '.config', 'hopgate');
    mkdirSync(dir, { recursive: true });
    const own = join(dir, 'hopgate.yaml');
    const environment = environmentFrom({ HOME: home });
    expect(findConfigFile(undefined, environment)).not.toBe(own);
    writeFileSync(own, PROVIDER);
    expect(findConfigFile(undefined, environment)).toBe(own);
    const named = environmentFrom({ HOME: home, HOPGATE_CONFIG: '~/other.yaml' });
    expect(findConfigFile(undefined, named)).toBe(join(home, 'other.yaml'));
    expect(findConfigFile('/x.yaml', named)).toBe('/x.yaml');
    const xdg = environmentFrom({ HOME: '/none', XDG_CONFIG_HOME: join(home, '.config') });
    expect(findConfigFile(undefined, xdg)).toBe(own);
    const loaded = await loadConfig({ environment });
    expect(loaded).toMatchObject({ ok: true, config: { source: { kind: 'file', path: own } } });
  });

  test('a named file that does not exist is a problem', async () => {
    const loaded = await loadConfig({ path: join(folder, 'gone.yaml'), environment: env() });
    expect(loaded).toMatchObject({ ok: false, file: join(folder, 'gone.yaml') });
  });
});

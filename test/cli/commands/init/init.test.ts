/** `hopgate init`: what it writes is right by its own check, and nothing is lost by running it. */

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { configText } from '../../../../src/cli/commands/init/config-text.ts';
import { environmentFrom } from '../../../../src/config/environment.ts';
import { parseConfig } from '../../../../src/config/load.ts';
import { PRESETS } from '../../../../src/vendors/index.ts';
import { createWorld, type World } from '../../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

const standard = () => join(world.home, '.config/hopgate/hopgate.yaml');
const written = () => readFileSync(standard(), 'utf8');
const checked = async () => {
  const { code, out, err } = await world.run(['check']);
  expect(err).toBe('');
  expect(code).toBe(0);
  return out;
};

describe('--yes', () => {
  test('no keys anywhere: a file that serves the demo, and passes the check', async () => {
    const { code, out } = await world.run(['init', '--yes']);
    expect(code).toBe(0);
    expect(out).toContain(standard());
    expect(out).toContain('then hopgate serve, then');
    expect(await checked()).toContain('demo');
    expect(statSync(standard()).mode & 0o777).toBe(0o600);
  });

  test('keys of the environment are referred to, never copied', async () => {
    world.variables.ZHIPU_API_KEY = 'zhipu-secret-value';
    world.variables.ANTHROPIC_API_KEY = 'anthropic-secret-value';
    expect((await world.run(['init', '--yes'])).code).toBe(0);
    expect(written()).toContain(`\${ZHIPU_API_KEY}`);
    expect(written()).not.toContain('secret-value');
    expect(await checked()).toContain('2 providers: anthropic, glm');
    const { out } = await world.run(['models', '--explain', 'glm-4.7', '--json']);
    expect(JSON.parse(out).targets[0]).toMatchObject({ provider: 'glm', model: 'glm-4.7' });
    const any = await world.run(['models', '--explain', 'whatever', '--json']);
    expect(JSON.parse(any.out).targets[0]).toMatchObject({ provider: 'anthropic' });
  });

  test('$HOPGATE_CONFIG says where, and --config more so; what is written explains itself', async () => {
    const named = join(world.home, 'mine/gateway.yaml');
    world.variables.HOPGATE_CONFIG = named;
    const { code, out } = await world.run(['init', '--yes']);
    expect(code).toBe(0);
    expect(out).toContain(named);
    expect(existsSync(standard())).toBe(false);
    const text = readFileSync(named, 'utf8');
    expect(text).toContain('a running server applies changes by itself.');
    expect(text).toContain('# The version of the file format.');
    const other = join(world.home, 'other.yaml');
    expect((await world.run(['init', '--yes', '--config', other])).code).toBe(0);
    expect(existsSync(other)).toBe(true);
  });

  test('a file that exists stays, unless --force', async () => {
    world.write('.config/hopgate/hopgate.yaml', '# mine\n');
    const { code, err } = await world.run(['init', '--yes']);
    expect(code).toBe(1);
    expect(err).toContain('--force');
    expect(written()).toBe('# mine\n');
    expect((await world.run(['init', '--yes', '--force'])).code).toBe(0);
    expect(written()).toContain('listen: 127.0.0.1:5520');
  });

  test('a link to what is not there yet stays a link', async () => {
    const link = join(world.home, 'l.yaml');
    symlinkSync('dotfiles/hopgate.yaml', link);
    expect((await world.run(['init', '--yes', '--config', link])).code).toBe(0);
    expect(readlinkSync(link)).toBe('dotfiles/hopgate.yaml');
    expect(readFileSync(join(world.home, 'dotfiles/hopgate.yaml'), 'utf8')).toContain('listen:');
  });

  test('where nothing can be written, it says so in words and leaves nothing behind', async () => {
    const folder = join(world.home, 'folder');
    mkdirSync(folder);
    const file = world.write('plain', '');
    for (const [path, why] of [
      [folder, 'is a folder'],
      [join(file, 'x.yaml'), `'${file}'`],
    ] as const) {
      const before = readdirSync(world.home);
      const { code, err } = await world.run(['init', '--yes', '--force', '--config', path]);
      expect(code).toBe(1);
      expect(err).toContain(`${path} could not be written: `);
      expect(err).toContain(why);
      expect(readdirSync(world.home)).toEqual(before);
    }
  });

  test('--providers without their keys: says which variable to set', async () => {
    const file = join(world.home, 'own.yaml');
    const argv = ['init', '--yes', '--providers', 'deepseek,kimi', '--config', file];
    const { code, out } = await world.run(argv);
    expect(code).toBe(0);
    expect(out).toContain('deepseek has no key yet: export DEEPSEEK_API_KEY=');
    expect((await world.run(['check', '-c', file])).out).toContain('deepseek, kimi');
  });

  test('an unknown vendor: exit 2 and what was meant', async () => {
    const { code, err } = await world.run(['init', '--yes', '--providers', 'deepsek']);
    expect(code).toBe(2);
    expect(err).toContain('Did you mean "deepseek"?');
    expect(existsSync(standard())).toBe(false);
  });

  test('open to others: a key is generated and shown once', async () => {
    const { out } = await world.run(['init', '--yes', '--listen', '0.0.0.0:5520']);
    const key = /Clients send this key: (hg-[0-9a-z]{32})/.exec(out)?.[1];
    expect(key).toBeDefined();
    expect(written()).toContain(key!);
    expect(await checked()).toContain('0.0.0.0:5520');
  });

  test.each([
    ['5520', false],
    [':5520', false],
    ['[::1]:5520', false],
    ['app.localhost:5520', false],
    ['*:5520', true],
    ['127.example.com:5520', true],
    ['localhost.example.com:5520', true],
  ])('listening on %s makes up a key for clients: %p', async (listen, keyed) => {
    const { code, out } = await world.run(['init', '--yes', '--listen', listen]);
    expect(code).toBe(0);
    expect(out.includes('Clients send this key')).toBe(keyed);
  });

  test('a key that is made up cannot be foretold', async () => {
    const random = spyOn(Math, 'random').mockReturnValue(0.5);
    const keys = new Set<string | undefined>();
    for (const name of ['one.yaml', 'two.yaml']) {
      const argv = [
        'init',
        '--yes',
        '--listen',
        '0.0.0.0:5520',
        '--config',
        join(world.home, name),
      ];
      keys.add(/hg-[0-9a-z]{32}/.exec((await world.run(argv)).out)?.[0]);
    }
    random.mockRestore();
    expect(keys.size).toBe(2);
    expect(keys).not.toContain(undefined);
  });

  test('an address that is none is refused before anything is written', async () => {
    const { code, err } = await world.run(['init', '--yes', '--listen', 'not an address']);
    expect(code).toBe(1);
    expect(err).toContain('nothing was written');
    expect(existsSync(standard())).toBe(false);
  });
});

describe('a model server on this machine', () => {
  test('is written down with what it has, so that a service at boot waits for nothing', async () => {
    world.fetch = (async (url: string) => {
      if (!String(url).startsWith('http://127.0.0.1:9931/')) throw new TypeError('refused');
      return Response.json({ object: 'list', data: [{ id: 'qwen3-8b' }] });
    }) as unknown as typeof fetch;
    const file = join(world.home, 'own.yaml');
    expect((await world.run(['init', '--yes', '--config', file])).code).toBe(0);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('base_url: "http://127.0.0.1:9931/v1"');
    expect(text).toContain('qwen3-8b');
    const { code, out } = await world.run(['check', '--config', file]);
    expect([code, out]).toEqual([0, expect.stringContaining('llamacpp-9931')]);
    const asked = ['models', '--explain', 'claude-sonnet-4-5', '--config', file];
    expect((await world.run(asked)).out).toContain('llamacpp-9931/qwen3-8b');
  });
});

describe('questions', () => {
  test('Enter to all of them takes what was found', async () => {
    world.variables.DEEPSEEK_API_KEY = 'x';
    const { code, err } = await world.run(['init'], '\n'.repeat(10));
    expect(code).toBe(0);
    expect(err).toContain(`found a key for deepseek in \${DEEPSEEK_API_KEY}`);
    expect(await checked()).toContain('1 provider: deepseek');
  });

  test('answers are used: place, vendors, key, own server, auth, categories', async () => {
    const file = join(world.home, 'else/where.yaml');
    const input = [
      '~/else/where.yaml',
      'glmm', // a typing error is asked again
      'glm',
      'my-glm-key',
      'y', // a server of one's own
      'box',
      'openai-chat',
      'http://10.0.0.5:8000/v1',
      '',
      'qwen-local',
      'n',
      '127.0.0.1:6000',
      'y', // auth
      'glm/glm-4.6',
      'y', // categories
      'glm/glm-4.5v',
      '',
      '',
      'box/qwen-local',
      '',
      '',
    ].join('\n');
    const { code, out, err } = await world.run(['init'], input);
    expect(err).toContain('Did you mean "glm"?');
    expect(err).toContain('Send some kinds of request (code, long prompts, images …) to models');
    expect(code).toBe(0);
    expect(out).toContain(file);
    // No command looks there by itself.
    expect(out).toContain(`then hopgate serve --config ${file}, then`);
    const models = await world.run([
      'models',
      '-c',
      file,
      '--explain',
      'claude-haiku-4-5',
      '--json',
    ]);
    expect(JSON.parse(models.out).targets[0]).toMatchObject({
      provider: 'box',
      model: 'qwen-local',
    });
    const fallback = await world.run(['models', '-c', file, '--explain', 'anything', '--json']);
    expect(JSON.parse(fallback.out).targets[0]).toMatchObject({ model: 'glm-4.6' });
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('my-glm-key');
    expect(text).toContain('listen: 127.0.0.1:6000');
    expect(text).toMatch(/keys: \["hg-/);
  });

  test('the end of input cancels, and nothing is written', async () => {
    const { code, out } = await world.run(['init'], '');
    expect(code).toBe(1);
    expect(out).toContain('Cancelled');
    expect(existsSync(standard())).toBe(false);
  });

  test('no terminal to ask on: says so instead of waiting', async () => {
    const { code, err } = await world.run(['init']);
    expect(code).toBe(1);
    expect(err).toContain('--yes');
  });
});

test('every vendor known here gives a file that passes the check', () => {
  const environment = environmentFrom({}, '/nonexistent');
  for (const [name, { endpoints }] of Object.entries(PRESETS)) {
    if (Object.keys(endpoints).length === 0) continue;
    const text = configText({
      listen: '127.0.0.1:5520',
      providers: [{ name, preset: name }],
      fallback: `${name}/some-model`,
      categories: { thinking: `${name}/other` },
    });
    const result = parseConfig(text, 'x.yaml', environment);
    expect(result.ok ? [] : [name, ...result.problems]).toEqual([]);
  }
});

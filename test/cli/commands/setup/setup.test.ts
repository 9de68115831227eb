/** `hopgate setup`: merges, shows, asks, repeats without harm, and goes back byte for byte. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { createWorld, GLM_CONFIG, type World } from '../../world.ts';

let world: World;
let config: string;
beforeEach(() => {
  world = createWorld();
  config = world.write('.config/hopgate/hopgate.yaml', GLM_CONFIG);
});
afterEach(() => world.remove());

const read = (path: string) => readFileSync(join(world.home, path), 'utf8');
const json = (path: string) => JSON.parse(read(path));
const setup = (words: string, input?: string) => world.run(['setup', ...words.split(' ')], input);

const CLAUDE = '.claude/settings.json';
const CODEX = '.codex/config.toml';
const OPENCODE = '.config/opencode/opencode.json';
const GEMINI = '.gemini/.env';
const GEMINI_SETTINGS = '.gemini/settings.json';
const QWEN = '.qwen/settings.json';
const CLINE = '.cline/data/settings/providers.json';
const AIDER = '.aider.conf.yml';
const AIDER_MODELS = '.aider.model.metadata.json';
const ZED = '.config/zed/settings.json';
const CONTINUE = '.continue/config.yaml';
const COPILOT = '.copilot/hopgate.sh';
const KIMI = '.kimi-code/config.toml';
const GROK = '.grok/config.toml';
const PI = '.pi/agent/models.json';
const PI_SETTINGS = '.pi/agent/settings.json';
const KILO = '.config/kilo/kilo.json';
const LIBRARY = '.config/Claude-3p/configLibrary';
const DESKTOP = `${LIBRARY}/f0b6c5a2-6a0e-4f57-9d0b-5a3f1c7e5520.json`;

/** The file that setup writes where there is none, and a text in it that cannot be read. */
const MAIN: Readonly<Record<string, readonly [file: string, broken: string]>> = {
  claude: [CLAUDE, '{"env": {\n'],
  codex: [CODEX, 'model = \n'],
  opencode: [OPENCODE, '{"env": {\n'],
  gemini: [GEMINI, '# >>> hopgate setup: cut off\nA=1\n'],
  qwen: [QWEN, '{"env": {\n'],
  cline: [CLINE, '[]'],
  aider: [AIDER, 'model: [\n'],
  zed: [ZED, '{"agent": 1 2}'],
  continue: [CONTINUE, 'models: {a: b\n'],
  copilot: [COPILOT, '# >>> hopgate setup: cut off\nA=1\n'],
  kimi: [KIMI, 'default_model = \n'],
  grok: [GROK, '[models\n'],
  pi: [PI, '{"providers": {\n'],
  kilo: [KILO, '{"provider": {\n'],
  'claude-desktop': [DESKTOP, '[]'],
};

/** What users have: odd layout, comments, keys of their own. */
const USERS: Readonly<Record<string, readonly (readonly [file: string, text: string])[]>> = {
  claude: [
    [CLAUDE, '{\n    "permissions": {"allow": ["Bash(ls:*)"]},\n    "model": "opus"\n}'],
    [CLAUDE, '{"env":{"FOO":"1","ANTHROPIC_BASE_URL":"https://other"},"hooks":{}}\n\n'],
    [CLAUDE, '{}'],
    [CLAUDE, ''],
    [CLAUDE, '\uFEFF{\r\n\t"env": {}\r\n}\r\n'],
  ],
  codex: [
    [CODEX, 'model = "gpt-5"\napproval_policy = "never"\n\n[mcp_servers.a]\ncommand = "x"'],
    [CODEX, '# mine\r\n[tui]\r\nmodel = "x"\r\n'],
    [CODEX, ''],
  ],
  opencode: [
    [OPENCODE, '{"$schema":"https://opencode.ai/config.json","provider":{"x":{"npm":"y"}}}'],
    [
      '.config/opencode/opencode.jsonc',
      '{\n  // my model\n  "model": "x/y", /* two */\n  "permission": {"*": "ask",},\n}\n',
    ],
  ],
  gemini: [
    [GEMINI, 'GEMINI_API_KEY=AIza-mine\nOTHER=1'],
    [GEMINI, '# mine\r\nexport GOOGLE_GEMINI_BASE_URL="https://x"\r\n'],
    [GEMINI, '\uFEFFA=1\n\n\n'],
    [GEMINI, ''],
    [
      GEMINI_SETTINGS,
      '{\n  // mine\n  "security": {"auth": {"selectedType": "oauth-personal"}},\n}',
    ],
  ],
  qwen: [
    [QWEN, '{"$version":4,"modelProviders":{"openai":[{"id":"x"}]},"model":{"name":"x"}}'],
    [QWEN, '\uFEFF{\r\n\t"env": {"A": "1",},\r\n}'],
  ],
  cline: [
    [CLINE, '{"version":1,"lastUsedProvider":"cline","modes":{},"providers":{"cline":{}}}'],
    [CLINE, '{"version":1,"providers":{"openai-compatible":{"settings":{"apiKey":"k"}}}}\n'],
  ],
  aider: [
    [AIDER, '# mine\nmodel: sonnet # fast\nread: [a.md,\n  b.md]\ndark-mode: true'],
    [AIDER, '\uFEFFopenai-api-key: >-\r\n  folded\r\n  key\r\nauto-commits: false\r\n'],
    [AIDER, '---\n"model": x\n\n# the end'],
    [AIDER, '# nothing but words\n'],
    [AIDER_MODELS, '{"openai/x": {"max_tokens": 1}}'],
  ],
  zed: [
    [
      ZED,
      '// Zed settings\n{\n  "theme": "One Dark", // dark\n  "agent": {\n    "version": "2",\n  },\n}',
    ],
    [ZED, '{"agent": {"default_model": {"provider": "zed.dev", "model": "x"}}}'],
  ],
  continue: [
    [CONTINUE, 'name: a\nversion: 1.0.0\nschema: v1\nmodels:\n- name: x # mine\n  model: y'],
    [
      CONTINUE,
      'name: a\r\nmodels:\r\n  - name: x\r\n    prompt: |\r\n      two\r\n      lines\r\n\r\n# rules\r\nrules: []\r\n',
    ],
    [CONTINUE, '\uFEFFname: a\nmodels: [] # none\nrules:\n  - be kind\n'],
    [CONTINUE, 'models:\nname: a'],
    [CONTINUE, 'models:\n  -\n    name: A\n    model: m\nname: a\n'],
    [CONTINUE, 'models:\n  - &a-b\n    name: A\n    model: m\n  - *a-b\n'],
    [CONTINUE, 'models:\n-\n  # mine\n\n  name: A\n  model: m\n'],
  ],
  copilot: [
    [COPILOT, "export COPILOT_MODEL='mine'\n"],
    ['.profile', '# mine\nexport COPILOT_MODEL=gpt-5.4'],
    ['.profile', ''],
  ],
  kimi: [
    [KIMI, 'default_model = "kimi-code/k3" # mine\n[thinking]\nenabled = true\n'],
    [KIMI, '[providers.hopgate]\ntype = "kimi"\n\n[models."hopgate/old"]\nmodel = "old"\n'],
    ['.kimi/config.toml', 'default_thinking = false\n'],
  ],
  grok: [
    [GROK, '[models]\ndefault = "grok-4.5"\nmax_retries = 8\n[features]\ntelemetry = false'],
    [GROK, '\uFEFF# mine\r\n[ui]\r\nscreen_mode = "minimal"\r\n'],
  ],
  pi: [
    [PI, '{"providers": {"ollama": {"baseUrl": "http://localhost:11434/v1", "models": []}}}'],
    [PI_SETTINGS, '{\n  "defaultProvider": "anthropic",\n  "theme": "dark"\n}'],
  ],
  kilo: [
    [KILO, '{"$schema":"https://app.kilo.ai/config.json","model":"kilo/x"}'],
    ['.config/kilo/kilo.jsonc', '{\n  // mine\n  "permission": {"*": "ask",},\n}\n'],
  ],
  'claude-desktop': [
    ['.config/Claude/claude_desktop_config.json', '{"mcpServers":{"a":{"command":"x"}}}'],
    [`${LIBRARY}/_meta.json`, '{\n  "appliedId": "a",\n  "entries": [{"id": "a", "name": "A"}]\n}'],
  ],
};

for (const [client, cases] of Object.entries(USERS)) {
  const [missing, broken] = MAIN[client]!;

  describe(client, () => {
    // Claude Desktop asks only for names that begin with claude-.
    beforeEach(() =>
      world.write(
        '.config/hopgate/hopgate.yaml',
        `${GLM_CONFIG}model_list: { claude_aliases: true }\n`,
      ),
    );

    test('no file before: written for its owner alone, and gone after --revert', async () => {
      expect((await setup(`${client} --yes`)).code).toBe(0);
      expect(statSync(join(world.home, missing)).mode & 0o777).toBe(0o600);
      expect((await setup(`${client} --revert --yes`)).code).toBe(0);
      expect(existsSync(join(world.home, missing))).toBe(false);
    });

    for (const [i, [file, text]] of cases.entries()) {
      test(`file ${i + 1}: everything else stays; --revert is byte-exact`, async () => {
        world.write(file, text);
        const { code, out } = await setup(`${client} --yes`);
        expect(code).toBe(0);
        expect(out).toContain(join(world.home, file));
        expect(read(file)).not.toBe(text);
        const { code: back, out: words } = await setup(`${client} --revert --yes`);
        expect(back).toBe(0);
        expect(words).toContain('byte for byte');
        expect(read(file)).toBe(text);
      });

      test(`file ${i + 1}: a second time changes nothing, another model can be chosen`, async () => {
        world.write(file, text);
        await setup(`${client} --yes --model glm-4.7`);
        const once = read(file);
        expect((await setup(`${client} --yes --model glm-4.7`)).out).toContain('set up already');
        expect(read(file)).toBe(once);
        await setup(`${client} --yes --model glm-4.6`);
        const main = existsSync(join(world.home, missing)) ? read(missing) : '';
        expect(read(file) + main).toContain('glm-4.6');
        await setup(`${client} --revert --yes`);
        expect(read(file)).toBe(text);
      });
    }

    test('--show, --dry-run, a "no" and no terminal write nothing', async () => {
      for (const words of ['--show', '--dry-run', '--show --json']) {
        const { code, out } = await setup(`${client} ${words}`);
        expect(code).toBe(0);
        expect(out).toContain('127.0.0.1:5520');
      }
      expect((await setup(client, 'n\n')).code).toBe(1);
      expect((await setup(client, '')).err).toContain('Cancelled');
      expect((await setup(client)).err).toContain('--yes');
      expect(existsSync(join(world.home, missing))).toBe(false);
      expect(existsSync(join(world.home, '.hopgate'))).toBe(false);
    });

    test('Enter, "y" and "yes" agree', async () => {
      for (const answer of ['\n', 'y\n', 'what?\nyes\n']) {
        expect((await setup(client, answer)).code).toBe(0);
        expect(existsSync(join(world.home, missing))).toBe(true);
        expect((await setup(`${client} --revert`, answer)).code).toBe(0);
        expect(existsSync(join(world.home, missing))).toBe(false);
      }
    });

    test('--revert without a setup leaves everything as it is', async () => {
      const [file, text] = cases[0]!;
      world.write(file, text);
      expect((await setup(`${client} --revert --yes`)).code).toBe(0);
      expect(read(file)).toBe(text);
    });

    test('a file that cannot be read is left alone, with the reason', async () => {
      world.write(missing, broken);
      const { code, err } = await setup(`${client} --yes`);
      expect(code).toBe(1);
      expect(err).toContain('was left as it is');
      expect(read(missing)).toBe(broken);
    });

    test('a link to what is not there yet stays a link, and leads nowhere again after --revert', async () => {
      const link = join(world.home, missing);
      world.write(missing.replace(/[^/]+$/, 'other'), '');
      // The link's own folder is reached through a link, and its target is named from there.
      const folder = join(link, '..');
      const real = join(world.home, 'deep/er/dotfiles');
      mkdirSync(real, { recursive: true });
      symlinkSync(real, join(folder, 'through'));
      symlinkSync('../file', join(real, 'second'));
      symlinkSync('through/second', link);
      expect((await setup(`${client} --yes`)).code).toBe(0);
      expect(readlinkSync(link)).toBe('through/second');
      expect(readFileSync(join(world.home, 'deep/er/file'), 'utf8')).toContain('hopgate');
      expect(readFileSync(link, 'utf8')).toContain('hopgate');
      expect((await setup(`${client} --revert --yes`)).code).toBe(0);
      expect(readlinkSync(link)).toBe('through/second');
      expect(existsSync(join(world.home, 'deep/er/file'))).toBe(false);
    });

    test('a link to itself is refused in words, and stays', async () => {
      const link = join(world.home, missing);
      world.write(missing.replace(/[^/]+$/, 'other'), '');
      symlinkSync(link, link);
      const { code, err } = await setup(`${client} --yes`);
      expect(code).toBe(1);
      expect(err).toContain('was left as it is');
      expect(err).toContain('leads in a circle');
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
    });

    test('a link stays a link, permissions stay', async () => {
      const [, text] = cases[0]!;
      const real = world.write('dotfiles/file', text);
      chmodSync(real, 0o640);
      world.write(missing.replace(/[^/]+$/, 'other'), '');
      symlinkSync(real, join(world.home, missing));
      await setup(`${client} --yes`);
      expect(readFileSync(real, 'utf8')).not.toBe(text);
      expect(statSync(real).mode & 0o777).toBe(0o640);
      await setup(`${client} --revert --yes`);
      expect(readFileSync(real, 'utf8')).toBe(text);
    });
  });
}

describe('edited since', () => {
  test('claude: our members go, old values come back, later changes stay', async () => {
    world.write(CLAUDE, '{\n  "env": {\n    "ANTHROPIC_BASE_URL": "https://mine"\n  }\n}\n');
    await setup('claude --yes --model glm-4.7');
    const edited = json(CLAUDE);
    edited.env.EXTRA = '1';
    edited.env.ANTHROPIC_MODEL = 'chosen-by-hand';
    world.write(CLAUDE, JSON.stringify(edited));
    const { out } = await setup('claude --revert --yes');
    expect(out).toContain('later changes stay');
    expect(json(CLAUDE)).toEqual({
      env: { ANTHROPIC_BASE_URL: 'https://mine', ANTHROPIC_MODEL: 'chosen-by-hand', EXTRA: '1' },
    });
  });

  test('claude: set up again after an edit, then reverted, keeps the edit', async () => {
    await setup('claude --yes --model glm-4.7');
    world.write(CLAUDE, JSON.stringify({ ...json(CLAUDE), model: 'opus' }));
    await setup('claude --yes --model glm-4.6');
    await setup('claude --revert --yes');
    expect(json(CLAUDE)).toEqual({ model: 'opus' });
  });

  test('codex: the blocks go, lines that made way come back', async () => {
    world.write(CODEX, 'model = "gpt-5"\n[tui]\nx = 1\n');
    await setup('codex --yes');
    world.write(CODEX, `${read(CODEX)}[later]\ny = 2\n`);
    await setup('codex --revert --yes');
    expect(read(CODEX)).toBe('model = "gpt-5"\n[tui]\nx = 1\n[later]\ny = 2\n');
  });

  test('a file that was removed: nothing to take back', async () => {
    await setup('claude --yes');
    Bun.spawnSync(['rm', join(world.home, CLAUDE)]);
    expect((await setup('claude --revert --yes')).out).toContain('is gone');
    expect(existsSync(join(world.home, CLAUDE))).toBe(false);
  });
});

describe('what is written', () => {
  test('claude: routes take claude-*, so no model is named', async () => {
    await setup('claude --yes');
    expect(json(CLAUDE)).toEqual({
      env: {
        ANTHROPIC_BASE_URL: 'http://127.0.0.1:5520',
        ANTHROPIC_AUTH_TOKEN: 'hopgate',
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: '204800',
        CLAUDE_CODE_AUTO_COMPACT_WINDOW: '204800',
      },
      disableAutoMode: 'disable',
    });
  });

  test('claude: auto mode stays where Claude answers at a vendor that speaks Messages', async () => {
    const at = (provider: object) =>
      world.write('.config/hopgate/hopgate.yaml', JSON.stringify({ providers: { a: provider } }));
    const models = ['claude-sonnet-4-5'];
    for (const [provider, off] of [
      [{ preset: 'anthropic', keys: ['sk-ant-1234567890'] }, undefined],
      [{ protocol: 'anthropic-messages', base_url: 'https://relay.example', models }, undefined],
      [{ protocol: 'openai-chat', base_url: 'https://relay.example/v1', models }, 'disable'],
    ] as const) {
      at(provider);
      expect((await setup('claude --yes --model claude-sonnet-4-5')).code).toBe(0);
      expect(json(CLAUDE).disableAutoMode).toBe(off);
      await setup('claude --revert --yes');
    }
  });

  test('claude: a window that is not known, a key beside the token, and no gateway: all are said', async () => {
    world.write(
      '.config/hopgate/hopgate.yaml',
      GLM_CONFIG.replaceAll('glm-4.7', 'a-model-of-their-own'),
    );
    world.write('.claude/settings.json', '{"env": {"ANTHROPIC_API_KEY": "sk-ant-old"}}');
    const { err } = await setup('claude --yes');
    expect(err).toContain('"a-model-of-their-own", which answers, is not known here');
    expect(err).toContain('holds an ANTHROPIC_API_KEY as well');
    expect(err).not.toContain('sk-ant-old');
    expect(err).toContain('No gateway answers at http://127.0.0.1:5520 yet');
    expect(json(CLAUDE).env.CLAUDE_CODE_MAX_CONTEXT_TOKENS).toBeUndefined();
  });

  test('opencode: a model that a route and a target name is there once', async () => {
    const both = GLM_CONFIG.replace('models: [glm-4.7, glm-4.6]', 'models: ["*"]').replace(
      'model: "claude-*"',
      'model: glm-4.7',
    );
    world.write('.config/hopgate/hopgate.yaml', both);
    await setup('opencode --yes');
    expect(Object.keys(json(OPENCODE).provider.hopgate.models)).toEqual(['glm-4.7']);
  });

  test('claude: a model by name is used for everything, with its window', async () => {
    await setup('claude --yes --model glm-4.7 --small-model glm-4.6');
    expect(json(CLAUDE).env).toMatchObject({
      ANTHROPIC_MODEL: 'glm-4.7',
      ANTHROPIC_DEFAULT_SONNET_MODEL: 'glm-4.7',
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'glm-4.6',
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: '204800',
      CLAUDE_CODE_AUTO_COMPACT_WINDOW: '204800',
    });
  });

  // The window of 1M is the one that Claude Code assumes itself for models with 1M.
  for (const tokens of [131_072, 200_000, 204_800, 262_144, 1_000_000]) {
    test(`claude: another model with a window of ${tokens} answers, and is compacted at it`, async () => {
      for (const model of ['', ' --model glm-4.7']) {
        await setup(`claude --yes --context ${tokens}${model}`);
        expect(json(CLAUDE).env).toMatchObject({
          CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(tokens),
          CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(tokens),
        });
      }
    });
  }

  test('claude: a window below the least that it compacts at holds for a model by name, and is told otherwise', async () => {
    const { err } = await setup('claude --yes --context 50000');
    expect(json(CLAUDE).env.CLAUDE_CODE_AUTO_COMPACT_WINDOW).toBe('100000');
    expect(err).toContain('"glm-4.7" has only 50000');
    const named = await setup('claude --yes --context 50000 --model glm-4.7');
    expect(json(CLAUDE).env.CLAUDE_CODE_MAX_CONTEXT_TOKENS).toBe('50000');
    expect(json(CLAUDE).env.CLAUDE_CODE_AUTO_COMPACT_WINDOW).toBeUndefined();
    expect(named.err).not.toContain('at the earliest');
  });

  test('gemini: what an untrusted folder hides is said', async () => {
    const { err } = await setup('gemini --yes');
    expect(err).toContain('GEMINI_CLI_TRUST_WORKSPACE');
  });

  test('claude: a window smaller than the one it assumes is reported', async () => {
    world.write('.config/hopgate/hopgate.yaml', GLM_CONFIG.replaceAll('glm-4.7', 'glm-4.5'));
    await setup('claude --yes');
    expect(json(CLAUDE).env.CLAUDE_CODE_AUTO_COMPACT_WINDOW).toBe('131072');
  });

  test('claude: a provider that would be asked for claude-… by its wildcard is not trusted to have it', async () => {
    const wild = GLM_CONFIG.replace('[glm-4.7, glm-4.6]', '["*"]').replace(/routes:[\s\S]*$/, '');
    world.write('.config/hopgate/hopgate.yaml', wild);
    const { code, err } = await setup('claude --yes');
    expect(code).toBe(2);
    expect(err).toContain('--model NAME');
    expect((await setup('claude --yes --model glm-9 --context 50000')).code).toBe(0);
    expect(json(CLAUDE).env.CLAUDE_CODE_MAX_CONTEXT_TOKENS).toBe('50000');
  });

  test('codex: a responses provider, and a key variable only where a key is needed', async () => {
    await setup('codex --yes');
    expect(Bun.TOML.parse(read(CODEX))).toEqual({
      model: 'glm-4.7',
      model_provider: 'hopgate',
      model_context_window: 204_800,
      model_providers: {
        hopgate: { name: 'hopgate', base_url: 'http://127.0.0.1:5520/v1', wire_api: 'responses' },
      },
    });
    world.write('.config/hopgate/hopgate.yaml', `${GLM_CONFIG}auth: { keys: [a-secret-key] }\n`);
    const { err } = await setup('codex --yes');
    expect(err).toContain('export HOPGATE_API_KEY');
    expect(read(CODEX)).toContain('env_key = "HOPGATE_API_KEY"');
    expect(read(CODEX)).not.toContain('a-secret-key');
  });

  test('opencode: a provider with all models; an own default model stays unless one is named', async () => {
    world.write(OPENCODE, '{"model": "x/y"}');
    await setup('opencode --yes --protocol anthropic-messages');
    expect(json(OPENCODE)).toEqual({
      model: 'x/y',
      provider: {
        hopgate: {
          npm: '@ai-sdk/anthropic',
          name: 'hopgate',
          options: { baseURL: 'http://127.0.0.1:5520/v1', apiKey: 'hopgate' },
          models: {
            'glm-4.7': { name: 'glm-4.7', limit: { context: 204_800, output: 131_072 } },
            'glm-4.6': { name: 'glm-4.6', limit: { context: 204_800, output: 131_072 } },
          },
        },
      },
    });
    await setup('opencode --yes --model glm-4.6');
    expect(json(OPENCODE).model).toBe('hopgate/glm-4.6');
  });

  test('gemini: the address and the model, and a way to sign in that reads the key', async () => {
    world.write(GEMINI_SETTINGS, '{"security": {"auth": {"selectedType": "oauth-personal"}}}');
    await setup('gemini --yes');
    expect(read(GEMINI).split('\n').slice(1, 4)).toEqual([
      'GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:5520"',
      'GEMINI_API_KEY="hopgate"',
      'GEMINI_MODEL="glm-4.7"',
    ]);
    // A window of 204,800 in shares of the one that Gemini CLI takes for granted.
    expect(json(GEMINI_SETTINGS)).toEqual({
      security: { auth: { selectedType: 'gemini-api-key' } },
      model: { compressionThreshold: 0.1367 },
    });
    const { err } = await setup('gemini --yes --url http://gate.example.com');
    expect(err).toContain('refuses http:');
  });

  test('qwen: a provider of its own beside those of the user', async () => {
    world.write(QWEN, '{"modelProviders": {"openai": [{"id": "mine"}]}}');
    await setup('qwen --yes --model glm-4.6');
    const { modelProviders, model, env } = json(QWEN);
    expect(modelProviders.openai).toEqual([{ id: 'mine' }]);
    expect(modelProviders.hopgate[0]).toEqual({
      id: 'glm-4.6',
      name: 'hopgate: glm-4.6',
      baseUrl: 'http://127.0.0.1:5520/v1',
      envKey: 'HOPGATE_API_KEY',
      generationConfig: { contextWindowSize: 204_800 },
    });
    expect([model.name, env.HOPGATE_API_KEY]).toEqual(['glm-4.6', 'hopgate']);
  });

  test('cline: the provider for addresses of the OpenAI kind, with its window', async () => {
    await setup('cline --yes --context 50000');
    expect(json(CLINE).providers['openai-compatible'].settings).toEqual({
      provider: 'openai-compatible',
      apiKey: 'hopgate',
      model: 'glm-4.7',
      baseUrl: 'http://127.0.0.1:5520/v1',
      contextWindow: 50_000,
      maxTokens: 131_072,
    });
  });

  test('aider: the model, and the windows of all models', async () => {
    await setup('aider --yes --small-model glm-4.6');
    expect(Bun.YAML.parse(read(AIDER))).toEqual({
      model: 'openai/glm-4.7',
      'weak-model': 'openai/glm-4.6',
      'openai-api-base': 'http://127.0.0.1:5520/v1',
      'openai-api-key': 'hopgate',
    });
    expect(json(AIDER_MODELS)['openai/glm-4.6'].max_input_tokens).toBe(204_800);
  });

  test('aider: no window is known, so there is no file of windows', async () => {
    world.write('.config/hopgate/hopgate.yaml', GLM_CONFIG.replaceAll(/glm-4\.[67]/g, 'own-model'));
    expect((await setup('aider --yes')).code).toBe(0);
    expect(existsSync(join(world.home, AIDER_MODELS))).toBe(false);
  });

  test('zed: a provider with all models; an own default model stays unless one is named', async () => {
    world.write(ZED, '{"agent": {"default_model": {"provider": "zed.dev", "model": "x"}}}');
    const { err } = await setup('zed --yes');
    expect(err).toContain('HOPGATE_API_KEY');
    expect(json(ZED).agent.default_model.model).toBe('x');
    const { hopgate } = json(ZED).language_models.openai_compatible;
    expect(hopgate.available_models[0]).toEqual({
      name: 'glm-4.7',
      max_tokens: 204_800,
      max_output_tokens: 131_072,
      capabilities: {
        tools: true,
        images: false,
        parallel_tool_calls: true,
        prompt_cache_key: false,
      },
    });
    await setup('zed --yes --model glm-4.6');
    expect(json(ZED).agent.default_model).toEqual({ provider: 'hopgate', model: 'glm-4.6' });
  });

  test('continue: its older configuration would be hidden, so nothing is written', async () => {
    world.write('.continue/config.json', '{}');
    const { code, err } = await setup('continue --yes');
    expect([code, err.includes('let Continue convert it first')]).toEqual([1, true]);
    expect(existsSync(join(world.home, CONTINUE))).toBe(false);
  });

  test('copilot: variables in a file of their own, read by the profile of the shell', async () => {
    world.variables.SHELL = '/usr/bin/zsh';
    await setup("copilot --yes --key a'b");
    const shown = Bun.spawnSync(['sh', '-c', '. "$HOME/.zshrc"; env'], {
      env: { HOME: world.home, PATH: process.env.PATH },
    });
    const lines = shown.stdout.toString().split('\n');
    expect(lines.filter((line) => line.startsWith('COPILOT_')).sort()).toEqual([
      'COPILOT_MODEL=glm-4.7',
      "COPILOT_PROVIDER_API_KEY=a'b",
      'COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:5520/v1',
      'COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=51200',
      'COPILOT_PROVIDER_MAX_PROMPT_TOKENS=153600',
      'COPILOT_PROVIDER_TYPE=openai',
      'COPILOT_PROVIDER_WIRE_API=responses',
    ]);
    await setup('copilot --yes --protocol anthropic-messages');
    expect(read(COPILOT)).toContain("export COPILOT_PROVIDER_BASE_URL='http://127.0.0.1:5520'\n");
    expect(read(COPILOT)).toContain("export COPILOT_PROVIDER_TYPE='anthropic'");
  });

  test('kimi: a provider, its models with the window that they need, and the default', async () => {
    await setup('kimi --yes --model glm-4.6');
    expect(Bun.TOML.parse(read(KIMI))).toEqual({
      default_model: 'hopgate/glm-4.6',
      providers: {
        hopgate: {
          type: 'openai_responses',
          base_url: 'http://127.0.0.1:5520/v1',
          api_key: 'hopgate',
        },
      },
      models: Object.fromEntries(
        ['glm-4.6', 'glm-4.7'].map((model) => [
          `hopgate/${model}`,
          { provider: 'hopgate', model, max_context_size: 204_800 },
        ]),
      ),
    });
  });

  test('kimi: the older Kimi CLI is set up where only that one has a file', async () => {
    world.write('.kimi/config.toml', '');
    await setup('kimi --yes');
    expect(read('.kimi/config.toml')).toContain('hopgate/glm-4.7');
    expect(existsSync(join(world.home, KIMI))).toBe(false);
  });

  test('grok: models of its own, and the default in the table of the user', async () => {
    world.write(GROK, '[models]\ndefault = "grok-4.5"\nmax_retries = 8\n');
    await setup('grok --yes --protocol anthropic-messages');
    const { models, model } = Bun.TOML.parse(read(GROK)) as Record<string, object>;
    expect(models).toEqual({ default: 'hopgate/glm-4.7', max_retries: 8 });
    expect(model).toMatchObject({
      'hopgate/glm-4.6': {
        model: 'glm-4.6',
        base_url: 'http://127.0.0.1:5520/v1',
        api_key: 'hopgate',
        api_backend: 'messages',
        context_window: 204_800,
      },
    });
  });

  test('pi: a provider beside the others, and the default', async () => {
    world.write(PI, '{"providers": {"ollama": {}}}');
    await setup('pi --yes');
    const { providers } = json(PI);
    expect(Object.keys(providers)).toEqual(['ollama', 'hopgate']);
    expect(providers.hopgate).toMatchObject({
      baseUrl: 'http://127.0.0.1:5520/v1',
      api: 'openai-responses',
      apiKey: 'hopgate',
      models: [{ id: 'glm-4.7', contextWindow: 204_800, reasoning: true }, { id: 'glm-4.6' }],
    });
    expect(json(PI_SETTINGS)).toEqual({ defaultProvider: 'hopgate', defaultModel: 'glm-4.7' });
    await setup('pi --yes --protocol anthropic-messages');
    expect(json(PI).providers.hopgate.baseUrl).toBe('http://127.0.0.1:5520');
  });

  test('kilo: as opencode, in its own file', async () => {
    await setup('kilo --yes');
    expect(json(KILO)).toMatchObject({
      $schema: 'https://app.kilo.ai/config.json',
      model: 'hopgate/glm-4.7',
      provider: { hopgate: { npm: '@ai-sdk/openai-compatible' } },
    });
  });

  test('claude-desktop: a profile, chosen, and the third-party mode', async () => {
    await setup('claude-desktop --yes');
    expect(json(DESKTOP)).toEqual({
      inferenceProvider: 'gateway',
      inferenceGatewayBaseUrl: 'http://127.0.0.1:5520',
      inferenceGatewayApiKey: 'hopgate',
      inferenceGatewayAuthScheme: 'bearer',
      modelDiscoveryEnabled: false,
      inferenceModels: ['opus', 'sonnet', 'haiku'].map((tier) => ({
        name: `claude-${tier}-5-5`,
        labelOverride: 'hopgate: glm-4.7',
        anthropicFamilyTier: tier,
        isFamilyDefault: true,
      })),
    });
    const id = DESKTOP.split('/').at(-1)!.replace('.json', '');
    expect(json(`${LIBRARY}/_meta.json`)).toEqual({
      entries: [{ id, name: 'hopgate' }],
      appliedId: id,
    });
    for (const folder of ['Claude', 'Claude-3p']) {
      expect(json(`.config/${folder}/claude_desktop_config.json`)).toEqual({
        deploymentMode: '3p',
      });
    }
  });

  test('claude-desktop: an entry that came later stays, ours goes', async () => {
    await setup('claude-desktop --yes');
    const meta = json(`${LIBRARY}/_meta.json`);
    meta.entries.push({ id: 'b', name: 'B' });
    world.write(`${LIBRARY}/_meta.json`, JSON.stringify(meta));
    await setup('claude-desktop --revert --yes');
    expect(json(`${LIBRARY}/_meta.json`)).toEqual({ entries: [{ id: 'b', name: 'B' }] });
  });

  test('claude-desktop: addresses and names that it refuses are refused here, with a way out', async () => {
    const elsewhere = await setup('claude-desktop --yes --url http://gate.example.com');
    expect([elsewhere.code, elsewhere.err]).toEqual([1, expect.stringContaining('only https:')]);
    const other = await setup('claude-desktop --yes --model glm-4.6');
    expect([other.code, other.err]).toEqual([1, expect.stringContaining('claude_aliases')]);
    world.write(
      '.config/hopgate/hopgate.yaml',
      `${GLM_CONFIG}model_list: { claude_aliases: true }\n`,
    );
    await setup('claude-desktop --yes --model glm-4.6 --url https://gate.example.com');
    expect(json(DESKTOP).inferenceModels[0].name).toBe('claude-glm/glm-4.6');
    expect(existsSync(join(world.home, `${LIBRARY}/_meta.json`))).toBe(true);
  });

  test('cursor: the steps are told, and nothing is written', async () => {
    for (const words of ['', ' --yes', ' --show', ' --show --json']) {
      const { code, out } = await setup(`cursor${words}`);
      expect(code).toBe(0);
      expect(out).toContain('http://127.0.0.1:5520/v1');
      expect(out).toContain('--url');
    }
    const { out } = await setup('cursor --url https://gate.example.com');
    expect(out).toContain('https://gate.example.com/v1');
    expect(out).not.toContain('--url');
    expect((await setup('cursor --revert --yes')).out).toContain('hopgate wrote nothing');
    expect(existsSync(join(world.home, '.hopgate'))).toBe(false);
  });

  test('a protocol that a client does not speak is refused with those that it speaks', async () => {
    for (const [client, words] of [
      ['codex --protocol openai-chat', 'one protocol only'],
      ['copilot --protocol openai-chat', 'openai-responses, anthropic-messages'],
    ] as const) {
      const { code, err } = await setup(`${client} --yes`);
      expect([code, err]).toEqual([2, expect.stringContaining(words)]);
    }
  });

  test('a key that clients need is written, but never shown', async () => {
    world.write('.config/hopgate/hopgate.yaml', `${GLM_CONFIG}auth: { keys: [a-secret-key] }\n`);
    for (const client of Object.keys(MAIN)) {
      if (client === 'codex' || client === 'zed') continue;
      const shown = [
        await setup(`${client} --show`),
        await setup(`${client} --show --json`),
        await setup(`${client} --yes`),
      ];
      for (const { out, err } of shown) expect(out + err).not.toContain('a-secret-key');
      expect(read(MAIN[client]![0])).toContain('a-secret-key');
      const { out } = await setup(`${client} --revert --show`);
      expect(out).not.toContain('a-secret-key');
    }
  });

  test('--url, a listener on all addresses, and a free port', async () => {
    const listening = (at: string) =>
      world.write('.config/hopgate/hopgate.yaml', GLM_CONFIG.replace('127.0.0.1:5520', at));
    listening('0.0.0.0:7000');
    await setup('claude --yes');
    expect(json(CLAUDE).env.ANTHROPIC_BASE_URL).toBe('http://127.0.0.1:7000');
    listening('127.0.0.1:0');
    expect((await setup('claude --yes')).code).toBe(2);
    await setup('claude --yes --url https://gate.example.com/v1/');
    expect(json(CLAUDE).env.ANTHROPIC_BASE_URL).toBe('https://gate.example.com');
    expect((await setup('claude --yes --url nonsense')).code).toBe(2);
  });

  test('a model that nothing serves is refused with those that are', async () => {
    const { code, err } = await setup('codex --yes --model nope');
    expect(code).toBe(2);
    expect(err).toContain('glm-4.7, glm-4.6');
  });

  test('the variables that move the clients’ files are honoured', async () => {
    world.variables.CLAUDE_CONFIG_DIR = join(world.home, 'c1');
    world.variables.CODEX_HOME = join(world.home, 'c2');
    world.variables.OPENCODE_CONFIG = join(world.home, 'c3.json');
    world.variables.GEMINI_CLI_HOME = join(world.home, 'c4');
    world.variables.QWEN_HOME = join(world.home, 'c5');
    world.variables.CLINE_DATA_DIR = join(world.home, 'c6');
    world.variables.CONTINUE_GLOBAL_DIR = join(world.home, 'c7');
    world.variables.KIMI_CODE_HOME = join(world.home, 'c8');
    world.variables.GROK_HOME = join(world.home, 'c9');
    world.variables.PI_CODING_AGENT_DIR = join(world.home, 'c10');
    world.variables.KILO_CONFIG = join(world.home, 'c11.json');
    for (const client of Object.keys(MAIN)) await setup(`${client} --yes`);
    for (const file of [
      'c1/settings.json',
      'c2/config.toml',
      'c3.json',
      'c4/.gemini/.env',
      'c5/settings.json',
      'c6/settings/providers.json',
      'c7/config.yaml',
      'c8/config.toml',
      'c9/config.toml',
      'c10/models.json',
      'c11.json',
    ]) {
      expect(existsSync(join(world.home, file))).toBe(true);
    }
  });

  test('--show --json is one object for scripts', async () => {
    const { out } = await setup('claude --show --json');
    expect(JSON.parse(out)).toMatchObject({
      client: 'claude',
      file: join(world.home, CLAUDE),
      changed: true,
      model: null,
      url: 'http://127.0.0.1:5520',
    });
  });

  test('a broken configuration is reported and nothing is written', async () => {
    world.write('.config/hopgate/hopgate.yaml', 'providers: 7\n');
    const { code, err } = await setup('claude --yes');
    expect(code).toBe(1);
    expect(err).toContain(config);
  });
});

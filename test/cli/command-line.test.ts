/** The command line itself: what is run, what is refused and how it is said. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { COMMAND_GROUPS, named } from '../../src/cli/command.ts';
import { offersFor } from '../../src/cli/commands/completions/offers.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { commandHelp } from '../../src/cli/help.ts';
import { parseLine } from '../../src/cli/parse.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { GatewayError } from '../../src/conversation/errors.ts';
import { createWorld, GLM_CONFIG, type World } from './world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.remove());

describe('wrong usage exits 2 and says what was meant', () => {
  const cases: readonly (readonly [words: string, says: string])[] = [
    ['serv', 'Did you mean "serve"?'],
    ['docter', 'Did you mean "doctor"?'],
    ['start', 'Did you mean "serve"?'],
    ['spend', 'Did you mean "usage"?'],
    ['validate', 'Did you mean "check"?'],
    ['config', 'Did you mean "check"?'],
    ['install', 'Did you mean "service"?'],
    ['configure claude', 'Did you mean "setup"?'],
    ['completely-unknown', 'Unknown command "completely-unknown". See'],
    ['serve --prot 1', 'Did you mean "--port"?'],
    ['check --jsno', 'Did you mean "--json"?'],
    ['serve --port', 'needs a value: --port N'],
    ['serve --port=', 'needs a value'],
    ['serve --port http', 'a whole number from 0 to 65535'],
    ['serve --port 70000', 'a whole number from 0 to 65535'],
    ['serve --port -1', 'a whole number from 0 to 65535, not "-1"'],
    ['serve --log-level loud', 'one of trace, debug'],
    ['check --json=yes', 'takes no value'],
    ['setup', 'needs CLIENT'],
    ['setup claud', 'Did you mean "claude"?'],
    ['check extra', 'Unexpected argument "extra"'],
    ['help nothing', 'Unknown command "nothing"'],
    ['--config', 'needs a value'],
  ];
  for (const [words, says] of cases) {
    test(`hopgate ${words}`, async () => {
      const { code, out, err } = await world.run(words.split(' '));
      expect(err).toContain(says);
      expect(code).toBe(2);
      expect(out).toBe('');
    });
  }
});

describe('help', () => {
  test('the general help has ten commands, and names where each of the others is, within 100 columns', async () => {
    const { code, out, err } = await world.run(['--help']);
    expect(code).toBe(0);
    expect(err).toBe('');
    expect(COMMANDS.filter(({ group }) => group === undefined)).toHaveLength(10);
    for (const { name, group, summary } of COMMANDS) {
      const row = new RegExp(`^  ${name}( [A-Z]+)? +${summary.slice(0, 20)}`, 'm');
      expect(out).toMatch(group === undefined ? row : new RegExp(`\\b${name}\\b`));
      if (group !== undefined) expect((await world.run([group])).out).toMatch(row);
    }
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  test('a command of a group runs with and without the name of the group, and in no other group', async () => {
    for (const { name, group } of COMMANDS) {
      const alone = await world.run([name, '--help']);
      for (const other of Object.keys(COMMAND_GROUPS)) {
        const inside = await world.run([other, name, '--help']);
        if (other === group) expect(inside).toEqual(alone);
        else
          expect([inside.code, inside.err]).toEqual([
            2,
            expect.stringContaining('Unknown command'),
          ]);
        if (other === group) expect(await world.run(['help', other, name])).toEqual(alone);
      }
    }
    expect((await world.run(['debug', 'replai'])).err).toContain('Did you mean "replay"?');
    expect((await world.run(['debgu'])).err).toContain('Did you mean "debug"?');
  });

  for (const { name, options = {}, examples, exits } of COMMANDS) {
    test(`${name}: every option, an example and the exit codes, within 100 columns`, async () => {
      const { code, out } = await world.run([name, '--help']);
      expect(code).toBe(0);
      for (const option of [...Object.keys(options), 'config', 'help']) {
        expect(out).toContain(`--${option}`);
      }
      const lines = Object.keys(examples);
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) expect(out).toContain(line);
      for (const exit of Object.keys(exits)) expect(out).toMatch(new RegExp(`^  ${exit}  `, 'm'));
      expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
      expect((await world.run(['help', name])).out).toBe(out);
    });

    test(`${name}: its examples are command lines that parse`, async () => {
      for (const line of Object.keys(examples)) {
        const words = line.replace(/ >.*$/, '').split(' ').slice(1);
        const { code } = await world.run([...words, '--help']);
        expect(code).toBe(0);
      }
    });
  }

  test('an older name of an option still works, and no help shows it', () => {
    const older = COMMANDS.flatMap((command) =>
      named(command.options).flatMap((option) =>
        (option.aliases ?? []).map((alias) => ({ command, option, alias })),
      ),
    );
    expect(older.map(({ command, alias }) => `${command.name} --${alias}`)).toEqual([
      'samples --entry',
      'replay --edge',
      'bisect --edge',
    ]);
    for (const { command, option, alias } of older) {
      const value = option.choices?.[0] ?? 'some-value';
      const parsed = parseLine([command.name, 'list', `--${alias}`, value], COMMANDS);
      expect(parsed.values).toEqual({ [option.name]: value });
      const lines: string[] = [];
      commandHelp(
        command,
        createTerminal((text) => lines.push(text), { colour: false }),
      );
      expect(lines.join('')).toContain(`--${option.name} `);
      expect(lines.join('')).not.toContain(`--${alias}`);
      const offered = offersFor([command.name, '--'], COMMANDS).words.map(([word]) => word);
      expect(offered).toContain(`--${option.name}`);
      expect(offered).not.toContain(`--${alias}`);
    }
  });

  test('no command takes one letter for two options', () => {
    for (const { options } of COMMANDS) {
      const letters = ['c', 'h', ...named(options).flatMap(({ short }) => short ?? [])];
      expect(new Set(letters).size).toBe(letters.length);
    }
  });
});

describe('colours', () => {
  const ESCAPE = '\u001b[';
  test('none when piped', async () => {
    expect((await world.run(['--help'])).out).not.toContain(ESCAPE);
  });
  test('on a terminal, but not with NO_COLOR or --no-color', async () => {
    world.tty = true;
    expect((await world.run(['--help'])).out).toContain(ESCAPE);
    expect((await world.run(['check', '--no-color'])).out).not.toContain(ESCAPE);
    world.variables.NO_COLOR = '1';
    expect((await world.run(['--help'])).out).not.toContain(ESCAPE);
  });

  test('an address of IPv6 is shown as it stands in a URL', async () => {
    world.write('v6.yaml', 'listen: "[::1]:5520"\nproviders: { glm: { keys: [a] } }\n');
    const { out } = await world.run(['check', '--config', `${world.home}/v6.yaml`]);
    expect(out).toContain('listening on [::1]:5520');
  });
});

describe('serve', () => {
  test('is what runs without a command, and flags win over the file', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    const argv = ['--config', file, '--port', '0', '--host', '0.0.0.0', '--log-level', 'debug'];
    const { code, out } = await world.run(argv);
    expect(code).toBe(0);
    // stdout belongs to the one line that says where the server listens.
    expect(out).toBe('');
    const { config, load, withFlags } = world.served[0]!;
    expect(config.listen).toEqual({ host: '0.0.0.0', port: 0 });
    expect(config.log.level).toBe('debug');
    expect(Object.keys(config.providers)).toEqual(['glm']);
    expect(load.path).toBe(file);
    expect(withFlags({ ...config, listen: { host: '::1', port: 9 } }).listen.port).toBe(0);
  });

  test('a broken file: problems on stderr, exit 1, nothing is started', async () => {
    const file = world.write('own.yaml', 'providers:\n  glm:\n    protocl: openai-chat\n');
    const { code, out, err } = await world.run(['serve', '--config', file]);
    expect(code).toBe(1);
    expect(out).toBe('');
    expect(err).toContain(`${file}:3:5: `);
    expect(world.served).toEqual([]);
  });

  test('a failure inside exits with 70 and is not thrown', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    Object.defineProperty(world.served, 'push', {
      value: () => {
        throw new Error('boom');
      },
    });
    const { code, err } = await world.run(['serve', '--config', file]);
    expect(code).toBe(70);
    expect(err).toContain('internal error: Error: boom');
  });

  test('an engine that does not answer is told in a sentence, without a stack', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    Object.defineProperty(world.served, 'push', {
      value: () => {
        throw new GatewayError('overloaded', 'The store does not answer.');
      },
    });
    const { code, err } = await world.run(['serve', '--config', file]);
    expect(code).toBe(1);
    expect(err).toBe('hopgate: The store does not answer.\n');
  });
});

describe('version', () => {
  test('one line for people, an object for scripts', async () => {
    const { code, out } = await world.run(['version']);
    expect(code).toBe(0);
    expect(out).toMatch(/^hopgate \d+\.\d+\.\d+.*, bun \d+\.\d+\.\d+, \w+-\w+\n$/);
    expect((await world.run(['--version'])).out).toBe(out);
    const json = JSON.parse((await world.run(['version', '--json'])).out);
    expect(json).toMatchObject({ name: 'hopgate', bun: Bun.version });
    expect(out).toContain(json.version);
  });
});

describe('check', () => {
  test('a right file: exit 0 and what is in it', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    const { code, out } = await world.run(['check', '-c', file]);
    expect(code).toBe(0);
    expect(out).toContain(file);
    expect(out).toContain('1 provider: glm');
    expect(out).toContain('127.0.0.1:5520');
  });

  test('a wrong key: FILE:LINE:COLUMN and what was meant, exit 1', async () => {
    const file = world.write('own.yaml', GLM_CONFIG.replace('base_url', 'base_ulr'));
    const { code, err, out } = await world.run(['check', '--config', file]);
    expect(code).toBe(1);
    expect(out).toBe('');
    expect(err).toContain(`${file}:5:5: `);
    expect(err).toContain('did you mean "base_url"?');
  });

  test('--json: problems with line, column and suggestion', async () => {
    const file = world.write('own.yaml', GLM_CONFIG.replace('base_url', 'base_ulr'));
    const { code, out } = await world.run(['check', '--config', file, '--json']);
    expect(code).toBe(1);
    const result = JSON.parse(out);
    expect(result.ok).toBe(false);
    expect(result.file).toBe(file);
    expect(result.problems).toContainEqual(
      expect.objectContaining({ line: 5, column: 5, suggestion: 'base_url' }),
    );
  });

  test('a file that is named and not there is a problem, not the demo', async () => {
    const { code, err } = await world.run(['check', '--config', '/nowhere/x.yaml']);
    expect(code).toBe(1);
    expect(err).toContain('/nowhere/x.yaml: there is no such file');
  });

  test('nothing configured: the demo, exit 0', async () => {
    const { code, out } = await world.run(['check', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ ok: true, file: null, problems: [] });
  });

  test('--schema prints a JSON Schema that knows the keys of the file', async () => {
    const schema = JSON.parse((await world.run(['check', '--schema'])).out);
    expect(schema.properties).toHaveProperty('providers');
    expect(schema.properties).toHaveProperty('server_tools');
  });
});

describe('models', () => {
  test('a table, and the same as JSON', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    const { code, out } = await world.run(['models', '--config', file]);
    expect(code).toBe(0);
    expect(out).toMatch(/^glm-4\.7 +glm\/glm-4\.7 +openai-chat/m);
    const { models } = JSON.parse((await world.run(['models', '-c', file, '--json'])).out);
    expect(models).toContainEqual({
      id: 'glm-4.7',
      provider: 'glm',
      kind: 'plain',
      target: 'glm/glm-4.7',
      protocol: 'openai-chat',
    });
  });

  test('a name of a route goes to the target that the route chooses, not to a provider alone', async () => {
    const file = world.write(
      'own.yaml',
      `providers:
  ollama: { protocol: openai-chat, base_url: "http://127.0.0.1:9/v1", models: ["*"] }
  spare: { protocol: openai-chat, base_url: "http://127.0.0.1:9/v1", models: [m1] }
routes:
  - when: { model: [qwen3, glm] }
    to: [ollama/*]
  - when: { model: both }
    to: [ollama/*, spare/m1]
`,
    );
    const { out } = await world.run(['models', '--config', file, '--offline']);
    expect(out).toMatch(/^qwen3 +ollama\/qwen3 +openai-chat +route$/m);
    expect(out).toMatch(/^both +ollama\/both, … +openai-chat +route$/m);
  });

  test('--explain NAME tells the rule and the target', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    const argv = ['models', '--config', file, '--explain', 'claude-opus-4-7'];
    const { code, out } = await world.run(argv);
    expect(code).toBe(0);
    expect(out).toContain('glm/glm-4.7');
    const json = JSON.parse((await world.run([...argv, '--json'])).out);
    expect(json).toMatchObject({ ok: true, targets: [{ provider: 'glm', model: 'glm-4.7' }] });
    expect(JSON.stringify(json)).not.toContain('abcdefgh12345678');
  });

  test('--explain BODY guesses the protocol and reads its facts', async () => {
    const config = `${GLM_CONFIG}  - when: { protocol: anthropic-messages, tools: true }
    to: [glm/glm-4.6]
`;
    const file = world.write('own.yaml', config);
    const body = {
      model: 'some-model',
      max_tokens: 10,
      system: 'x',
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ name: 't', input_schema: { type: 'object' } }],
    };
    const request = world.write('request.json', JSON.stringify(body));
    for (const asked of [JSON.stringify(body), `@${request}`, '@request.json']) {
      const argv = ['models', '--config', file, '--json', '--explain', asked];
      const { out } = await world.run(argv);
      expect(JSON.parse(out).targets[0]).toMatchObject({ model: 'glm-4.6' });
    }
  });

  test('--explain: nothing takes it → exit 1; no JSON → exit 2; no request → exit 1', async () => {
    const file = world.write('own.yaml', GLM_CONFIG);
    const explain = (asked: string) => world.run(['models', '-c', file, '--explain', asked]);
    expect((await explain('gpt-99')).code).toBe(1);
    expect((await explain('{"model":')).code).toBe(2);
    expect((await explain('@/nowhere')).code).toBe(2);
  });
});

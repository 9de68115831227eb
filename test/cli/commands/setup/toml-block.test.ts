/** Blocks in TOML files: keys before the first table, the user's own lines kept and brought back. */

import { describe, expect, test } from 'bun:test';
import {
  putBlocks,
  takeBlocks,
  tomlString,
} from '../../../../src/cli/commands/setup/toml-block.ts';

const CHANGE = {
  topKeys: ['model', 'model_provider'],
  top: [
    ['model', '"glm-4.7"'],
    ['model_provider', '"hopgate"'],
  ],
  table: 'model_providers.hopgate',
  keys: [['base_url', '"http://127.0.0.1:5520/v1"']],
} as const;

const FILES: Readonly<Record<string, string>> = {
  empty: '',
  'only tables': '[mcp_servers.x]\ncommand = "y"\n',
  'own model and provider': 'model = "gpt-5" # mine\nmodel_provider="openai"\n\n[tui]\nx = 1\n',
  'the same key inside a table': 'a = 1\n[profiles.x]\nmodel = "o3"\n',
  'a list over lines that begin with brackets':
    'notify = [\n["a"],\n[ "b" ], # ]\n]\n[t]\nmodel = "x"\n',
  'a text over lines that looks like keys':
    'note = """\nmodel = "no"\n[table]\n"""\nmodel = "gpt"\n',
  'a literal text with quotes': "note = '''\nmodel = 'a'\n'''\nother = 'x = [1'\nmodel = 'gpt'\n",
  'quoted keys': '"model" = "gpt"\n\'model_provider\' = "x"\n',
  'a table of that name already':
    '[model_providers.hopgate]\nbase_url = "http://old"\n[model_providers.hopgate.http_headers]\nx = "y"\n[after]\nz = 1\n',
  'Windows line ends': 'model = "gpt"\r\n[t]\r\nx = 1\r\n',
  comments: '# my settings\n# model = "no"\nmodel = "gpt"\n',
  'a long value in the way': 'model_provider = """\nopenai"""\n[t]\nx = 1\n',
};

describe('putBlocks', () => {
  for (const [what, text] of Object.entries(FILES)) {
    test(`${what}: parses, says what it should, and comes back byte for byte`, () => {
      const after = putBlocks(text, CHANGE);
      const parsed = Bun.TOML.parse(after) as Record<string, unknown>;
      expect(parsed).toMatchObject({
        model: 'glm-4.7',
        model_provider: 'hopgate',
        model_providers: { hopgate: { base_url: 'http://127.0.0.1:5520/v1' } },
      });
      expect(takeBlocks(after, CHANGE)).toBe(text);
      // Again, with another value: no second block.
      const second = putBlocks(after, { ...CHANGE, top: [['model', '"other"'], CHANGE.top[1]] });
      expect(second.match(/>>> hopgate/g)).toHaveLength(2);
      expect(takeBlocks(second, CHANGE)).toBe(text);
      // Everything that is not ours says what it said before.
      const { model: _, model_provider: __, model_providers: ___, ...rest } = parsed;
      const {
        model: a,
        model_provider: b,
        model_providers: c,
        ...before
      } = Bun.TOML.parse(text) as Record<string, unknown>;
      expect(rest).toEqual(before);
    });
  }

  test('Windows line ends are kept in what is added', () => {
    const after = putBlocks(FILES['Windows line ends']!, CHANGE);
    expect(after.replaceAll('\r\n', '')).not.toContain('\n');
  });

  test('a file without a final line break, or with a byte order mark', () => {
    expect(Bun.TOML.parse(putBlocks('a = 1', CHANGE))).toMatchObject({ a: 1, model: 'glm-4.7' });
    const marked = putBlocks('\uFEFFmodel = "x"\n', CHANGE);
    expect(marked.startsWith('\uFEFF# >>>')).toBe(true);
    expect(takeBlocks(marked, CHANGE)).toBe('\uFEFFmodel = "x"\n');
  });
});

describe('takeBlocks', () => {
  test('what Codex put between the marks is kept', () => {
    const after = putBlocks('[tui]\nx = 1\n', CHANGE)
      .replace('# <<<', 'model_reasoning_effort = "high"\n# <<<')
      .replace(/# <<<[^\n]*\n$/, '\n[projects."/a"]\ntrust_level = "trusted"\n$&');
    expect(Bun.TOML.parse(takeBlocks(after, CHANGE))).toEqual({
      model_reasoning_effort: 'high',
      tui: { x: 1 },
      projects: { '/a': { trust_level: 'trusted' } },
    });
  });

  test('a missing closing mark is an error: the end of the block is not known', () => {
    const after = putBlocks('', CHANGE).replaceAll(/# <<<.*\n/g, '');
    expect(() => takeBlocks(`${after}x = 1\n`, CHANGE)).toThrow('is missing');
  });
});

test('tomlString survives quotes, backslashes and control characters', () => {
  const odd = 'a"b\\c\nd\u0001e';
  expect(Bun.TOML.parse(`x = ${tomlString(odd)}`)).toEqual({ x: odd });
});

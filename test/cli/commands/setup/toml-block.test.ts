/** Blocks in TOML files: keys before the first table, the user's own lines kept and brought back. */

import { describe, expect, test } from 'bun:test';
import { putBlocks, takeBlocks } from '../../../../src/cli/commands/setup/toml-block.ts';

const OWNED = {
  tables: ['model_providers.hopgate'],
  keys: { '': ['model', 'model_provider'] },
};
const put = (text: string, model = 'glm-4.7') =>
  putBlocks(text, 'codex', OWNED, [
    { path: [], keys: { model, model_provider: 'hopgate' } },
    { path: ['model_providers', 'hopgate'], keys: { base_url: 'http://127.0.0.1:5520/v1' } },
  ]);
const take = (text: string) => takeBlocks(text, OWNED);

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
      const after = put(text);
      const parsed = Bun.TOML.parse(after) as Record<string, unknown>;
      expect(parsed).toMatchObject({
        model: 'glm-4.7',
        model_provider: 'hopgate',
        model_providers: { hopgate: { base_url: 'http://127.0.0.1:5520/v1' } },
      });
      expect(take(after)).toBe(text);
      // Again, with another value: no second block.
      const second = put(after, 'other');
      expect(second.match(/>>> hopgate/g)).toHaveLength(2);
      expect(take(second)).toBe(text);
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
    const after = put(FILES['Windows line ends']!);
    expect(after.replaceAll('\r\n', '')).not.toContain('\n');
  });

  test('a file without a final line break, or with a byte order mark', () => {
    expect(Bun.TOML.parse(put('a = 1'))).toMatchObject({ a: 1, model: 'glm-4.7' });
    const marked = put('\uFEFFmodel = "x"\n');
    expect(marked.startsWith('\uFEFF# >>>')).toBe(true);
    expect(take(marked)).toBe('\uFEFFmodel = "x"\n');
  });
});

describe('takeBlocks', () => {
  test('what Codex put between the marks is kept', () => {
    const after = put('[tui]\nx = 1\n')
      .replace('# <<<', 'model_reasoning_effort = "high"\n# <<<')
      .replace(/# <<<[^\n]*\n$/, '\n[projects."/a"]\ntrust_level = "trusted"\n$&');
    expect(Bun.TOML.parse(take(after))).toEqual({
      model_reasoning_effort: 'high',
      tui: { x: 1 },
      projects: { '/a': { trust_level: 'trusted' } },
    });
  });

  test('a missing closing mark is an error: the end of the block is not known', () => {
    const after = put('').replaceAll(/# <<<.*\n/g, '');
    expect(() => take(`${after}x = 1\n`)).toThrow('is missing');
  });
});

test('texts with quotes, backslashes and control characters say in the file what they say here', () => {
  const odd = 'a"b\\c\nd\u0001e';
  expect(Bun.TOML.parse(put('', odd))).toMatchObject({ model: odd });
});

describe('a table that the user has as well', () => {
  const owned = { tables: ['model.hopgate/'], keys: { models: ['default'] } };
  const within = (text: string) =>
    putBlocks(text, 'grok', owned, [
      { path: ['models'], keys: { default: 'hopgate/a.b' } },
      { path: ['model', 'hopgate/a.b'], keys: { model: 'a.b', context_window: 5 } },
    ]);
  const shared: Readonly<Record<string, string>> = {
    'no such table': '[ui]\ntheme = "x"\n',
    'the key is there': '[models]\ndefault = "grok-4.5" # mine\nmax_retries = 2\n[ui]\nx = 1\n',
    'the table is the last line': '[ui]\nx = 1\n[models]\n',
    'the same key in another table': '[other]\ndefault = 1\n[models]\nmax_retries = 2\n',
    'a table of a model of that name':
      '[model."hopgate/a.b"]\nmodel = "old"\n[model.mine]\nmodel = "m"\n',
    'Windows line ends and a mark': '\uFEFF[models]\r\ndefault = "x"\r\n',
  };
  for (const [what, text] of Object.entries(shared)) {
    test(`${what}: says what it should beside the user's keys, and comes back byte for byte`, () => {
      const after = within(text);
      const { models, model, ...others } = Bun.TOML.parse(after) as Record<string, object>;
      const before = Bun.TOML.parse(text) as Record<string, object>;
      expect(models).toEqual({ ...before.models, default: 'hopgate/a.b' });
      expect(model).toEqual({
        ...before.model,
        'hopgate/a.b': { model: 'a.b', context_window: 5 },
      });
      const { models: _, model: __, ...rest } = before;
      expect(others).toEqual(rest);
      expect(takeBlocks(after, owned)).toBe(text);
      expect(within(after)).toBe(after);
    });
  }

  test('a key that the program put into a table that only the block has keeps its table', () => {
    const after = within('').replace('[models]\n', '[models]\nmax_retries = 3\n');
    expect(Bun.TOML.parse(takeBlocks(after, owned))).toEqual({ models: { max_retries: 3 } });
  });

  test('a table that is written in one line is left alone, with the reason', () => {
    for (const text of ['models = { default = "x" }\n', 'models.default = "x"\n', '[[models]]\n']) {
      expect(() => within(text)).toThrow();
    }
  });
});

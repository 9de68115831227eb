/** `hopgate setup` on any settings that people write: what is reverted is the file of before, byte for byte. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'yaml';
import { createWorld, GLM_CONFIG, type World } from '../../world.ts';

let world: World;
beforeEach(() => {
  world = createWorld();
  world.write(
    '.config/hopgate/hopgate.yaml',
    `${GLM_CONFIG}model_list: { claude_aliases: true }\n`,
  );
});
afterEach(() => world.remove());

const word = fc.stringMatching(/^[a-z][a-z_]{0,6}$/);
const value = fc.oneof(fc.integer(), fc.boolean(), fc.stringMatching(/^[\w #:é"'-]{0,12}$/));
const comment = fc.stringMatching(/^[\w '"{}[\]:,é-]{0,16}$/);

/** How a file is laid out, beside what it says. */
const layout = fc.record({
  eol: fc.constantFrom('\n', '\r\n'),
  mark: fc.constantFrom('', '\uFEFF'),
  end: fc.constantFrom('', '\n', '\n\n', '\n  \n'),
});
type Layout = typeof layout extends fc.Arbitrary<infer T> ? T : never;
const laid = (lines: readonly string[], { eol, mark, end }: Layout) =>
  mark + (lines.join('\n') + end).replaceAll('\n', eol);

/** Lines of an object in JSON with comments; some members are those that setup writes, too. */
const jsonLines = (keys: readonly string[]) =>
  fc
    .record({
      members: fc.uniqueArray(
        fc.tuple(fc.oneof(word, fc.constantFrom(...keys)), fc.oneof(value, fc.constant({}))),
        { selector: ([key]) => key, maxLength: 4 },
      ),
      comments: fc.array(comment, { minLength: 6, maxLength: 6 }),
      trailing: fc.boolean(),
      indent: fc.constantFrom('', '  ', '\t'),
    })
    .map(({ members, comments, trailing, indent }) => [
      `// ${comments[0]}`,
      '{',
      ...members.flatMap(([key, it], index) => {
        const last = index === members.length - 1;
        // A value where setup needs an object would be refused.
        const written = keys.includes(key) ? '{}' : JSON.stringify(it);
        const comma = last && !trailing ? '' : ',';
        return [`${indent}"${key}": ${written}${comma} // ${comments[index + 1]}`];
      }),
      '}',
    ]);

const yamlLines = (keys: readonly string[], items: boolean) =>
  fc
    .record({
      members: fc.uniqueArray(fc.tuple(fc.oneof(word, fc.constantFrom(...keys)), value), {
        selector: ([key]) => key,
        maxLength: 4,
      }),
      comments: fc.array(comment, { minLength: 6, maxLength: 6 }),
      models: fc.array(fc.tuple(word, value), { maxLength: 3 }),
      dash: fc.constantFrom('', '  ', '    '),
      blank: fc.boolean(),
    })
    .map(({ members, comments, models, dash, blank }) => [
      `# ${comments[0]}`,
      ...members.flatMap(([key, it], index) => [
        `${key}: ${JSON.stringify(it)} # ${comments[index + 1]}`,
        ...(blank ? [''] : []),
      ]),
      ...(items
        ? [
            models.length === 0 ? 'models: []' : 'models:',
            ...models.map(
              ([name, it]) =>
                `${dash}- { name: ${JSON.stringify(name)}, x: ${JSON.stringify(it)} }`,
            ),
          ]
        : []),
    ]);

const envLines = fc.array(
  fc.oneof(
    comment.map((text) => `# ${text}`),
    fc
      .tuple(
        fc.constantFrom('', 'export ', '  '),
        fc.constantFrom('A', 'GEMINI_API_KEY', 'GEMINI_MODEL', 'GOOGLE_GEMINI_BASE_URL'),
        comment,
      )
      .map(([head, name, text]) => `${head}${name}=${text}`),
  ),
  { maxLength: 6 },
);

const tomlLines = (keys: readonly string[], tables: readonly string[]) =>
  fc
    .record({
      top: fc.uniqueArray(fc.tuple(fc.oneof(word, fc.constantFrom(...keys)), value), {
        selector: ([key]) => key,
        maxLength: 3,
      }),
      tables: fc.uniqueArray(
        fc.tuple(
          fc.oneof(
            word.map((name) => `own_${name}`),
            fc.constantFrom(...tables),
          ),
          fc.tuple(fc.constantFrom('default', 'x', 'model'), value),
        ),
        { selector: ([name]) => name, maxLength: 4 },
      ),
      comments: fc.array(comment, { minLength: 9, maxLength: 9 }),
      blank: fc.boolean(),
    })
    .map(({ top, tables: found, comments, blank }) => [
      `# ${comments[0]}`,
      ...top.map(([key, it], index) => `${key} = ${JSON.stringify(it)} # ${comments[index + 1]}`),
      ...found.flatMap(([name, [key, it]], index) => [
        ...(blank ? [''] : []),
        `[${name}] # ${comments[index + 4]}`,
        `${key} = ${JSON.stringify(it)}`,
      ]),
    ]);

const CASES = [
  ['claude', '.claude/settings.json', jsonLines(['env'])],
  ['opencode', '.config/opencode/opencode.json', jsonLines(['provider'])],
  ['gemini', '.gemini/settings.json', jsonLines(['security', 'model'])],
  ['gemini', '.gemini/.env', envLines],
  ['qwen', '.qwen/settings.json', jsonLines(['env', 'modelProviders', 'security'])],
  ['cline', '.cline/data/settings/providers.json', jsonLines(['providers'])],
  ['zed', '.config/zed/settings.json', jsonLines(['language_models', 'agent'])],
  ['aider', '.aider.conf.yml', yamlLines(['model', 'openai-api-base', 'openai-api-key'], false)],
  ['aider', '.aider.model.metadata.json', jsonLines(['openai/x'])],
  ['continue', '.continue/config.yaml', yamlLines(['name', 'schema'], true)],
  [
    'codex',
    '.codex/config.toml',
    tomlLines(['model', 'model_provider'], ['model_providers.hopgate', 'profiles.a']),
  ],
  [
    'kimi',
    '.kimi-code/config.toml',
    tomlLines(['default_model'], ['providers.hopgate', 'models."hopgate/glm-4.7"', 'thinking']),
  ],
  ['grok', '.grok/config.toml', tomlLines(['x'], ['models', 'model."hopgate/glm-4.7"', 'ui'])],
  ['pi', '.pi/agent/models.json', jsonLines(['providers'])],
  ['pi', '.pi/agent/settings.json', jsonLines(['x'])],
  ['kilo', '.config/kilo/kilo.json', jsonLines(['provider'])],
  ['copilot', '.copilot/hopgate.sh', envLines],
  ['copilot', '.profile', envLines],
  ['claude-desktop', '.config/Claude/claude_desktop_config.json', jsonLines(['mcpServers'])],
  ['claude-desktop', '.config/Claude-3p/claude_desktop_config.json', jsonLines(['x'])],
  [
    'claude-desktop',
    '.config/Claude-3p/configLibrary/_meta.json',
    jsonLines(['x']).map((lines) => lines.with(1, '{ "entries": [ {"id": "mine"} ],')),
  ],
] as const;

describe.each(CASES)('%s: %s', (client, file, lines) => {
  const read = () => readFileSync(join(world.home, file), 'utf8');
  const setup = (words: string) =>
    world.run(['setup', client, '--yes', ...words.split(' ').filter(Boolean)]);

  test('set up, set up once more, and reverted, it is as it was', async () => {
    const property = fc.asyncProperty(lines, layout, async (written, how) => {
      const text = laid(written, how);
      world.write(file, text);
      const first = await setup('');
      expect([first.code, first.err.includes('was left as it is')]).toEqual([0, false]);
      expect(read()).not.toBe(text);
      expect((await setup('--model glm-4.6')).code).toBe(0);
      expect((await setup('--revert')).code).toBe(0);
      expect(read()).toBe(text);
    });
    await fc.assert(property, { numRuns: 10 });
    expect(existsSync(join(world.home, '.hopgate/setup'))).toBe(true);
  });
});

/** The files whose changes stand in a block of lines. */
const BLOCKS = CASES.filter(([, file]) => !/\.(?:json|toml)$/.test(file));

describe.each(BLOCKS)('%s: %s, with a line that came later', (client, file, lines) => {
  test('the block goes, that line and all others stay', async () => {
    const later = /\.ya?ml$/.test(file) ? 'later: 1' : 'LATER=1';
    const property = fc.asyncProperty(lines, layout, async (written, how) => {
      const text = laid(written, { ...how, end: '\n' });
      world.write(file, text);
      expect((await world.run(['setup', client, '--yes'])).code).toBe(0);
      const path = join(world.home, file);
      world.write(file, `${readFileSync(path, 'utf8')}${later}${how.eol}`);
      expect((await world.run(['setup', client, '--revert', '--yes'])).code).toBe(0);
      expect(readFileSync(path, 'utf8')).toBe(`${text}${later}${how.eol}`);
    });
    await fc.assert(property, { numRuns: 10 });
  });
});

test('Continue reads its models, and those of before, in what was written', async () => {
  const property = fc.asyncProperty(yamlLines(['name'], true), layout, async (written, how) => {
    const text = laid(written, how);
    world.write('.continue/config.yaml', text);
    await world.run(['setup', 'continue', '--yes']);
    const { models, ...others } = parse(
      readFileSync(join(world.home, '.continue/config.yaml'), 'utf8').replace('\uFEFF', ''),
    );
    const { models: old, ...before } = parse(text.replace('\uFEFF', ''));
    expect(others).toEqual(before);
    expect(models.slice(0, old.length)).toEqual(old);
    expect(models.slice(old.length).map(({ model }: { model: string }) => model)).toEqual([
      'glm-4.7',
      'glm-4.6',
    ]);
    await world.run(['setup', 'continue', '--revert', '--yes']);
  });
  await fc.assert(property, { numRuns: 10 });
});

/** Texts that would be costly to read are refused before they cost anything. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import { liveConfig } from '../../../src/config/reload.ts';
import { expectCpuBelow } from '../../support/cpu-time.ts';
import { expectLinear } from '../../support/growth.ts';
import { bad, config, env, good, PROVIDER, parse } from '../support.ts';

/** What a busy machine needs for the largest text that is looked at; what must not be takes minutes. */
const MAX_CPU_MS = 15_000;

describe('a text that would be too costly for the YAML library is a problem with its position', () => {
  test.each([
    ['an alias of the list that it stands in', 'a: &a [*a]\n', 1, 8],
    ['an alias of the mapping that it stands in', 'a: &a\n  b:\n    c: *a\n', 3, 8],
    ['a mapping that is merged into itself', 'a: &a\n  <<: *a\n', 2, 7],
  ])('%s', (_, text, line, column) => {
    const [first] = bad(text);
    expect(first).toMatchObject({ line, column });
    expect(first?.message).toMatch(/^the alias \*a stands within what it stands for/);
  });

  test.each([
    ['lists of one line', `a: ${'['.repeat(20_000)}\n`, 1],
    ['mappings of one line', `x: 1\na: ${'{b: '.repeat(20_000)}\n`, 2],
    ['items on one line', '- '.repeat(20_000), 1],
    ['keys that are no text', '? '.repeat(20_000), 1],
    [
      'mappings by indentation',
      Array.from({ length: 400 }, (_, n) => `${' '.repeat(n)}a:\n`).join(''),
      undefined,
    ],
    ['lists that are closed', `a: ${'['.repeat(5000)}${']'.repeat(5000)}\n`, 1],
  ])('nested without end: %s', async (_, text, line) => {
    await expectCpuBelow(MAX_CPU_MS, () => {
      const problems = bad(text);
      expect(problems).toHaveLength(1);
      expect(problems[0]?.message).toBe('is nested more than 100 levels deep');
      if (line !== undefined) expect(problems[0]?.line).toBe(line);
      expect(problems[0]?.column).toBeGreaterThan(0);
    });
  });

  test('brackets in texts and comments do not count as nesting', () => {
    const noise = '['.repeat(500);
    expect(good(`# ${noise}\n${PROVIDER}auth: { keys: ["${noise}"] }\n`).auth).toBeDefined();
  });

  test('aliases that grow with every level are refused, even a few', () => {
    const levels = Array.from(
      { length: 9 },
      (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`,
    );
    const problems = bad(`a0: &a0 [x, x]\n${levels.join('\n')}\n`);
    expect(problems[0]?.message).toContain('aliases filled in');
  });

  test('aliases of a large list are refused for their sum, even if each is small', () => {
    const text = `a: &a [${'1,'.repeat(50_000)}]\nb: [${'*a ,'.repeat(500)}]\n`;
    expect(bad(text)[0]?.message).toContain('aliases filled in');
  });

  test('a mapping of very many keys is not compared key by key', async () => {
    const keys = Array.from({ length: 40_000 }, (_, n) => `k${n}: 1`).join('\n');
    await expectCpuBelow(MAX_CPU_MS, () => {
      expect(bad(keys)).toHaveLength(100);
      expect(bad(`${keys}\nk0: 2\n`)[0]).toMatchObject({ line: 40_001, column: 1 });
    });
  });

  test('a text with nothing but errors reports the first of them', async () => {
    await expectCpuBelow(MAX_CPU_MS, () => expect(bad('a: }\n'.repeat(40_000))).toHaveLength(100));
  });

  const M = 1_000_000;
  test.each([
    ['braces', (size: number) => '}'.repeat(size)],
    ['errors', (size: number) => 'a: }\n'.repeat(size / 5)],
    ['one key again and again', (size: number) => 'abcd: 1\n'.repeat(size / 8)],
    [
      'very many keys',
      (size: number) =>
        Array.from({ length: Math.floor(size / 10) }, (_, n) => `k${n}: 1`).join('\n'),
    ],
    ['items', (size: number) => '- x\n'.repeat(size / 4)],
    ['values of one line', (size: number) => `[${'1,'.repeat(size / 2)}]`],
    ['quotes', (size: number) => '"'.repeat(size)],
    ['escapes', (size: number) => `a: "${'\\q'.repeat(size / 2)}"`],
    ['aliases', (size: number) => '*a '.repeat(size / 3)],
    ['directives', (size: number) => '%a\n'.repeat(size / 3)],
    ['tabs', (size: number) => '\tx: 1\n'.repeat(size / 6)],
    ['documents', (size: number) => '---\n'.repeat(size / 4)],
  ])(
    'a megabyte of %s is refused in linear time, before the library sees it',
    async (name, input) => {
      expect(bad(input(M))).toHaveLength(1);
      await expectLinear({ name, input, run: bad, most: M });
    },
  );

  test('ten thousand routes are accepted', () => {
    const routes = Array.from(
      { length: 10_000 },
      (_, n) => `  - name: r${n}\n    when: { model: "m${n}-*" }\n    to: [p/x]\n`,
    ).join('');
    expect(good(`${PROVIDER}routes:\n${routes}`).routes).toHaveLength(10_000);
  });

  test('a text that is too large is not parsed', () => {
    const [only] = bad(`${PROVIDER}# ${'x'.repeat(1024 * 1024)}`);
    expect(only).toMatchObject({ line: 1, message: expect.stringContaining('larger than 1 MB') });
  });
});

describe('with a file', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'hopgate-bounds-'));
    file = join(folder, 'hopgate.yaml');
    writeFileSync(file, PROVIDER);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('a file that is too large is not read', async () => {
    // Without a block on the disk; no string could hold it.
    truncateSync(file, 8 * 1024 ** 3);
    expect(await loadConfig({ path: file, environment: env() })).toMatchObject({
      ok: false,
      file,
      problems: [{ message: expect.stringContaining('larger than 1 MB') }],
    });
  });

  test('an alias of itself keeps the old configuration of a running gateway, and the next file is loaded', async () => {
    const options = { path: file, environment: env() };
    const live = liveConfig(config(await loadConfig(options)), options);
    writeFileSync(file, 'a: &a [*a]\n');
    expect(await live.reload()).toMatchObject({ ok: false, file });
    writeFileSync(file, `${PROVIDER}workers: 2\n`);
    expect(await live.reload()).toMatchObject({ ok: true });
  });

  test('an unexpected error is a problem of the file, and its message is not shown', async () => {
    const environment = {
      ...env(),
      variable: () => {
        throw new RangeError('sk-secret');
      },
    };
    writeFileSync(file, 'providers: { openai: {} }\n');
    const loaded = await loadConfig({ path: file, environment });
    expect(loaded).toMatchObject({ ok: false, file, problems: [{ line: 1, column: 1 }] });
    expect(JSON.stringify(loaded)).toContain('RangeError');
    expect(JSON.stringify(loaded)).not.toContain('sk-secret');
  });

  test('ordinary aliases and merges are accepted', () => {
    const { providers } = good(
      'providers:\n  a: &a { protocol: openai-chat, base_url: "http://127.0.0.1:1/v1" }\n  b: *a\n  c: { <<: *a, http2: true }\n',
    );
    expect(Object.keys(providers)).toEqual(['a', 'b', 'c']);
    expect(parse('a: *nowhere\n').ok).toBe(false);
  });
});

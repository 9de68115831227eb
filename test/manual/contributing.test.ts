/** What CONTRIBUTING.md and test/README.md tell a newcomer is there, and the worked examples work. */

import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import type { CommandSpec } from '../../src/cli/command.ts';
import { check } from '../../src/config/file/check.ts';
import { inProgram, type Node } from '../../src/config/file/schema.ts';
import type { Conversation } from '../../src/conversation/types.ts';
import type { Feature } from '../../src/features/feature.ts';
import {
  type HttpEngine,
  requestOf,
} from '../../src/features/server-tools/tools/web-search/engine.ts';
import { anchorOf } from '../../src/manual/markdown.ts';
import type { Vendor } from '../../src/vendors/vendor.ts';
import { fences, prose, ROOT, read } from './files.ts';

const GUIDE = 'CONTRIBUTING.md';
const PAGES = [GUIDE, 'test/README.md', 'bench/README.md', 'SECURITY.md', 'examples/README.md'];
const folder = mkdtempSync(join(tmpdir(), 'hopgate-guide-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a worked example of the guide as if it stood at `path`. */
async function example<T>(path: string, start: string): Promise<T> {
  const code = fences(read(GUIDE), 'ts').find((one) => one.startsWith(start));
  if (code === undefined) throw new Error(`no example begins with ${start}`);
  const file = join(folder, path.replaceAll('/', '-'));
  const absolute = (_: string, from: string) =>
    `from '${normalize(join(ROOT, dirname(path), from))}'`;
  writeFileSync(file, code.replace(/from '(\.[^']+)'/g, absolute));
  return (await import(file)) as T;
}

test.each(PAGES)('%s names files and folders that are there', (page) => {
  const named = [...prose(read(page)).matchAll(/`((?:src|test|docs|scripts|bench)\/[^`\s]*)`/g)]
    .map(([, path]) => path!)
    // Capitals stand for a name that the reader chooses, `*` for several files.
    .filter((path) => !/[A-Z*…]/.test(path.replace('README.md', '')));
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('test/README.md names helpers that are there', () => {
  const named = [...prose(read('test/README.md')).matchAll(/`([a-z0-9-]+\/[\w/-]+\.ts)`/g)].map(
    ([, path]) => path!,
  );
  expect(named.length).toBeGreaterThan(10);
  expect(
    named.filter((path) => !existsSync(join(ROOT, 'test', path.replace(/^test\//, '')))),
  ).toEqual([]);
});

test('ARCHITECTURE.md lists every decision that the index lists', () => {
  // Other mentions stand in the middle of a line.
  const decisions = (page: string) =>
    [...read(page).matchAll(/^(?:- |\| )\[\d{4}\]\((?:docs\/decisions\/)?([\w-]+\.md)\)/gm)].map(
      ([, file]) => file!,
    );
  const index = decisions('docs/decisions/README.md');
  expect(index.length).toBeGreaterThan(30);
  expect(decisions('ARCHITECTURE.md')).toEqual(index);
  const files = [...new Bun.Glob('0*.md').scanSync({ cwd: join(ROOT, 'docs/decisions') })];
  expect(files.sort()).toEqual(index);
});

test('ARCHITECTURE.md names files of src that are there', () => {
  const rooms = [...new Bun.Glob('*/').scanSync({ cwd: join(ROOT, 'src'), onlyFiles: false })];
  expect(rooms).toContain('gateway');
  const path = new RegExp(`(?<![\\w/-])((?:${rooms.join('|')})/[\\w/-]+\\.ts)`, 'g');
  const named = [...read('ARCHITECTURE.md').matchAll(path)].map(([, file]) => file!);
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((file) => !existsSync(join(ROOT, 'src', file)))).toEqual([]);
});

test.each(PAGES)('links of %s lead somewhere', (page) => {
  const links = [...prose(read(page)).matchAll(/\]\((?!https?:)([^()\s]+)\)/g)].map(
    ([, to]) => to!,
  );
  const lost = links.filter((to) => {
    const [file = '', anchor] = to.split('#', 2);
    const target = normalize(join(dirname(page), file));
    if (!existsSync(join(ROOT, target))) return true;
    if (anchor === undefined) return false;
    const headings = [...prose(read(target)).matchAll(/^#{1,6} (.+)$/gm)];
    return !headings.some(([, heading]) => anchorOf(heading!) === anchor);
  });
  expect(lost).toEqual([]);
});

test('tests that the guide runs are there', () => {
  const shown = fences(read(GUIDE), 'sh').join('');
  const paths = [...shown.matchAll(/\btest\/\S+/g)].map(([path]) => path);
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('the vendor of the guide is reached, and its facts are known', async () => {
  const path = 'src/vendors/hosts/example.ts';
  const { example: vendor } = await example<{ example: Vendor }>(path, '/** Example: https');
  expect(vendor.presets?.example).toMatchObject({
    protocol: 'openai-chat',
    endpoints: { 'openai-chat': { baseUrl: 'https://api.example.com/v1', profile: 'example' } },
    discovered: true,
  });
  expect(vendor.profiles).toHaveProperty([vendor.presets!.example!.profile]);
});

test('the configuration key of the guide is one entry: default, check, type and name in the program', async () => {
  const code = fences(read(GUIDE), 'ts').find((one) =>
    one.includes('in the schema of the section'),
  );
  const [, entry] = code!.split('\n').map((line) => line.trim());
  const file = join(folder, 'section.ts');
  const from = (path: string) => join(ROOT, 'src/config', path);
  writeFileSync(
    file,
    `import { closed, seconds } from '${from('file/schema.ts')}';
     import { categories } from '${from('sections/categories.ts')}';
     export const section = closed('', { ...categories.properties, ${entry} });`,
  );
  const { section } = (await import(file)) as { section: Node };
  const used = /config\.categories\.(\w+)/.exec(code!)![1]!;
  const of = (value: unknown) => inProgram(section, check(section, value, new Set()).value);
  expect(of({})).toMatchObject({ [used]: 60_000, longcontextTokens: 60_000 });
  expect(of({ example_pause: 0.5 })).toMatchObject({ [used]: 500 });
  expect(check(section, { example_pause: '5 minutes' }, new Set()).problems).toMatchObject([
    { path: ['example_pause'], message: 'must be a number, not text: write 300 (seconds)' },
  ]);
  expect(check(section, { example_paus: 1 }, new Set()).problems).toMatchObject([
    { message: 'unknown key', suggestion: 'example_pause' },
  ]);
});

test('the search engine of the guide asks and reads', async () => {
  const path = 'src/features/server-tools/tools/web-search/engines/example.ts';
  const { example: engine } = await example<{ example: HttpEngine }>(path, '/** Example: an API');
  const query = { query: 'tides', count: 3, allowedDomains: [], blockedDomains: [], now: '' };
  const sent = requestOf(engine, query, { baseUrl: engine.baseUrl!, key: 'k', options: {} });
  expect([sent.url, sent.method]).toEqual(['https://search.example.com/v1/search', 'POST']);
  const results = [{ url: 'https://a.example/', title: 'A', text: 'B' }, { url: 7 }, 'nonsense'];
  expect(engine.read({ results }, query)).toEqual({
    hits: [{ url: 'https://a.example/', title: 'A', snippet: 'B' }],
  });
});

test('the feature of the guide changes what it should, with a note, and nothing else', async () => {
  const path = 'src/features/stop-limit/index.ts';
  const { stopLimit } = await example<{ stopLimit: Feature }>(path, '/** Limits stop sequences');
  const added: string[] = [];
  const context = { notes: { add: (name: string) => added.push(name) } } as never;
  const asked = (stop: readonly string[]) => ({ settings: { stop } }) as unknown as Conversation;
  const short = asked(['a']);
  expect(stopLimit.request?.(short, context)).toBe(short);
  expect(added).toEqual([]);
  const changed = stopLimit.request?.(asked([...'abcdef']), context);
  expect(changed?.settings.stop).toEqual([...'abcd']);
  expect(added).toEqual(['stop_limited']);
});

test('the command of the guide can be made', async () => {
  const path = 'src/cli/commands/example.ts';
  const { EXAMPLE } = await example<{ EXAMPLE: CommandSpec }>(path, '/** `hopgate example`');
  expect(EXAMPLE.name).toBe('example');
});

/** The structure of the sources: who may import whom, how files are named, what each dependency is for. */

import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dir, '..');
const transpiler = {
  ts: new Bun.Transpiler({ loader: 'ts' }),
  tsx: new Bun.Transpiler({ loader: 'tsx' }),
};

interface Source {
  /** From the root, with forward slashes: `src/lib/json/json.ts`. */
  readonly path: string;
  readonly text: string;
  /** Files of the project by path, packages by name; type imports too. */
  readonly imports: readonly string[];
}

// `import type` is erased before a scanner of imports sees it, so both kinds are read from the text.
const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^;'"]*?\bfrom\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g;

function resolve(from: string, specifier: string): string {
  return specifier.startsWith('.') ? normalize(join(dirname(from), specifier)) : specifier;
}

function read(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const found = new Set<string>();
  for (const [, a, b, c] of text.matchAll(IMPORT)) found.add(resolve(path, (a ?? b ?? c)!));
  const scanner = path.endsWith('x') ? transpiler.tsx : transpiler.ts;
  for (const one of scanner.scanImports(text)) {
    // The scanner takes every JSX for React's.
    if (!/^react(\/|$)/.test(one.path)) found.add(resolve(path, one.path));
  }
  return { path, text, imports: [...found] };
}

const sources = [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync({ cwd: ROOT })].sort().map(read);
const tests = [...new Bun.Glob('{test,scripts,bench}/**/*.ts').scanSync({ cwd: ROOT })].sort();
const isSource = (path: string) => path.startsWith('src/');

/** The room of a file: `lib`, `codecs/openai-chat`, …; '' for files that stand in src itself. */
function room(path: string): string {
  const [, first, second, ...rest] = path.split('/');
  if (second === undefined) return '';
  const nested = (first === 'codecs' || first === 'features') && rest.length > 0;
  return nested ? `${first}/${second}` : first!;
}

const INTERFACES = ['src/codecs/codec.ts', 'src/features/feature.ts', 'src/samples/recording.ts'];
/** What the gateway and the rooms of operations know of each other. */
const ACCOUNTING = ['src/keys/principal.ts', 'src/limits/limits.ts', 'src/gateway/account.ts'];
/** What every codec may import beside the model. */
const CODEC_FILES = ['src/codecs/codec.ts', 'src/codecs/lint.ts', 'src/codecs/serve.ts'];
/** Rooms that may import the interfaces of codecs, features and the recorder, and nothing concrete. */
const KNOW_INTERFACES = ['gateway', 'endpoints', 'samples', 'ui'];
/** Rooms that may import {@link ACCOUNTING}. */
const KNOW_ACCOUNTING = [
  'gateway',
  'endpoints',
  'features',
  'keys',
  'limits',
  'money',
  'routing',
  'samples',
  'ui',
];
/** The rooms by which requests and commands come in: they may import all but concrete codecs and features. */
const ENTRANCES = ['server', 'cli', 'admin'];

/** Rooms that each room may import; it may always import itself. */
const MAY: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  conversation: ['lib'],
  vendors: ['lib', 'conversation'],
  manual: ['lib', 'vendors'],
  codecs: ['lib', 'conversation', 'vendors'],
  features: ['lib', 'conversation', 'state'],
  config: ['lib', 'conversation', 'vendors'],
  telemetry: ['lib'],
  state: ['lib', 'config'],
  keys: ['lib', 'conversation', 'config', 'telemetry', 'state'],
  limits: ['lib', 'conversation', 'config', 'telemetry', 'state'],
  money: ['lib', 'conversation', 'config', 'telemetry', 'state'],
  routing: ['lib', 'conversation', 'vendors', 'config', 'telemetry'],
  upstream: ['lib', 'conversation', 'vendors', 'config', 'telemetry', 'state'],
  gateway: ['lib', 'conversation', 'routing', 'upstream', 'telemetry'],
  endpoints: ['lib', 'conversation', 'routing', 'upstream', 'telemetry', 'gateway', 'state'],
  samples: ['lib', 'conversation', 'config', 'telemetry', 'state', 'money'],
  ui: ['lib', 'conversation', 'config', 'telemetry', 'money', 'samples', 'server'],
};

// What runs in the browser knows the API's types (and what those speak of), and nothing of the server.
const PAGE = 'src/ui/page/';
const PAGE_MAY = [
  'src/admin/api.ts',
  'src/ui/api/api.ts',
  'src/samples/sample.ts',
  'src/conversation/agent-parts.ts',
  'src/conversation/types.ts',
  'src/conversation/usage.ts',
  'src/conversation/notes.ts',
  'src/conversation/events.ts',
  'src/lib/json/json.ts',
  'src/lib/json/pointer.ts',
  'src/lib/text/amounts.ts',
  'src/lib/text/quoted-words.ts',
  'src/lib/text/text-diff.ts',
  'src/samples/store/row-order.ts',
];

/** Why `from` may not import `to`; undefined where it may. */
function verdict(from: Source, to: string): string | undefined {
  const here = room(from.path);
  const top = here.split('/')[0]!;
  // The wiring knows everything.
  if (here === '' || top === 'app' || !isSource(to)) return undefined;
  if (from.path.startsWith(PAGE) && !to.startsWith(PAGE)) {
    return PAGE_MAY.includes(to) ? undefined : 'the page is alone';
  }
  const there = room(to);
  if (there === here) return undefined;
  if (there === '' || there === 'app') return 'only main and app know how things are put together';
  if (ENTRANCES.includes(top)) {
    return there.includes('/') ? `${top} knows no concrete codec or feature` : undefined;
  }
  if (KNOW_INTERFACES.includes(top) && INTERFACES.includes(to)) return undefined;
  if (KNOW_ACCOUNTING.includes(top) && ACCOUNTING.includes(to)) return undefined;
  if (top === 'codecs' && CODEC_FILES.includes(to)) return undefined;
  if (top === 'features' && INTERFACES.slice(1).includes(to)) return undefined;
  const allowed = MAY[top];
  if (allowed === undefined) return `the room ${top} is not in the table`;
  return allowed.includes(there) ? undefined : `${here} may not import ${there || 'src'}`;
}

const broken = (check: (source: Source, to: string) => string | undefined) =>
  sources.flatMap((source) =>
    source.imports.flatMap((to) => {
      const why = check(source, to);
      return why === undefined ? [] : [`${source.path} → ${to}: ${why}`];
    }),
  );

describe('who may import whom', () => {
  test('there is something to look at', () => {
    expect(sources.length).toBeGreaterThan(20);
    expect(sources.some((source) => source.imports.includes('src/lib/json/json.ts'))).toBe(true);
  });

  test('rooms import only what the table allows', () => {
    expect(broken(verdict)).toEqual([]);
  });

  test('relative imports lead to files that exist, by their full name', () => {
    const missing = broken((_source, to) =>
      isSource(to) && !existsSync(join(ROOT, to)) ? 'no such file' : undefined,
    );
    expect(missing).toEqual([]);
  });

  test('the table itself refuses what it should', () => {
    const from = (path: string): Source => ({ path, text: '', imports: [] });
    const refused: [string, string][] = [
      ['src/lib/json/json.ts', 'src/conversation/types.ts'],
      ['src/conversation/types.ts', 'src/codecs/codec.ts'],
      ['src/codecs/openai-chat/a.ts', 'src/codecs/openai-responses/b.ts'],
      ['src/codecs/openai-chat/a.ts', 'src/features/feature.ts'],
      ['src/codecs/openai-chat/plugin.ts', 'src/server/receive.ts'],
      ['src/codecs/openai-chat/plugin.ts', 'src/server/receive.ts'],
      ['src/features/tool-pairing/a.ts', 'src/features/vision/b.ts'],
      ['src/features/tool-pairing/a.ts', 'src/codecs/codec.ts'],
      ['src/gateway/gateway.ts', 'src/features/tool-pairing/index.ts'],
      ['src/gateway/gateway.ts', 'src/config/config.ts'],
      ['src/gateway/gateway.ts', 'src/app/features.ts'],
      ['src/gateway/gateway.ts', 'src/samples/sample.ts'],
      ['src/features/vision/a.ts', 'src/samples/record/recorder.ts'],
      ['src/routing/index.ts', 'src/upstream/a.ts'],
      ['src/server/a.ts', 'src/codecs/openai-chat/index.ts'],
      ['src/server/process/run.ts', 'src/app.ts'],
      ['src/codecs/openai-chat/plugin.ts', 'src/server/receive.ts'],
      ['src/lib/json/json.ts', 'src/main.ts'],
      ['src/manual/a.ts', 'src/conversation/types.ts'],
      ['src/cellar/a.ts', 'src/lib/json/json.ts'],
      ['src/samples/a.ts', 'src/cli/command.ts'],
      ['src/samples/a.ts', 'src/features/vision/index.ts'],
      ['src/ui/a.ts', 'src/codecs/openai-chat/index.ts'],
      ['src/ui/a.ts', 'src/cli/command.ts'],
      ['src/ui/page/a.ts', 'src/ui/api/guard.ts'],
    ];
    for (const [path, to] of refused)
      expect([path, to, verdict(from(path), to)]).not.toContain(undefined);
    const taken: [string, string][] = [
      ['src/codecs/openai-chat/a.ts', 'src/codecs/openai-chat/b.ts'],
      ['src/codecs/openai-chat/a.ts', 'src/codecs/codec.ts'],
      ['src/codecs/openai-chat/plugin.ts', 'src/codecs/serve.ts'],
      ['src/gateway/gateway.ts', 'src/features/feature.ts'],
      ['src/gateway/gateway.ts', 'src/samples/recording.ts'],
      ['src/features/vision/a.ts', 'src/samples/recording.ts'],
      ['src/server/a.ts', 'src/gateway/gateway.ts'],
      ['src/cli/a.ts', 'src/samples/replay/replay.ts'],
      ['src/ui/a.ts', 'src/codecs/codec.ts'],
      ['src/ui/page/a.ts', 'src/ui/api/api.ts'],
      ['src/app/features.ts', 'src/features/tool-pairing/index.ts'],
    ];
    for (const [path, to] of taken)
      expect([path, to, verdict(from(path), to)]).toContain(undefined);
  });

  test('the page uses nothing that only Bun or Node has', () => {
    const page = sources.filter(({ path }) => path.startsWith(PAGE));
    const wrong = page.filter(({ text }) => /\b(?:Bun|Buffer|process|require)\b[.(]/.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('elysia only in the app, the server, plugins and the API of the page', () => {
    const allowed = /^src\/(app\.ts|server\/[a-z-]+\.ts|ui\/api\/.*\.ts|.*\/plugin\.ts)$/;
    const wrong = broken((source, to) =>
      /^(elysia|@elysiajs\/)/.test(to) && !allowed.test(source.path) ? 'not here' : undefined,
    );
    expect(wrong).toEqual([]);
  });

  test('nothing that the start loads imports the API of the page', () => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    const loaded = new Set<string>();
    const visit = (path: string) => {
      const source = byPath.get(path);
      if (source === undefined || loaded.has(path)) return;
      loaded.add(path);
      // Type imports are gone by then, and dynamic imports come later.
      for (const { kind, path: to } of transpiler.ts.scanImports(source.text)) {
        if (kind === 'import-statement') visit(resolve(path, to));
      }
    };
    visit('src/app.ts');
    const deferred = broken((source, to) =>
      loaded.has(source.path) && /^src\/ui\/api\/.*routes\.ts$/.test(to) ? '' : undefined,
    );
    expect(loaded.size).toBeGreaterThan(50);
    expect(deferred).toEqual([]);
  });

  test('what no model request needs is loaded when it is asked for, not with the program', () => {
    const ON_DEMAND = ['features/memory/api', 'admin', 'ui', 'manual'].map(
      (room) => `${room}/plugin.ts`,
    );
    const statically = (text: string, file: string) =>
      new RegExp(
        `^\\s*(?:import|export)\\b(?! type\\b)[^;(]*from\\s*['"][^'"]*${file}['"]`,
        'm',
      ).test(text);
    for (const file of ON_DEMAND) {
      const importers = sources.filter(({ imports }) => imports.includes(`src/${file}`));
      expect(importers.map(({ path }) => path)).toContain('src/app.ts');
      const early = importers.filter(({ text }) => statically(text, file));
      expect(early.map(({ path }) => path)).toEqual([]);
    }
  });

  test('packages that `import()` loads are ES modules: minified, the call for CommonJS can call the wrong thing', () => {
    const loaded = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/(?<!typeof )import\('((?!bun:|node:)[a-z@][^']*)'\)/g)].map(
        ([, name]) => ({
          path,
          name: name!,
        }),
      ),
    );
    expect(loaded.length).toBeGreaterThan(5);
    /** As the bundler finds it: by the field `module`, or the file that the conditions of an import name. */
    const isModule = (name: string) => {
      const manifest = join(ROOT, 'node_modules', name, 'package.json');
      if (existsSync(manifest) && 'module' in JSON.parse(readFileSync(manifest, 'utf8')))
        return true;
      return /\bexport\s*[{*]|^\s*export\b/m.test(
        readFileSync(Bun.resolveSync(name, ROOT), 'utf8'),
      );
    };
    expect(isModule('iovalkey')).toBe(false);
    expect(loaded.filter(({ name }) => !isModule(name))).toEqual([]);
  });

  test('what sends telemetry is loaded only where a collector is configured', () => {
    const wrong = broken((source, to) =>
      to.startsWith('@opentelemetry/') && !source.path.startsWith('src/telemetry/otel/')
        ? 'not here'
        : undefined,
    );
    expect(wrong).toEqual([]);
    const early = sources
      .filter(({ path }) => !path.startsWith('src/telemetry/otel/'))
      .filter(({ text }) =>
        /^\s*(?:import|export)\b(?! type\b)[^;(]*from\s*['"][^'"]*\/otel\//m.test(text),
      );
    expect(early.map(({ path }) => path)).toEqual([]);
    const lazily = sources.filter(({ imports }) => imports.includes('src/telemetry/otel/index.ts'));
    expect(lazily.map(({ path }) => path)).toEqual(['src/app/telemetry/index.ts']);
  });

  test('bun:sqlite only in its driver and in store files', () => {
    const mayUse = /(^src\/state\/sql\/sqlite|(\/|-)store)\.ts$/;
    const wrong = broken((source, to) =>
      to === 'bun:sqlite' && !mayUse.test(source.path) ? 'not here' : undefined,
    );
    expect(wrong).toEqual([]);
  });

  test('the environment is read only in config and main', () => {
    const wrong = sources
      .filter(({ path }) => !path.startsWith('src/config/') && path !== 'src/main.ts')
      // NODE_ENV is a constant that the build puts in, not the environment.
      .filter(({ text }) => /\b(process|Bun)\.env\b(?!\.NODE_ENV)/.test(text))
      .map(({ path }) => path);
    expect(wrong).toEqual([]);
  });

  test('only the wiring names concrete codecs and features', () => {
    const wrong = sources
      .filter(({ path }) => room(path) === '' && path !== 'src/app.ts')
      .flatMap(({ path, imports }) =>
        imports
          .filter((to) => isSource(to) && room(to).includes('/'))
          .map((to) => `${path} → ${to}`),
      );
    expect(wrong).toEqual([]);
  });

  test('main exports nothing: with bytecode an exporting entry is taken for a server', () => {
    const main = sources.find(({ path }) => path === 'src/main.ts');
    expect(main).toBeDefined();
    expect(transpiler.ts.scan(main!.text).exports).toEqual([]);
  });
});

describe('the shape of the sources', () => {
  test('no file imports itself by way of others, types included', () => {
    expect(circles(new Map(sources.map(({ path, imports }) => [path, imports])))).toEqual([]);
    const loop = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['b', 'd']],
      ['d', []],
    ]);
    expect(circles(loop)).toEqual([['b', 'c']]);
  });
});

/** The groups of files that reach each other, each sorted (Tarjan's strongly connected components). */
function circles(graph: ReadonlyMap<string, readonly string[]>): readonly string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!graph.has(next)) continue;
      if (!index.has(next)) visit(next);
      else if (!stack.includes(next)) continue;
      low.set(node, Math.min(low.get(node)!, low.get(next)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) found.push(group.sort());
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return found;
}

/** Names that an older rule let in. Each list may only get shorter: what is gone is taken out of it. */
const STILL_ONE_CLASS = [
  'AnswerKind',
  'ConnectionControl',
  'Exporter',
  'FrameWriter',
  'IdleSocket',
  'KeyValue',
  'Masking',
  'Objects',
  'Patience',
  'PendingResponse',
  'RetryContext',
  'SessionPort',
  'Sql',
  'Upgrader',
];

const SHRUNK = { added: [], goneButListed: [] };

const onlyShrinks = (found: readonly string[], listed: readonly string[]) => ({
  added: [...new Set(found)].filter((one) => !listed.includes(one)),
  goneButListed: listed.filter((one) => !found.includes(one)),
});

/**
 * Interfaces that one class alone implements, in the room that declares them. At the border of a room an interface
 * says what the room needs; inside it is a second declaration of the class. One that object literals
 * implement, too, or that another extends, is none of these.
 */
function interfacesOfOneClass(all: readonly Source[]): readonly string[] {
  const text = all.map((source) => source.text).join('\n');
  const rooms = new Map<string, string[]>();
  for (const source of all) {
    for (const [, names] of source.text.matchAll(/\bclass\b[^{]*?\bimplements\b([^{]*)\{/g)) {
      for (const name of names!.replace(/<.*>/g, '').split(',')) {
        rooms.set(name.trim(), [...(rooms.get(name.trim()) ?? []), room(source.path)]);
      }
    }
  }
  const made = (name: string) =>
    new RegExp(
      `: ${name}(<[^>]*>)? = |\\): (Promise<)?${name}\\b[^;]*(\\{|=>)|(satisfies|as|Omit<|extends) ?${name}\\b|extends [\\w<>, ]*, ${name}\\b|\\b${name}(<[^>]*>)? => `,
    ).test(text);
  return all.flatMap((source) =>
    [...source.text.matchAll(/^(?:export )?interface (\w+)/gm)]
      .map(([, name]) => name!)
      .filter((name) => rooms.get(name)?.join() === room(source.path) && !made(name)),
  );
}

describe('the shape of files', () => {
  test("a file's first comment says what its name does not, and does not begin with What", () => {
    const what = /^(#!.*\n)?\s*\/\*\*?[\s*]*What\b/;
    const written = [...sources, ...tests.filter((path) => !path.startsWith('test/')).map(read)];
    const found = written.filter(({ text }) => what.test(text)).map(({ path }) => path);
    expect(found).toEqual([]);
  });

  test('no folder and no file is called shared or moving: state has one form, whoever uses it', () => {
    const name = /^(.*?\/(?:[a-z0-9]+-)*(?:shared|moving)(?:-[a-z0-9]+)*)(?:\.tsx?$|\/)/;
    expect(sources.map(({ path }) => path).filter((path) => name.test(path))).toEqual([]);
  });

  test('an interface within a room has more than one class, or is the class', () => {
    const found = interfacesOfOneClass(sources);
    expect(onlyShrinks(found, STILL_ONE_CLASS)).toEqual(SHRUNK);
    const source = (path: string, text: string): Source => ({ path, text, imports: [] });
    const bank = source('src/state/a.ts', 'export interface Bank {\n}');
    const one = source('src/state/b.ts', 'export class A<T> extends B implements Bank {}');
    const two = source('src/state/c.ts', 'class C implements Other, Bank {}');
    expect(interfacesOfOneClass([bank, one])).toEqual(['Bank']);
    expect(interfacesOfOneClass([bank, one, two])).toEqual([]);
    expect(interfacesOfOneClass([bank, { ...one, path: 'src/money/b.ts' }])).toEqual([]);
    expect(interfacesOfOneClass([bank, one, source('src/a.ts', 'const b: Bank = {};')])).toEqual(
      [],
    );
  });

  test('names are kebab-case and say a job', () => {
    const named = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.tsx?$/;
    const vague = /(^|[-/])(utils?|helpers?|services?|managers?|misc|common)([-./]|$)/;
    const wrong = [...sources.map(({ path }) => path), ...tests].filter(
      (path) =>
        !named.test(path.split('/').at(-1)!) || vague.test(path.replace('/commands/service/', '/')),
    );
    expect(wrong).toEqual([]);
  });

  test('imports name their file with its extension', () => {
    const bare = sources.flatMap(({ path, imports }) =>
      imports.filter((to) => isSource(to) && !/\.[a-z]+$/.test(to)).map((to) => `${path} → ${to}`),
    );
    expect(bare).toEqual([]);
  });
});

describe('dependencies', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const all = { ...manifest.dependencies, ...manifest.devDependencies };

  test('each is pinned to one version', () => {
    const loose = Object.entries(all).filter(
      ([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    );
    expect(loose).toEqual([]);
  });

  const page = join(ROOT, 'ARCHITECTURE.md');
  test.skipIf(!existsSync(page))('each has its reason in ARCHITECTURE.md', () => {
    const text = readFileSync(page, 'utf8');
    expect(Object.keys(all).filter((name) => !text.includes(name))).toEqual([]);
  });

  test('what the sources import is declared', () => {
    const packages = sources
      .flatMap(({ imports }) => imports)
      .filter((to) => !isSource(to) && !/^(bun(:|$)|node:)/.test(to) && !/\.[a-z]+$/.test(to))
      .map((to) =>
        to
          .split('/')
          .slice(0, to.startsWith('@') ? 2 : 1)
          .join('/'),
      );
    const undeclared = [...new Set(packages)].filter((name) => !(name in manifest.dependencies));
    expect(undeclared).toEqual([]);
  });
});

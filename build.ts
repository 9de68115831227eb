/** Builds the executable: `bun build.ts [--target linux-x64 …]`; the host's own target by default. */

import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BunPlugin } from 'bun';
import manifest from './package.json' with { type: 'json' };

export const TARGETS = [
  'linux-x64',
  'linux-arm64',
  'linux-x64-musl',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
] as const;
export type Target = (typeof TARGETS)[number];

const root = import.meta.dir;

/** `linux-x64` and so on: what this process runs on. */
export function hostTarget(): string {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } };
  const musl = process.platform === 'linux' && report?.header?.glibcVersionRuntime === undefined;
  return `${process.platform}-${process.arch}${musl ? '-musl' : ''}`;
}

function commit(): string {
  const { success, stdout } = Bun.spawnSync(['git', 'rev-parse', 'HEAD'], { cwd: root });
  return success ? stdout.toString().trim() : '';
}

export interface Built {
  /** `dist/<target>/hopgate` */
  readonly outfile: string;
  /** What was bundled, as paths from the root. */
  readonly inputs: readonly string[];
}

/**
 * Minified, `import()` of CommonJS becomes `.then((m)=>x(m.default))`, and an `x` that is called `m`, too, calls the
 * module. It is left to chance, so no such call may be in a program; our own sources load such packages by a module.
 */
const UNSAFE_IMPORT = /\.then\(\(m\)=>[\w$]{1,20}\(m\.default/;

/** A package of CommonJS that does so itself. */
const REQUIRES: BunPlugin = {
  name: 'requires',
  setup(builder) {
    builder.onLoad({ filter: /\/gaxios\/build\/cjs\/src\/gaxios\.js$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      return { contents: text.replace(/await import\(('[\w-]+')\)/g, 'require($1)'), loader: 'js' };
    });
  },
};

/** @throws Error where a program has an {@link UNSAFE_IMPORT} */
export async function refuseUnsafeImports(outfile: string): Promise<void> {
  const text = Buffer.from(await Bun.file(outfile).arrayBuffer());
  for (let at = text.indexOf('.then((m)=>'); at >= 0; at = text.indexOf('.then((m)=>', at + 1)) {
    const call = text.toString('latin1', at, at + 100);
    if (UNSAFE_IMPORT.test(call)) throw new Error(`import() of a CommonJS package: ${call}`);
  }
}

export interface BuildOptions {
  /** A bun for the target; left out, Bun fetches it (the host's is at hand). */
  readonly runtime?: string | undefined;
  /** Functions keep their names and are compiled when they run, as a profiler wants it; into `dist/readable`. */
  readonly readable?: boolean;
}

/**
 * Builds one executable. Its file's name is embedded in it: always `hopgate`, so that builds are reproducible.
 * @throws AggregateError with what the bundler says
 */
export async function build(
  target: Target,
  { runtime, readable = false }: BuildOptions = {},
): Promise<Built> {
  const outfile = join(root, 'dist', readable ? 'readable' : target, 'hopgate');
  // Maps of earlier builds would stay beside it for ever.
  rmSync(dirname(outfile), { recursive: true, force: true });
  mkdirSync(dirname(outfile), { recursive: true });
  // The paths in the source map are relative to the working directory.
  process.chdir(root);
  const result = await Bun.build({
    // A thread begins at a file of its own.
    entrypoints: ['src/main.ts', 'src/money/keeper-thread.ts'].map((path) => join(root, path)),
    root,
    // keepNames: error and class names show in logs.
    minify: { whitespace: true, syntax: true, identifiers: !readable, keepNames: true },
    bytecode: !readable,
    // The process that only replaces itself, and commands that need little, load little.
    splitting: true,
    format: 'esm',
    sourcemap: 'linked',
    plugins: [REQUIRES],
    metafile: true,
    // Without it NODE_ENV is baked as "development".
    define: {
      'process.env.NODE_ENV': '"production"',
      HOPGATE_VERSION: JSON.stringify(manifest.version),
      HOPGATE_COMMIT: JSON.stringify(commit()),
      // CommonJS packages would have the folder of this checkout baked in.
      __dirname: '"/"',
      __filename: '"/index.js"',
    },
    compile: {
      // The host's own runtime needs no download.
      ...(target === hostTarget() ? {} : { target: `bun-${target}` as Bun.Build.CompileTarget }),
      ...(runtime === undefined ? {} : { executablePath: runtime }),
      outfile,
      // Neither the working directory's .env nor its bunfig.toml (whose preload is code) is read.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  });
  if (!result.success) throw new AggregateError(result.logs, `building ${target} failed`);
  if (!readable) await refuseUnsafeImports(outfile);
  return { outfile, inputs: Object.keys(result.metafile?.inputs ?? {}) };
}

/** The host's binary also goes to `dist/hopgate`, by way of a rename: the file that is there may be running. */
export function publish(outfile: string): void {
  copyFileSync(outfile, join(root, 'dist', 'hopgate.new'));
  renameSync(join(root, 'dist', 'hopgate.new'), join(root, 'dist', 'hopgate'));
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { target: { type: 'string', multiple: true }, all: { type: 'boolean' } },
  });
  const host = hostTarget();
  const wanted = values.all ? [...TARGETS] : (values.target ?? [host]);
  for (const target of wanted) {
    if (!TARGETS.includes(target as Target)) {
      console.error(`Unknown target ${target}; known are ${TARGETS.join(', ')}.`);
      process.exit(2);
    }
    const { outfile } = await build(target as Target);
    if (target === host) publish(outfile);
    const size = (Bun.file(outfile).size / 1024 / 1024).toFixed(1);
    console.log(`${outfile.slice(root.length + 1)}  ${size} MB`);
  }
}

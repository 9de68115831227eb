/** The release: `bun scripts/release.ts [--target linux-x64 …] [--base-url URL] [--fast]` fills dist/release. */

import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, hostTarget, publish, TARGETS, type Target } from '../build.ts';
import type { Bundled } from './release/bundled.ts';
import { archiveContents, archiveName, source } from './release/contents.ts';
import { debianPackage } from './release/deb.ts';
import { BREWED, formula } from './release/formula.ts';
import { measure } from './release/measure.ts';
import { notices } from './release/notices.ts';
import { billOfMaterials, bundledPackages, product } from './release/packages.ts';
import { UNNAMED } from './release/publisher.ts';
import { runtimeFor } from './release/runtime.ts';
import { gzip, tar, withFolders } from './release/tar.ts';

const ROOT = join(import.meta.dir, '..');
const DEBIAN: Readonly<Partial<Record<Target, 'amd64' | 'arm64'>>> = {
  'linux-x64': 'amd64',
  'linux-arm64': 'arm64',
};

const { values } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    'base-url': { type: 'string' },
    // Archives are compressed a little: for tests.
    fast: { type: 'boolean', default: false },
    out: { type: 'string', default: join(ROOT, 'dist/release') },
  },
});

const unknown = values.target?.find((name) => !TARGETS.includes(name as Target));
if (unknown !== undefined) {
  console.error(`Unknown target ${unknown}; known are ${TARGETS.join(', ')}.`);
  process.exit(2);
}
const wanted = (values.target ?? TARGETS) as readonly Target[];
const out = values.out;
const level = values.fast ? 1 : 9;
const about = product();
const dirty = Bun.spawnSync(['git', 'status', '--porcelain'], { cwd: ROOT }).stdout.length > 0;
if (dirty)
  console.error(`WARNING: there are uncommitted changes; this is not commit ${about.commit}.`);

if (UNNAMED.length > 0) {
  console.error(`WARNING: package.json still has placeholders: ${UNNAMED.join(', ')}.`);
}

const sums = new Map<string, string>();
const sum = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

function put(name: string, bytes: Uint8Array | string, words = ''): void {
  const data = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes;
  writeFileSync(join(out, name), data);
  sums.set(name, sum(data));
  console.log(
    `${name.padEnd(44)} ${(data.length / 1024 / 1024).toFixed(2).padStart(7)} MB${words}`,
  );
}

/** Builds and packs one target; what was bundled. */
async function release(target: Target): Promise<readonly Bundled[]> {
  const { outfile, inputs } = await build(target, { runtime: runtimeFor(target) });
  if (target === hostTarget()) publish(outfile);
  const binary = readFileSync(outfile);
  const packages = bundledPackages(inputs);
  const text = notices(packages);
  const entries = archiveContents({ target, version: about.version, binary, notices: text });
  const size = `  (executable ${(binary.length / 1024 / 1024).toFixed(1)} MB)`;
  put(
    `${archiveName(about.version, target)}.tar.gz`,
    gzip(tar(withFolders(entries), about.seconds), level),
    size,
  );
  const arch = DEBIAN[target];
  if (arch !== undefined) {
    const { version, seconds } = about;
    put(
      `hopgate_${version}_${arch}.deb`,
      debianPackage({ version, arch, binary, notices: text, seconds, level }),
    );
  }
  return packages;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const skipped: string[] = [];
let packages: readonly Bundled[] | undefined;
for (const target of wanted) {
  try {
    packages = await release(target);
  } catch (thrown) {
    // The bundler's own words are inside.
    const inner = thrown instanceof AggregateError ? thrown.errors.map(String) : [];
    const why = [thrown instanceof Error ? thrown.message : String(thrown), ...inner].join('\n  ');
    skipped.push(target);
    console.error(`SKIPPED ${target}: ${why}`);
  }
}
if (packages !== undefined) {
  put('sbom.cdx.json', billOfMaterials(packages, about, about.seconds));
  put('install.sh', source('packaging/install.sh'));
  chmodSync(join(out, 'install.sh'), 0o755);
}
const archives = new Map(
  BREWED.map(
    (target) => [target, sums.get(`${archiveName(about.version, target)}.tar.gz`)!] as const,
  ),
);
if ([...archives.values()].every((value) => value !== undefined)) {
  put(
    'hopgate.rb',
    formula({ version: about.version, baseUrl: values['base-url'], sums: archives }),
  );
} else if (values.target === undefined) {
  skipped.push('hopgate.rb');
  console.error(
    'SKIPPED hopgate.rb: it needs the archives of macOS and Linux, both architectures.',
  );
} else console.log('hopgate.rb is made when all targets are built.');
const lines = [...sums]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([name, hex]) => `${hex}  ${name}\n`);
writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
if (wanted.includes(hostTarget() as Target) && !skipped.includes(hostTarget())) {
  const { size, start } = await measure(join(ROOT, 'dist/hopgate'));
  console.log(
    `this machine's executable: ${size.toFixed(1)} MB, first answer after ${start.toFixed(0)} ms`,
  );
}
process.exit(skipped.length === 0 ? 0 : 1);

/** Adds to package-lock.json the optional packages of other platforms that npm left out, without which `npm ci` refuses it. */

import { join } from 'node:path';

// npm writes only the optional packages that the registry it asked could give; a clean install
// elsewhere then finds the lock file out of step with package.json and stops. An entry by version is
// enough: what is not for the platform at hand is never fetched.
const FILE = join(import.meta.dir, '../package-lock.json');

interface Entry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'ppc64', 'riscv64', 's390x', 'x64'];

/** The entry of a platform's package, read from its name: `cli-linux-arm64-musl`. */
function entryFor(name: string, version: string, dev: boolean | undefined): Entry {
  const words = name.split('/').at(-1)!.split('-');
  const os = SYSTEMS.filter((one) => words.includes(one));
  const cpu = PROCESSORS.filter((one) => words.includes(one));
  return {
    version,
    ...(cpu.length > 0 ? { cpu } : {}),
    ...(dev ? { dev } : {}),
    ...(words.includes('musl') ? { libc: ['musl'] } : {}),
    ...(words.includes('gnu') ? { libc: ['glibc'] } : {}),
    optional: true,
    ...(os.length > 0 ? { os } : {}),
  };
}

const lock = (await Bun.file(FILE).json()) as { packages: Record<string, Entry> };
const missing = Object.values(lock.packages).flatMap((parent) =>
  Object.entries(parent.optionalDependencies ?? {})
    .filter(([name, version]) => !lock.packages[`node_modules/${name}`] && /^\d/.test(version))
    .map(
      ([name, version]) => [`node_modules/${name}`, entryFor(name, version, parent.dev)] as const,
    ),
);
const all = Object.entries({ ...lock.packages, ...Object.fromEntries(missing) });
lock.packages = Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
await Bun.write(FILE, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${missing.length} entries added to package-lock.json`);

/** Which packages are inside the executable, and the bill of materials that names them. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bundled } from './bundled.ts';
import { RUNTIME_PARTS } from './notices.ts';
import { PUBLISHER } from './publisher.ts';

const ROOT = join(import.meta.dir, '../..');

/** The packages that bundled files belong to, sorted. `inputs` are paths from the root. */
export function bundledPackages(inputs: readonly string[]): readonly Bundled[] {
  const folders = new Set<string>();
  for (const input of inputs) {
    const found = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input);
    if (found) folders.add(found[0]);
  }
  return [...folders]
    .map(read)
    .sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1));
}

function read(folder: string): Bundled {
  const path = join(ROOT, folder);
  const { name, version, license } = JSON.parse(
    readFileSync(join(path, 'package.json'), 'utf8'),
  ) as {
    name: string;
    version: string;
    license?: string;
  };
  if (license === undefined) throw new Error(`${name} names no licence`);
  return { name, version, license, text: licenceText(path) };
}

/** '' where a package brings none. Some say it in the last section of their README. */
function licenceText(path: string): string {
  const entries = readdirSync(path);
  const file = entries.find((entry) => /^(licen[cs]e|copying)(\.|-|$)/i.test(entry));
  if (file !== undefined) return readFileSync(join(path, file), 'utf8').trim();
  const readme = entries.find((entry) => /^readme\.md$/i.test(entry));
  if (readme === undefined) return '';
  const section = readFileSync(join(path, readme), 'utf8').split(/^#+ *licen[cs]e *$/im)[1] ?? '';
  const words = section.split(/^#+ /m)[0]!.trim();
  return /copyright/i.test(words) && /permission/i.test(words) ? words : '';
}

/** A CycloneDX 1.6 bill of materials. `seconds`: the commit's time; `commit` may be ''. */
export function billOfMaterials(
  packages: readonly Bundled[],
  product: { readonly version: string; readonly license: string; readonly commit: string },
  seconds: number,
): string {
  const component = ({ name, version, license }: Omit<Bundled, 'text'>, type = 'library') => {
    // %40 is how a package URL spells the @ of a scope.
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return { type, 'bom-ref': purl, name, version, licenses: [licenseOf(license)], purl };
  };
  const runtime = {
    ...component({ name: 'bun', version: Bun.version, license: 'MIT' }, 'platform'),
    components: RUNTIME_PARTS.map(({ name, version, license, source }) => ({
      type: 'library',
      name,
      ...(version === undefined ? {} : { version }),
      licenses: [licenseOf(license)],
      externalReferences: [{ type: 'vcs', url: source }],
    })),
  };
  const parts = [...packages.map((one) => component(one)), runtime];
  const root = {
    type: 'application',
    'bom-ref': `hopgate@${product.version}`,
    name: 'hopgate',
    version: product.version,
    licenses: [licenseOf(product.license)],
    authors: [{ name: PUBLISHER.name }],
    externalReferences: [
      { type: 'website', url: PUBLISHER.homepage },
      { type: 'vcs', url: PUBLISHER.repository },
      { type: 'issue-tracker', url: PUBLISHER.bugs },
    ],
  };
  return `${JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      version: 1,
      metadata: {
        timestamp: new Date(seconds * 1000).toISOString(),
        component: root,
        ...(product.commit === ''
          ? {}
          : { properties: [{ name: 'commit', value: product.commit }] }),
      },
      components: parts,
      dependencies: [{ ref: root['bom-ref'], dependsOn: parts.map((part) => part['bom-ref']) }],
    },
    null,
    2,
  )}\n`;
}

const licenseOf = (license: string) =>
  /\s/.test(license) ? { expression: license } : { license: { id: license } };

/** The version that package.json says, the licence, and where the sources come from. */
export function product(): { version: string; license: string; commit: string; seconds: number } {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
    license: string;
  };
  const git = (...args: string[]) => {
    const { success, stdout } = Bun.spawnSync(['git', ...args], { cwd: ROOT });
    return success ? stdout.toString().trim() : '';
  };
  const given = process.env.SOURCE_DATE_EPOCH;
  const seconds = Number(given ?? git('log', '-1', '--format=%ct'));
  if (!(seconds > 0)) throw new Error('not in a git checkout: set SOURCE_DATE_EPOCH');
  return {
    version,
    license,
    commit: existsSync(join(ROOT, '.git')) ? git('rev-parse', 'HEAD') : '',
    seconds,
  };
}

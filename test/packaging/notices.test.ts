/** The notices: full licence texts, sources of LGPL parts, and no package without its text. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { licensesIn, licenseText, notices, RUNTIME_PARTS } from '../../scripts/release/notices.ts';
import { billOfMaterials } from '../../scripts/release/packages.ts';
import { PUBLISHER } from '../../scripts/release/publisher.ts';

const text = notices([{ name: 'one', version: '1.0.0', license: 'MIT', text: 'Its own words.' }]);

describe('the notices', () => {
  test('the notices hold every licence of the runtime, in full', () => {
    const ids = new Set(RUNTIME_PARTS.flatMap(({ license }) => licensesIn(license)));
    expect(ids.size).toBeGreaterThan(8);
    for (const id of ids) expect(text).toContain(`\n${id}\n\n${licenseText(id)}\n`);
    // The full text, not a summary.
    expect(text).toContain('How to Apply These Terms to Your New Libraries');
    expect(text).toContain('END OF TERMS AND CONDITIONS');
  });

  test('the notices hold no unused licence text', () => {
    const used = RUNTIME_PARTS.flatMap(({ license }) => licensesIn(license)).map(
      (id) => `${id.replace(/-or-later$/, '')}.txt`,
    );
    const there = readdirSync(join(import.meta.dir, '../../packaging/licenses'));
    expect(there.filter((name) => name.endsWith('.txt') && !used.includes(name))).toEqual([]);
  });

  test('the notices name the exact sources of LGPL parts, and how to replace them', () => {
    const { webkit, tinycc } = process.versions as Record<string, string>;
    for (const part of [`oven-sh/WebKit, commit ${webkit}`, `oven-sh/tinycc, commit ${tinycc}`]) {
      expect(text).toMatch(new RegExp(`${part.replaceAll('/', '\\/')}[0-9a-f]*$`, 'm'));
    }
    expect(webkit).toMatch(/^[0-9a-f]{40}$/);
    expect(text).toContain('run "bun build.ts" with that Bun');
    expect(text).toContain(
      'This software is based in part on the work of the Independent JPEG Group',
    );
  });

  test('the notices name each part of the runtime with its copyright', () => {
    for (const { name, by } of RUNTIME_PARTS) {
      expect(by.length).toBeGreaterThan(0);
      expect(text).toContain(`\n${name}`);
    }
  });

  test("the notices hold each package's licence text, and a package without one stops the release", () => {
    expect(text).toContain('\none 1.0.0 (MIT)\n\nIts own words.\n');
    const silent = { name: 'silent', version: '2.0.0', license: 'MIT', text: '' };
    expect(() => notices([silent])).toThrow('silent 2.0.0 brings no licence text');
  });

  test('the notices are the same on every build', () => {
    expect(notices([])).toBe(notices([]));
    expect(text).not.toMatch(/\/(home|tmp|work|root)\//);
  });
});

test('the bill of materials names the parts of the runtime and the publisher of the whole', () => {
  const about = { version: '1.2.3', license: 'Apache-2.0', commit: '' };
  const bill = JSON.parse(billOfMaterials([], about, 0));
  const bun = bill.components.find(({ name }: { name: string }) => name === 'bun');
  expect(bun.components.map(({ name }: { name: string }) => name)).toEqual(
    RUNTIME_PARTS.map(({ name }) => name),
  );
  for (const { licenses } of bun.components) expect(licenses).toHaveLength(1);
  expect(bill.metadata.component.externalReferences[0].url).toBe(PUBLISHER.homepage);
});

test('package.json alone names the publisher', () => {
  const root = join(import.meta.dir, '../..');
  const address = PUBLISHER.maintainer.match(/<(.*)>/)![1]!;
  const host = new URL(PUBLISHER.homepage).hostname;
  const files = [...new Bun.Glob('{packaging,scripts,src}/**/*').scanSync({ cwd: root })];
  const naming = files.filter((name) => {
    const content = readFileSync(join(root, name), 'utf8');
    return content.includes(address) || content.includes(host);
  });
  expect(naming).toEqual([]);
});

/** Every key of the configuration has an example on its page; that each example loads is tested with all YAML of the manual. */

import { expect, test } from 'bun:test';
import { parse } from 'yaml';
import { configSections } from '../../scripts/docs.ts';

/** Every path of a value as the page writes it: names of the user's choice also as `NAME`, items with and without `[]`. */
function pathsIn(value: unknown, at: readonly string[], found: Set<string>): void {
  for (const path of at) found.add(path);
  if (Array.isArray(value)) {
    for (const item of value) pathsIn(item, [...at, ...at.map((path) => `${path}[]`)], found);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      pathsIn(
        inner,
        at.flatMap((path) => [`${path}.${key}`, `${path}.NAME`]),
        found,
      );
    }
  }
}

test.each(configSections().map((section) => [section.name, section] as const))(
  'every key of %s is in an example',
  (name, { rows, examples }) => {
    expect(examples.length).toBeGreaterThan(0);
    const found = new Set<string>();
    for (const yaml of examples) {
      const value = parse(yaml);
      expect(Object.hasOwn(value, name)).toBe(true);
      pathsIn(value[name], [name], found);
    }
    expect(rows.map(({ key }) => key).filter((key) => !found.has(key))).toEqual([]);
  },
);

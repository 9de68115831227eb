/** The version of the configuration's form: named or not it is read, newer ones are refused with one sentence. */

import { describe, expect, test } from 'bun:test';
import { environmentFrom } from '../../src/config/environment.ts';
import { parseConfig } from '../../src/config/load.ts';
import { CONFIG_VERSION } from '../../src/config/schema.ts';

const environment = environmentFrom({}, '/home/nobody');
const parse = (text: string) => parseConfig(text, '/hopgate.yaml', environment);

describe('version', () => {
  test('this one, or none, is read', () => {
    expect(parse(`version: ${CONFIG_VERSION}\n`).ok).toBe(true);
    expect(parse('listen: 1\n').ok).toBe(true);
  });

  test('a newer one is refused in one sentence, whatever else is in the file', () => {
    const result = parse(`# a comment\nversion: ${CONFIG_VERSION + 1}\nlanes: [what is this?]\n`);
    if (result.ok) throw new Error('it was taken');
    expect(result.problems).toHaveLength(1);
    expect(result.problems[0]).toMatchObject({ path: 'version', line: 2 });
    expect(result.problems[0]!.message).toContain(
      `written for a newer hopgate (version ${CONFIG_VERSION + 1}, this one reads ${CONFIG_VERSION})`,
    );
  });

  for (const wrong of ['0', '-1', '1.5', 'two', '[1]']) {
    test(`${wrong} is no version`, () => {
      const result = parse(`version: ${wrong}\n`);
      if (result.ok) throw new Error('it was taken');
      expect(result.problems[0]!.path).toBe('version');
    });
  }
});

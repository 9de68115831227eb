/** A minified `import()` of CommonJS may call the wrong thing: no program with one is built. */

import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refuseUnsafeImports } from '../../build.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopgate-imports-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['CommonJS is refused', 'loaded.cjs', 'module.exports = { one: () => 1 };', true],
  ['an ES module passes', 'loaded.mjs', 'export const one = () => 1;', false],
])('%s', async (_, name, text, refused) => {
  const source = join(folder, name);
  const entry = join(folder, 'entry.mjs');
  await Bun.write(source, text);
  writeFileSync(entry, `const { one } = await import('./${name}');\nconsole.log(one());\n`);
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    target: 'bun',
    minify: true,
    splitting: true,
    format: 'esm',
  });
  const program = join(folder, 'program.js');
  await Bun.write(program, (await Promise.all(outputs.map((one) => one.text()))).join('\n'));
  const checked = refuseUnsafeImports(program);
  if (refused) await expect(checked).rejects.toThrow('CommonJS');
  else await checked;
});

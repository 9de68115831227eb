/** No preset, page, example or default names a model that is gone. */

import { expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { modelAt, modelsDate, shippedText } from '../../src/config/models/model-facts.ts';
import { PRESETS } from '../../src/vendors/index.ts';
import { MAKERS } from '../../src/vendors/makers/index.ts';

const ROOT = join(import.meta.dir, '../..');
const PLACES = [
  'docs',
  'examples',
  'deploy',
  'packaging',
  'scripts/config-examples',
  'src/cli',
  'README.md',
  'README.zh-CN.md',
  'CONTRIBUTING.md',
];

/** A model that ends so soon is none for a page that is read tomorrow. */
const DAYS = 30;

/** Names that end, by name; those that another maker's vendor still has are none. */
function ending(): ReadonlyMap<string, string> {
  const until = new Date(Date.parse(modelsDate()) + DAYS * 86_400_000).toISOString().slice(0, 10);
  const makers = new Set(
    MAKERS.flatMap(({ presets = {} }) =>
      Object.values(presets).flatMap(({ catalogue }) => catalogue ?? []),
    ),
  );
  const gone = new Map<string, string>();
  const alive = new Set<string>();
  let vendor = '';
  for (const line of shippedText().trimEnd().split('\n')) {
    const { vendor: next, id, ends } = JSON.parse(line) as Record<string, string>;
    if (next !== undefined) vendor = next;
    if (id === undefined || !makers.has(vendor)) continue;
    if (ends !== undefined && ends <= until) gone.set(id, ends);
    else alive.add(id);
  }
  for (const id of alive) gone.delete(id);
  return gone;
}

function* filesIn(path: string): Generator<string> {
  if (!statSync(path).isDirectory()) return yield path;
  for (const name of readdirSync(path)) yield* filesIn(join(path, name));
}

const GONE = ending();

test('the file of models has names that are gone', () => {
  expect(GONE.get('deepseek-chat')).toBe('2026-07-24');
  expect(GONE.has('moonshot-v1-128k')).toBe(true);
});

test('presets', () => {
  const named = Object.entries(PRESETS).flatMap(([preset, { models, catalogue }]) =>
    models
      .filter(
        (model) => GONE.has(model) || (modelAt(catalogue, model)?.ends ?? '9') <= modelsDate(),
      )
      .map((model) => `${preset}: ${model}`),
  );
  expect(named).toEqual([]);
});

test.each(PLACES)('%s', (place) => {
  const named: string[] = [];
  for (const file of filesIn(join(ROOT, place))) {
    if (!/\.(?:md|ya?ml|json|toml|ts|sh|txt)$/.test(file)) continue;
    for (const [name] of readFileSync(file, 'utf8').matchAll(/\w[\w.-]*\w/g)) {
      if (GONE.has(name)) named.push(`${file.slice(ROOT.length + 1)}: ${name}`);
    }
  }
  expect(named).toEqual([]);
});

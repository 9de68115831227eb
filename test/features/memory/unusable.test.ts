/** A memory whose file cannot be used: an error for the client, a warning for the operator, no data broken or lost. */

import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { alone, memories } from './support.ts';

const files = memories();

test('a file of a newer version is left unchanged', async () => {
  const path = files.path();
  mkdirSync(dirname(path), { recursive: true });
  const db = new Database(path, { create: true });
  db.run('PRAGMA user_version = 99');
  db.close();
  const before = readFileSync(path);
  const { memory, watch } = files.open({ path });
  await expect(memory.recall('s', { query: 'x' })).rejects.toMatchObject({ status: 500 });
  expect(watch.problems[0]).toContain('newer version of hopgate');
  expect(watch.kinds).toEqual(['failed']);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('not a database: captured events wait until a valid file exists', async () => {
  const path = files.path();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, 'this is no database, however long it may be '.repeat(100));
  const { memory, book, texts, watch } = files.open({ path });
  await memory.capture('s', [{ text: 'patient' }]);
  await expect(book.add('s', [{ text: 'x' }], alone)).rejects.toThrow('The memory cannot be used.');
  for (let tries = 0; watch.problems.length < 2 && tries < 50; tries++) await Bun.sleep(10);
  rmSync(path);
  expect(await texts('s')).toEqual(['patient']);
});

test('locked by another process: an error, and usable again afterwards', async () => {
  const path = files.path();
  const { memory, book, texts } = files.open({ path });
  await book.add('s', [{ text: 'first' }], alone);
  const other = new Database(path);
  other.run('BEGIN IMMEDIATE');
  await memory.capture('s', [{ text: 'captured' }]);
  await expect(book.add('s', [{ text: 'x' }], alone)).rejects.toThrow(/busy; try again/);
  expect(await texts('s')).toEqual(['first']);
  other.run('COMMIT');
  other.close();
  expect(await texts('s')).toEqual(['first', 'captured']);
});

/** The kinds of settings files, so that a client only says where its file lies and what belongs there. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../lib/json/json.ts';
import type { SettingsFile, SetupPlan } from './client.ts';
import { applyEdits, type JsonEdit, stripEdits } from './json-edits.ts';
import { type LineRange, linesOf, pastMark, withBlock, withoutBlock } from './marked-lines.ts';
import { type Owned, putBlocks, type TomlTable, takeBlocks } from './toml-block.ts';
import { putItems, putMembers, takeLines } from './yaml-lines.ts';

type Path = SettingsFile['path'];

/** A path in the folder that a variable names, else in this folder of the user's home. */
export const inFolder =
  (variable: string, folder: string, ...names: readonly string[]): Path =>
  (environment) =>
    join(environment.variable(variable) ?? join(environment.userHome, folder), ...names);

/** The first of these paths where a file lies; otherwise the last one. */
export const firstOf =
  (...paths: readonly Path[]): Path =>
  (environment) => {
    const found = paths.map((path) => path(environment));
    return found.find((path) => existsSync(path)) ?? found.at(-1)!;
  };

/** JSON, with or without comments. Undefined: nothing needs to stand there. */
export const jsonFile = (
  path: Path,
  edits: (plan: SetupPlan, text: string | undefined) => readonly JsonEdit[] | undefined,
): SettingsFile => ({
  path,
  apply(text, plan) {
    const list = edits(plan, text);
    return list === undefined ? undefined : applyEdits(text, list);
  },
  strip: stripEdits,
});

export const tomlFile = (
  client: string,
  path: Path,
  owned: Owned,
  tables: (plan: SetupPlan) => readonly TomlTable[],
): SettingsFile => ({
  path,
  apply: (text = '', plan) => ({ text: putBlocks(text, client, owned, tables(plan)), undo: [] }),
  strip: (text) => takeBlocks(text, owned),
});

/** Members at the top level of a YAML file. */
export const yamlFile = (
  client: string,
  path: Path,
  members: (plan: SetupPlan) => Readonly<Record<string, string>>,
): SettingsFile => ({
  path,
  apply: (text = '', plan) => ({ text: putMembers(text, client, members(plan)), undo: [] }),
  strip: takeLines,
});

/** Items at the end of a list in a YAML file; `empty` is what the file needs to hold besides. */
export const yamlListFile = (
  client: string,
  path: Path,
  { key, empty }: { readonly key: string; readonly empty: string },
  items: (plan: SetupPlan) => readonly JsonObject[],
): SettingsFile => ({
  path,
  apply(text = '', plan) {
    const base = text.trim() === '' ? empty : text;
    return { text: putItems(base, client, key, items(plan)), undo: [] };
  },
  strip(text) {
    const left = takeLines(text);
    return left === empty ? '' : left;
  },
});

/** A block of lines at the end of a file; lines of the user that set the same variables make way. */
export const linesFile = (
  client: string,
  path: Path,
  { lines, variables }: BlockOfLines,
): SettingsFile => ({
  path,
  apply(text = '', plan) {
    const values = variables(plan);
    const edited = pastMark(text, (marked) => {
      const bare = withoutBlock(marked);
      const disabled = linesSetting(bare, Object.keys(values));
      return withBlock(bare, { client, lines: lines(values), at: bare.length, disabled });
    });
    return { text: edited, undo: [] };
  },
  strip: (text) => pastMark(text, withoutBlock),
});

interface BlockOfLines {
  readonly variables: (plan: SetupPlan) => Readonly<Record<string, string>>;
  readonly lines: (values: Readonly<Record<string, string>>) => readonly string[];
}

/** The lines of a file of variables that set one of the names. */
function linesSetting(text: string, names: readonly string[]): readonly LineRange[] {
  const found: LineRange[] = [];
  let start = 0;
  for (const line of linesOf(text)) {
    const end = start + line.length;
    const name = /^\s*(?:export\s+)?(\w+)\s*=/.exec(line)?.[1];
    if (name !== undefined && names.includes(name)) found.push({ start, end });
    start = end;
  }
  return found;
}

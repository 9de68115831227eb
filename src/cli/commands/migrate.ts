import { existsSync, readFileSync } from 'node:fs';
import { readYaml } from '../../config/file/document.ts';
import { CONFIG_MIGRATIONS, type ConfigMigration } from '../../config/file/migrations.ts';
import { findConfigFile, type LoadResult, parseConfig } from '../../config/load.ts';
import { redactText } from '../../lib/text/redact.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { printLineDiff } from '../line-diff.ts';
import { reportProblems } from '../load-config.ts';
import { readText, writeWhole } from '../whole-file.ts';

export const MIGRATE: CommandSpec = {
  name: 'migrate',
  group: 'admin',
  summary: 'update a configuration written for an older hopgate',
  description: [
    'hopgate still reads files in an older format, and check and serve say so. This command rewrites the file in the current format. Comments are kept, and the old file is saved beside it as hopgate.yaml.v1.bak.',
    'A file in a newer format than this hopgate knows is refused, here and by every other command.',
  ],
  options: {
    'dry-run': { short: 'n', summary: 'only show what would change' },
  },
  examples: {
    'hopgate migrate --dry-run': 'Shows what would change.',
    'hopgate migrate': 'Rewrites the file.',
  },
  exits: { 0: 'written, or nothing to do', 1: 'not written, or the file has problems' },
  run: (invocation) => runMigrate(invocation),
};

/**
 * Exit 0 written, or nothing to do; 1 not written, or written with problems that it had before.
 * `migrations`: all steps, from the oldest version on.
 */
export async function runMigrate(
  invocation: Invocation,
  migrations: readonly ConfigMigration[] = CONFIG_MIGRATIONS,
): Promise<number> {
  const { text, io, out, err } = invocation;
  const file = findConfigFile(text('config'), io.environment);
  if (file === undefined) {
    out.line('There is no configuration file; nothing to do.');
    return 0;
  }
  try {
    return migrate(invocation, file, migrations);
  } catch (thrown) {
    err.line(`${file} was left as it is: ${messageOf(thrown)}.`);
    return 1;
  }
}

/** @throws Error when a file cannot be read or written; then the configuration is as it was */
function migrate(
  invocation: Invocation,
  file: string,
  migrations: readonly ConfigMigration[],
): number {
  const { flag, out, err, io } = invocation;
  const before = readText(file);
  if (before === undefined) {
    err.line(`${file}: there is no such file`);
    return 1;
  }
  const read = (content: string) => parseConfig(content, file, io.environment, migrations);
  const { form, problems, text: today } = readYaml(before, migrations);
  if (problems.length > 0 || form.kind === 'newer') {
    reportProblems(invocation, withoutWarnings(read(before)));
    err.line('Nothing was written.');
    return 1;
  }
  if (form.kind === 'current') {
    out.line(`${file} is up to date (version ${migrations.length + 1}).`);
    return 0;
  }
  const after = today();
  out.line(`${file}: version ${form.from} → ${form.to}`);
  for (const change of form.changes) out.line(`  - ${change}`);
  if (flag('dry-run')) {
    show(invocation, before, after);
    return 0;
  }
  const backup = backupName(`${file}.v${form.from}.bak`, before);
  writeWhole(backup, before);
  writeWhole(file, after);
  out.line(`${out.paint('green', 'Written.')} The file as it was: ${backup}`);
  const result = read(after);
  reportProblems(invocation, result);
  if (result.ok) return 0;
  err.line('The old file had these problems, too; "hopgate check" shows them.');
  return 1;
}

const withoutWarnings = (result: LoadResult): LoadResult => ({ ...result, warnings: [] });

/** A name that no other backup has; a backup with the same bytes is used again. */
function backupName(wanted: string, bytes: string): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? wanted : `${wanted}.${n}`;
    if (!existsSync(name) || readFileSync(name, 'utf8') === bytes) return name;
  }
}

const SECRET = /^(?:admin_)?keys?$|authorization|token|secret|password|api[-_]?key|^sha256$/i;

/** The texts under keys whose name says that they are secret, except references to variables. */
function secretsIn(value: unknown, below = false): readonly string[] {
  if (typeof value === 'string') {
    return below && value !== '' && !/^\$\{[^}]*\}$/.test(value) ? [value] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    secretsIn(inner, below || (!Array.isArray(value) && SECRET.test(key))),
  );
}

function show({ out }: Invocation, before: string, after: string): void {
  const secrets = secretsIn(readYaml(before).value);
  const mask = (text: string) =>
    redactText(secrets.reduce((shown, secret) => shown.replaceAll(secret, '***'), text)).text;
  printLineDiff(out, mask(before), mask(after));
}

/** Spend and the names of its keys, for commands: from the shared database, or from the files of this machine. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfigFile } from '../config/load.ts';
import type { KeyChange } from '../keys/key-records.ts';
import { keyFileToRead } from '../keys/move.ts';
import { keysInDatabase } from '../keys/run-time-keys.ts';
import { redactText } from '../lib/text/redact.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { FileReader, sharedSpendReader } from '../money/reader.ts';
import type { SpendReader } from '../money/schema.ts';
import { openEngines } from '../state/engines/open-engines.ts';
import type { Invocation } from './command.ts';
import { loadForCommand, reportProblems, resultWithoutKeys } from './load-config.ts';
import { otherHome } from './running-gateway.ts';

export interface SpendToRead extends SpendReader {
  /**
   * Names by id of those of these keys that were made at run time, revoked ones too. None where the keys cannot be
   * read, which is said on stderr: a report is complete without them.
   */
  keyNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  close(): void | Promise<void>;
}

/** What is read: the shared database or the file. A number: the exit code, and why was said. */
export async function openSpend(invocation: Invocation): Promise<SpendToRead | number> {
  const { io, err } = invocation;
  const loaded = await loadForCommand(invocation);
  // Without knowing where spend is, the file of this machine would pass for all of it.
  if (!loaded.ok && mentionsDatabase(loaded.file)) {
    reportProblems(invocation, loaded);
    return 1;
  }
  if (loaded.ok && loaded.config.engines.database !== undefined) {
    const { database } = loaded.config.engines;
    const engines = openEngines({ database, onError: 'local', seal: [] }, () => {});
    return {
      ...sharedSpendReader(engines.database!),
      keyNames: namesFrom((ids) => keysInDatabase(engines.database!).many(ids), err),
      close: () => engines.close(),
    };
  }
  const looked = loaded.ok ? loaded : await resultWithoutKeys(invocation);
  const other = looked.ok ? await otherHome(looked.config, invocation) : undefined;
  if (other !== undefined) err.line(`hopgate: ${other}`);
  const { home } = io.environment;
  const path = join(home, 'state', 'spend.db');
  if (!existsSync(path)) {
    err.line(`Nothing was spent yet: there is no ${path}.`);
    return 0;
  }
  try {
    const keyNames = namesFrom((ids) => keysOfFile(join(home, 'state', 'keys.db'), ids), err);
    const reader = new FileReader(path, { copies: true });
    reader.open();
    return {
      names: reader.names,
      all: (sql, values) => reader.all(sql, values),
      keyNames,
      close: () => reader.close(),
    };
  } catch (thrown) {
    err.line(messageOf(thrown));
    return 1;
  }
}

async function keysOfFile(path: string, ids: readonly string[]): Promise<readonly KeyChange[]> {
  const file = keyFileToRead(path);
  try {
    return (await file?.many(ids)) ?? [];
  } finally {
    file?.close();
  }
}

/** A key of the configuration has its name for an id, and a person has no other name. */
const namesFrom =
  (
    many: (ids: readonly string[]) => Promise<readonly KeyChange[]>,
    err: Invocation['err'],
  ): SpendToRead['keyNames'] =>
  async (ids) => {
    const made = new Set(ids.filter((id) => id.startsWith('hk_')));
    if (made.size === 0) return new Map();
    try {
      const found = await many([...made]);
      return new Map(found.map(({ record }) => [record.id, record.name]));
    } catch (thrown) {
      const why = messageOf(thrown);
      err.line(`Keys are shown by their ids alone: ${redactText(why).text}`);
      return new Map();
    }
  };

/** A configuration with problems (a key that only the service has) does not matter here: the file can be read without it. */
function mentionsDatabase(file: string | undefined): boolean {
  const text = file === undefined ? undefined : readConfigFile(file);
  return typeof text === 'string' && /\bdatabase\b/.test(text);
}

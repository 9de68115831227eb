/** `hopgate audit verify`: checks that no entry of the audit was changed, removed or moved. */

import { openKeysToRead } from '../../keys/file-key-store.ts';
import type { AuditReport } from '../../keys/key-store.ts';
import { type CommandSpec, errorMessage, type Invocation, UsageError } from '../command.ts';
import { jsonOption } from '../shared-options.ts';
import { URL_OPTION, withAccess } from './keys/index.ts';

export const AUDIT: CommandSpec = {
  name: 'audit',
  group: 'Run',
  summary: 'check the record of changes to keys',
  description: [
    'Each change of a key writes an entry that holds the hash of the one before it. verify reads them all and names the first that was changed, removed or moved.',
    'The hash that it prints stands for all entries so far: noted elsewhere, it shows later whether the whole record was replaced.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', choices: ['verify'], required: true }],
  options: [
    {
      name: 'file',
      value: 'PATH',
      summary: 'the file of a machine whose keys were moved, such as state/keys.db',
    },
    URL_OPTION,
    jsonOption(),
  ],
  examples: [
    { line: 'hopgate audit verify', summary: 'The number of entries and the last hash.' },
    {
      line: 'hopgate audit verify --file ~/.hopgate/state/keys.db',
      summary: 'What was written before the move to shared engines.',
    },
  ],
  exits: [
    [0, 'whole'],
    [1, 'an entry was changed, removed or moved, or the record could not be read'],
  ],
  run: runAudit,
};

async function runAudit(invocation: Invocation): Promise<number> {
  if (invocation.arguments[0] !== 'verify') throw new UsageError('Usage: hopgate audit verify');
  const path = invocation.text('file');
  if (path !== undefined) return verifyFile(path, invocation);
  return withAccess(invocation, async (access) => told(await access.verifyAudit(), invocation));
}

function verifyFile(path: string, invocation: Invocation): number {
  try {
    const file = openKeysToRead(path);
    if (file === undefined) throw new Error(`there is no audit in ${path}`);
    try {
      const { count, head, fault } = file.verifyAudit();
      return told({ count, head, fault: fault?.message ?? null }, invocation);
    } finally {
      file.close();
    }
  } catch (thrown) {
    invocation.err.line(`hopgate: ${errorMessage(thrown)}`);
    return 1;
  }
}

function told(
  report: Pick<AuditReport, 'count' | 'head'> & { readonly fault: string | null },
  { out, err, flag }: Invocation,
): number {
  if (flag('json')) out.line(JSON.stringify(report, null, 2));
  else if (report.fault !== null) err.line(`hopgate: the audit is not whole: ${report.fault}`);
  else out.line(`${report.count} entries, whole. Last hash: ${report.head || 'none'}`);
  return report.fault === null ? 0 : 1;
}

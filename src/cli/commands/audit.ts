import type { AuditReport } from '../../keys/key-store.ts';
import { keyFileToRead } from '../../keys/move.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../command.ts';
import { URL_OPTION, withAccess } from './keys/index.ts';

export const AUDIT: CommandSpec = {
  name: 'audit',
  group: 'admin',
  summary: 'verify the audit log of key changes',
  description: [
    'Every change to a key adds an entry that contains the hash of the previous one. verify reads all entries and reports the first that was changed, removed or moved, and a key that is not as its last entry says.',
    'The hash it prints covers all entries so far. Keep a copy elsewhere to detect later whether the whole log was replaced.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', choices: ['verify'], required: true }],
  options: {
    file: {
      value: 'PATH',
      summary: 'the key file of a machine whose keys were moved, such as state/keys.db',
    },
    url: URL_OPTION,
    json: JSON_OPTION,
  },
  examples: {
    'hopgate audit verify': 'Prints the number of entries and the last hash.',
    'hopgate audit verify --file ~/.hopgate/state/keys.db':
      'Verifies what was written before the move to shared engines.',
  },
  exits: {
    0: 'the log is intact',
    1: 'an entry was changed, removed or moved, a key was changed without one, or the log could not be read',
  },
  run: runAudit,
};

async function runAudit(invocation: Invocation): Promise<number> {
  if (invocation.arguments[0] !== 'verify') throw new UsageError('Usage: hopgate audit verify');
  const path = invocation.text('file');
  if (path !== undefined) return verifyFile(path, invocation);
  return withAccess(invocation, async (access) => told(await access.verifyAudit(), invocation));
}

async function verifyFile(path: string, invocation: Invocation): Promise<number> {
  try {
    const file = keyFileToRead(path);
    if (file === undefined) throw new Error(`there is no audit in ${path}`);
    try {
      const { count, head, fault } = await file.verifyAudit();
      return told({ count, head, fault: fault?.message ?? null }, invocation);
    } finally {
      file.close();
    }
  } catch (thrown) {
    invocation.err.line(`hopgate: ${messageOf(thrown)}`);
    return 1;
  }
}

function told(
  report: Pick<AuditReport, 'count' | 'head'> & { readonly fault: string | null },
  { out, err, flag }: Invocation,
): number {
  if (flag('json')) out.line(JSON.stringify(report, null, 2));
  else if (report.fault !== null) err.line(`hopgate: the audit is not whole: ${report.fault}`);
  else {
    const entries = report.count === 1 ? '1 entry' : `${report.count} entries`;
    out.line(`${entries}, intact. Last hash: ${report.head || 'none'}`);
  }
  return report.fault === null ? 0 : 1;
}

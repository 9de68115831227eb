/** `hopgate audit verify`: checks that no entry of the audit was changed, removed or moved. */

import { type CommandSpec, type Invocation, UsageError } from '../command.ts';
import { jsonOption } from '../shared-options.ts';
import { URL_OPTION, withAccess } from './keys/index.ts';

export const AUDIT: CommandSpec = {
  name: 'audit',
  group: 'Run',
  summary: 'verify the audit log of key changes',
  description: [
    'Every change to a key adds an entry that contains the hash of the previous one. verify reads all entries and reports the first that was changed, removed or moved.',
    'The hash it prints covers all entries so far. Keep a copy elsewhere to detect later whether the whole log was replaced.',
  ],
  arguments: [{ name: 'action', summary: 'what to do', choices: ['verify'], required: true }],
  options: [URL_OPTION, jsonOption()],
  examples: [
    { line: 'hopgate audit verify', summary: 'Prints the number of entries and the last hash.' },
  ],
  exits: [
    [0, 'whole'],
    [1, 'an entry was changed, removed or moved, or the log could not be read'],
  ],
  run: runAudit,
};

async function runAudit(invocation: Invocation): Promise<number> {
  const { out, err, flag } = invocation;
  if (invocation.arguments[0] !== 'verify') throw new UsageError('Usage: hopgate audit verify');
  return withAccess(invocation, async (access) => {
    const report = await access.verifyAudit();
    if (flag('json')) out.line(JSON.stringify(report, null, 2));
    else if (report.fault !== null) err.line(`hopgate: the audit is not whole: ${report.fault}`);
    else
      out.line(
        `${report.count} ${report.count === 1 ? 'entry' : 'entries'}, intact. Last hash: ${report.head || 'none'}`,
      );
    return report.fault === null ? 0 : 1;
  });
}

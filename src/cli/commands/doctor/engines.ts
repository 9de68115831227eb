/** Checks of the shared engines: version, rights, clock, latency, and what the cache evicts. */

import type { Config } from '../../../config/config.ts';
import { openEngines } from '../../../engines/open-engines.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { type Finding, finding } from './finding.ts';

const HINTS = {
  cache:
    'Check engines.cache: is the server running, is the password right, does it want TLS (rediss://)?',
  database: 'Check engines.database: is the server running, are user, password and database right?',
  objects: 'Check engines.objects: endpoint, bucket, region and key.',
} as const;

/** The list of what the store holds is in the database. */
const ALONE = [
  'nothing is stored in it without a database: recorded exchanges stay on each machine',
  'Set engines.database, or remove engines.objects.',
] as const;

export async function checkEngines({ engines: config }: Config): Promise<readonly Finding[]> {
  const engines = openEngines(config, () => {});
  try {
    const found = await Promise.all(
      engines.all.map(async (engine) => {
        const { name } = engine.state;
        const about = `engine ${name}`;
        try {
          const findings = await engine.examine();
          return findings.map(({ status, message, hint }) => finding(about, status, message, hint));
        } catch (thrown) {
          const why = thrown instanceof Error ? thrown.message : String(thrown);
          return [
            finding(about, 'fail', `it cannot be used: ${redactText(why).text}`, HINTS[name]),
          ];
        }
      }),
    );
    const alone = engines.objects !== undefined && engines.database === undefined;
    return [...found.flat(), ...(alone ? [finding('engine objects', 'warn', ...ALONE)] : [])];
  } finally {
    await engines.close();
  }
}

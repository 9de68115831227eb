/** The files of an archive beside the executable: papers, completions, the manual page, the service file, monitoring. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Target } from '../../build.ts';
import { SCRIPTS } from '../../src/cli/commands/completions/index.ts';
import { manPage } from '../../src/cli/commands/man.ts';
import { launchdPlist } from '../../src/cli/commands/service/launchd-plist.ts';
import { DRAIN_SECONDS, systemdUnit } from '../../src/cli/commands/service/systemd-unit.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { type Entry, file } from './tar.ts';

const ROOT = join(import.meta.dir, '../..');

/** A file of the repository. */
export const source = (path: string): Uint8Array => readFileSync(join(ROOT, path));

/** The completion files by where an archive has them. */
export const completions = () => ({
  'completions/hopgate.bash': SCRIPTS.bash!,
  'completions/_hopgate': SCRIPTS.zsh!,
  'completions/hopgate.fish': SCRIPTS.fish!,
});

export const manual = (version: string) => manPage(COMMANDS, version);

/** `hopgate-0.1.0-linux-x64` */
export const archiveName = (version: string, target: Target) => `hopgate-${version}-${target}`;

/** The entries of an archive, all in one folder. */
export function archiveContents(options: {
  readonly target: Target;
  readonly version: string;
  readonly binary: Uint8Array;
  readonly notices: string;
}): Entry[] {
  const { target, version, binary } = options;
  const folder = archiveName(version, target);
  const unit = { scope: 'system', drain: DRAIN_SECONDS } as const;
  const service = target.startsWith('darwin')
    ? file(
        'service/hopgate.plist',
        launchdPlist({
          ...unit,
          program: ['/usr/local/bin/hopgate'],
          log: '/var/log/hopgate.log',
          home: '/var/lib/hopgate',
        }),
      )
    : file(
        'service/hopgate.service',
        systemdUnit({ ...unit, program: ['/usr/local/bin/hopgate'] }),
      );
  return [
    file('hopgate', binary, 0o755),
    file('LICENSE', source('LICENSE')),
    file('README.md', source('README.md')),
    file('README.zh-CN.md', source('README.zh-CN.md')),
    file('CHANGELOG.md', source('CHANGELOG.md')),
    file('THIRD-PARTY-NOTICES.txt', options.notices),
    ...Object.entries(completions()).map(([path, text]) => file(path, text)),
    file('man/hopgate.1', manual(version)),
    service,
    file('service/hopgate.env', source('packaging/hopgate.env')),
    file('monitoring/grafana-dashboard.json', source('deploy/grafana/hopgate.json')),
    file('monitoring/prometheus-alerts.yml', source('deploy/prometheus/alerts.yml')),
  ].map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }));
}

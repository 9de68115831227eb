import manifest from '../../../package.json' with { type: 'json' };
import { type CommandSpec, type Invocation, JSON_OPTION } from '../command.ts';

declare const HOPGATE_VERSION: string | undefined;
declare const HOPGATE_COMMIT: string | undefined;

export interface Version {
  readonly name: 'hopgate';
  readonly version: string;
  /** The commit it was built from; undefined in runs from source. */
  readonly commit: string | undefined;
  readonly bun: string;
  /** `linux-x64` and so on. */
  readonly platform: string;
}

// The build defines both constants; a run from source has neither.
export const version: Version = {
  name: 'hopgate',
  version: typeof HOPGATE_VERSION === 'string' ? HOPGATE_VERSION : manifest.version,
  commit: typeof HOPGATE_COMMIT === 'string' && HOPGATE_COMMIT !== '' ? HOPGATE_COMMIT : undefined,
  bun: Bun.version,
  platform: `${process.platform}-${process.arch}`,
};

export const VERSION: CommandSpec = {
  name: 'version',
  group: 'admin',
  summary: 'print the version',
  description: [
    'Prints the version, the commit (in a build), the version of Bun, and the platform.',
  ],
  options: {
    json: JSON_OPTION,
  },
  examples: {
    'hopgate version --json': 'For scripts and bug reports.',
  },
  exits: { 0: 'always' },
  run: runVersion,
};

async function runVersion({ flag, out }: Invocation): Promise<number> {
  if (flag('json')) {
    out.line(JSON.stringify(version, null, 2));
    return 0;
  }
  const commit = version.commit === undefined ? '' : ` (${version.commit.slice(0, 12)})`;
  out.line(`hopgate ${version.version}${commit}, bun ${version.bun}, ${version.platform}`);
  return 0;
}

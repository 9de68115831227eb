/** The Homebrew formula, filled in. */

import type { Target } from '../../build.ts';
import { DRAIN_SECONDS } from '../../src/cli/commands/service/systemd-unit.ts';
import { archiveName, source } from './contents.ts';
import { PUBLISHER } from './publisher.ts';

/** The targets that Homebrew installs on. */
export const BREWED: readonly Target[] = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'];

export interface FormulaOptions {
  readonly version: string;
  /** Where the archives will be; left out: beside the formula. */
  readonly baseUrl?: string;
  /** SHA-256 of each archive. */
  readonly sums: ReadonlyMap<Target, string>;
}

/** @throws Error when a sum is missing */
export function formula({ version, baseUrl, sums }: FormulaOptions): string {
  const base = baseUrl?.replace(/\/+$/, '') ?? 'file://#{__dir__}';
  return new TextDecoder()
    .decode(source('packaging/hopgate.rb'))
    .replaceAll('@VERSION@', version)
    .replaceAll('@DRAIN@', String(DRAIN_SECONDS))
    .replaceAll('@HOMEPAGE@', PUBLISHER.homepage)
    .replace(/@(URL|SUM):([\w-]+)@/g, (_all, what: string, target: Target) => {
      if (what === 'URL') return `${base}/${archiveName(version, target)}.tar.gz`;
      const sum = sums.get(target);
      if (sum === undefined) throw new Error(`no archive for ${target}`);
      return sum;
    });
}

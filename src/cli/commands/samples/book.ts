/** The folder of samples a command works on, and the samples and filters that its words name. */

import { resolve } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { expandHome } from '../../../config/environment.ts';
import { loadConfig } from '../../../config/load.ts';
import { FILTER_NAMES, parseFilter } from '../../../samples/replay/filter.ts';
import { requireSample } from '../../../samples/replay/source.ts';
import type { SampleFilter, SampleMeta, SampleStore } from '../../../samples/sample.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { loadOptions, tell } from '../../load-config.ts';

/** Samples, and the configuration that they were found through. */
export interface Samples {
  readonly book: SampleStore;
  /** Undefined when the folder was named and no configuration was. */
  readonly config: Config | undefined;
}

/** The samples of `--dir`, else of the configuration; undefined when that cannot be used. */
export async function samplesOf(invocation: Invocation): Promise<Samples | undefined> {
  const { text, io, deps } = invocation;
  const dir = text('dir');
  const needed = dir === undefined || text('config') !== undefined;
  const config = needed ? await loadForReading(invocation) : undefined;
  if (needed && config === undefined) return undefined;
  const folder = dir === undefined ? config!.samples.dir : expandHome(dir, io.environment.userHome);
  return { book: deps.samples(resolve(io.cwd, folder)), config };
}

const NOT_SET = /the environment variable (\w+) is not set/;

/**
 * The configuration of a job that only reads: keys that this shell does not have are neither needed nor
 * told. Other problems go to stderr, and undefined comes back.
 */
async function loadForReading(invocation: Invocation): Promise<Config | undefined> {
  const options = loadOptions(invocation);
  const first = await loadConfig(options);
  const problems = first.ok ? first.warnings : [...first.problems, ...first.warnings];
  const unset = new Set(problems.flatMap(({ message }) => NOT_SET.exec(message)?.[1] ?? []));
  const { environment } = options;
  const variable = (name: string) =>
    environment.variable(name) ?? (unset.has(name) ? 'not-set-and-not-needed' : undefined);
  const again =
    unset.size === 0
      ? first
      : await loadConfig({ ...options, environment: { ...environment, variable } });
  // What is no text (an address, a number) has to be known all the same.
  const result = again.ok ? again : first;
  tell(invocation, result);
  return result.ok ? result.config : undefined;
}

/** The samples of `--dir`, else of a configuration that is loaded already. */
export function bookBeside(config: Config, { text, io, deps }: Invocation): SampleStore {
  const dir = text('dir');
  const folder = dir === undefined ? config.samples.dir : expandHome(dir, io.environment.userHome);
  return deps.samples(resolve(io.cwd, folder));
}

/** @throws UsageError without an id, GatewayError not_found when no sample has it, or several */
export function sampleNamed(
  book: SampleStore,
  id: string | undefined,
  command: string,
): SampleMeta {
  if (id === undefined) throw new UsageError(`"hopgate ${command}" needs the id of a sample.`);
  return requireSample(book, id);
}

/** The filter options of a command line. @throws GatewayError invalid_request */
export function filterOf({ text }: Pick<Invocation, 'text'>, now: number): SampleFilter {
  const given = FILTER_NAMES.map((key) => [key, text(key)] as const).filter(([, value]) => value);
  return parseFilter(Object.fromEntries(given), now);
}

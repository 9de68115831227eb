/** Opens the folder of samples for a command, and reads the sample ids and filters of its command line. */

import { resolve } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { expandHome } from '../../../config/environment.ts';
import type { ReadingParts } from '../../../samples/decode/decode-body.ts';
import { FILTER_NAMES, parseFilter } from '../../../samples/replay/filter.ts';
import { requireSample } from '../../../samples/replay/source.ts';
import type { SampleFilter, SampleMeta, SampleStore } from '../../../samples/sample.ts';
import { openSampleStore as openStore } from '../../../samples/store/sample-store.ts';
import { type CommandServices, type Invocation, UsageError } from '../../command.ts';
import { loadWithoutKeys } from '../../load-config.ts';
import { otherHome } from '../../running-gateway.ts';

/** A folder of samples, and the configuration that named it. */
export interface OpenSamples {
  readonly store: SampleStore;
  /** Undefined when --dir names the folder and --config names no file. */
  readonly config: Config | undefined;
}

/** The samples of `--dir`, else of the configuration; undefined when that cannot be used. */
export async function openSamples(invocation: Invocation): Promise<OpenSamples | undefined> {
  const { text, io } = invocation;
  const dir = text('dir');
  const needed = dir === undefined || text('config') !== undefined;
  const config = needed ? await loadForReading(invocation) : undefined;
  if (needed && config === undefined) return undefined;
  const folder = dir === undefined ? config!.samples.dir : expandHome(dir, io.environment.userHome);
  return { store: storeAt(resolve(io.cwd, folder), config), config };
}

/** The configuration; a line on stderr where the gateway of this address has another home. */
async function loadForReading(invocation: Invocation): Promise<Config | undefined> {
  const config = await loadWithoutKeys(invocation);
  // Samples of a folder that the file names are the gateway's, whatever the home.
  if (config?.samples.dir.startsWith(`${invocation.io.environment.home}/`) === true) {
    const other = await otherHome(config, invocation);
    if (other !== undefined) invocation.err.line(`hopgate: ${other}`);
  }
  return config;
}

/** The samples of `--dir`, else of a configuration that is already loaded. */
export function openSampleStore(config: Config, { text, io }: Invocation): SampleStore {
  const dir = text('dir');
  const folder = dir === undefined ? config.samples.dir : expandHome(dir, io.environment.userHome);
  return storeAt(resolve(io.cwd, folder), config);
}

/** Another folder than the configured one is not shared with other replicas. */
function storeAt(root: string, config: Config | undefined): SampleStore {
  const isShared = config !== undefined && resolve(config.samples.dir) === root;
  return openStore(root, false, isShared ? fetchFor(config, root) : undefined);
}

/**
 * The sample of an id, its bodies included.
 * @throws UsageError without an id, GatewayError not_found when no sample has it, or several
 */
export async function sampleNamed(
  store: SampleStore,
  id: string | undefined,
  command: string,
): Promise<SampleMeta> {
  if (id === undefined) throw new UsageError(`"hopgate ${command}" needs the id of a sample.`);
  const meta = requireSample(store, id);
  await store.fetch(meta);
  return meta;
}

/** The parts that decode recorded bodies. */
export const readingParts = ({ protocols, pairing }: CommandServices): ReadingParts => ({
  protocols,
  mend: pairing.mend,
});

/** The filter options of a command line, under the names of the API, which calls a protocol `entry`. */
export const filtersGiven = ({ text }: Pick<Invocation, 'text'>): Record<string, string> =>
  Object.fromEntries(
    FILTER_NAMES.flatMap((name) => {
      const value = text(name === 'entry' ? 'protocol' : name);
      return value ? [[name, value] as const] : [];
    }),
  );

/** @throws GatewayError invalid_request */
export function filterOf(invocation: Pick<Invocation, 'text'>, now: number): SampleFilter {
  const made = invocation.text('made');
  const filter = parseFilter(filtersGiven(invocation), now);
  return made === undefined ? filter : { ...filter, made };
}

/** Undefined where the configuration shares no samples. @param root the folder of samples */
function fetchFor({ engines }: Config, root: string): SampleStore['fetch'] | undefined {
  const { objects, database } = engines;
  if (objects === undefined || database === undefined) return undefined;
  return async (meta) => {
    if (meta.object === undefined) return;
    const [{ openEngines }, { BodyFetcher }, { SharingStore }] = await Promise.all([
      import('../../../state/engines/open-engines.ts'),
      import('../../../samples/replicas/bodies.ts'),
      import('../../../samples/replicas/folder-store.ts'),
    ]);
    const { seal, onError } = engines;
    const opened = openEngines({ objects, seal, onError }, () => {});
    const store = new SharingStore(root);
    try {
      await new BodyFetcher({ root, objects: opened.objects!, seal: opened.seal, store }).fetch(
        meta,
      );
    } finally {
      store.close();
      await opened.close();
    }
  };
}

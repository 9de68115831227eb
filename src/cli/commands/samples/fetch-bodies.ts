/** Fetches bodies that another replica recorded, for a command: the object store is asked only then. */

import type { Config } from '../../../config/config.ts';
import type { SampleStore } from '../../../samples/sample.ts';

/** Undefined where the configuration shares no samples. @param root the folder of samples */
export function fetchFor({ engines }: Config, root: string): SampleStore['fetch'] | undefined {
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

/** `hopgate samples export` and `import`: exchanges as single files. */

import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { runAtOnce } from '../../../lib/loop/steps.ts';
import type { ExportedSample, SampleStore } from '../../../samples/sample.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { sampleNamed } from './open-samples.ts';

/** Writes to `--output`, else to stdout. */
export async function exportSamples(
  store: SampleStore,
  [id]: readonly string[],
  { out, err, flag, text, io }: Invocation,
): Promise<number> {
  const meta = await sampleNamed(store, id, 'samples export');
  const content = JSON.stringify(runAtOnce(store.export(meta, flag('redact'))), null, 1);
  const file = text('output');
  if (file === undefined || file === '-') {
    out.line(content);
    return 0;
  }
  writeFileSync(resolve(io.cwd, file), `${content}\n`, { mode: 0o600 });
  err.line(`${meta.id} is in ${file}${flag('redact') ? ', texts and images blanked' : ''}.`);
  return 0;
}

export async function importSamples(
  store: SampleStore,
  files: readonly string[],
  { out, err, flag, io }: Invocation,
): Promise<number> {
  if (files.length === 0) throw new UsageError('"hopgate samples import" needs a file.');
  const ids: string[] = [];
  let failed = false;
  for (const file of files) {
    try {
      const sample = readExported(resolve(io.cwd, file));
      // The file may have blanked texts.
      const known = store.find(sample.meta.id);
      if (known?.id === sample.meta.id) err.line(`${known.id} is here already and stays as it is.`);
      ids.push((known?.id === sample.meta.id ? known : store.import(sample)).id);
    } catch (thrown) {
      failed = true;
      err.line(`hopgate: ${file}: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
  if (flag('json')) out.line(JSON.stringify({ imported: ids }, null, 2));
  else for (const id of ids) out.line(id);
  return failed ? 1 : 0;
}

/** @throws Error when the file cannot be read or is no exported sample */
function readExported(path: string): ExportedSample {
  const value = tryParse(readFileSync(path, 'utf8'));
  if (!isObject(value) || value.hopgate_sample !== 1) throw new Error('this is no exported sample');
  return value as unknown as ExportedSample;
}

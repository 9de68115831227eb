/** Exchanges that run in the gateway of a configuration: they are on no disk yet. */

import type { Config } from '../../../config/config.ts';
import { isObject, type Json } from '../../../lib/json/json.ts';
import type { SampleRow } from '../../../samples/sample.ts';
import { askGateway } from '../../running-gateway.ts';

/** The most that are asked for. */
const MAX = 500;

/** Newest first; none where no gateway answers. @param filter conditions as a command line gives them */
export async function runningExchanges(
  config: Config,
  fetch: typeof globalThis.fetch,
  filter: Readonly<Record<string, string>> = {},
): Promise<readonly SampleRow[]> {
  const query = new URLSearchParams({ ...filter, status: 'open', limit: String(MAX) });
  const answer = await askGateway(config, fetch, `/ui/api/samples?${query}`);
  const rows = answer?.status === 200 ? answer.body?.rows : undefined;
  return Array.isArray(rows) ? (rows as readonly Json[]).filter(isRow) : [];
}

const isRow = (value: Json): value is Json & SampleRow =>
  isObject(value) &&
  ['id', 'model', 'target', 'state', 'error', 'notes', 'made_by'].every(
    (name) => typeof value[name] === 'string',
  ) &&
  typeof value.time === 'number' &&
  typeof value.bytes === 'number';

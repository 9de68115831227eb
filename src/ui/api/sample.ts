/** One exchange for the page: its meta, its hops with tokens and costs, and the stages that can be sent again. */

import { GatewayError } from '../../conversation/errors.ts';
import { stagesToCompare } from '../../samples/replay/compare-stages.ts';
import type { Prices } from '../../samples/replay/cost.ts';
import { costOfExchange, hopsOf } from '../../samples/replay/hops.ts';
import { sendableStages } from '../../samples/replay/source.ts';
import type { SampleMeta, SampleStore } from '../../samples/sample.ts';
import type { Recorded } from './bodies/said.ts';
import type { Viewer } from './guard.ts';
import { priced } from './list.ts';
import type { KeyNames } from './options.ts';

const ID = /^req_\d+_[0-9A-Za-z]+$/;

/**
 * The sample of an id. One that this viewer may not see is reported as missing.
 * @throws GatewayError not_found
 */
export function metaFor(store: SampleStore, id: string, { owner }: Viewer): SampleMeta {
  const meta = ID.test(id) ? store.find(id) : undefined;
  if (meta === undefined || (owner !== undefined && meta.owner !== owner)) {
    throw new GatewayError('not_found', `There is no exchange "${id.slice(0, 100)}".`);
  }
  return meta;
}

export function detailOf({ store, meta, parts }: Recorded, prices: Prices, keys: KeyNames) {
  const hops = hopsOf(store, meta, prices, parts);
  const [a, b] = stagesToCompare(meta);
  const isThere = (stage: string) => meta.edges.some((one) => one.stage === stage);
  return {
    /** Its cost is that of all hops together. */
    row: { ...priced(store.row(meta), prices, keys), cost: costOfExchange(meta, hops, prices) },
    /** As in the meta file, notes included; `meta.edges` is the whole list of bodies. */
    meta,
    /** All tries for one answer of a model, in order; the last one counted. Bodies by the names of their stages. */
    hops: hops.map(({ tries, ...hop }) => ({
      ...hop,
      tries: tries.map(({ request, response, ...one }) => ({
        ...one,
        request: request?.stage,
        response: response?.stage,
      })),
    })),
    /** The pair of stages that a diff shows first; null when a body of it is missing. */
    diff: isThere(a) && isThere(b) ? { a, b } : null,
    /** Stages that can be replayed or bisected. */
    sendable: sendableStages(meta),
  };
}

/** One exchange for the page: its meta, its hops with times, tokens and costs, and the stages that can be sent again. */

import { GatewayError } from '../../conversation/errors.ts';
import { stagesToCompare } from '../../samples/replay/compare-stages.ts';
import type { Prices } from '../../samples/replay/cost.ts';
import {
  costOfExchange,
  hopsOf,
  type SampleHop,
  type SampleTry,
} from '../../samples/replay/hops.ts';
import { sendableStages } from '../../samples/replay/source.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../../samples/sample.ts';
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
  const cost = costOfExchange(meta, hops, prices);
  const [a, b] = stagesToCompare(meta);
  const stageInfoOf = (stage: string) => meta.edges.find((one) => one.stage === stage);
  return {
    row: { ...priced(store.row(meta), prices, keys), cost },
    /** As in the meta file, notes included; `meta.edges` is the whole list of bodies. */
    meta,
    hops: hops.map(hopView),
    /** Tools that the gateway ran; `hop` is the hop that asked, `at` and `ms` are given where known. */
    tools: meta.tools ?? [],
    /** `until` of the response is the end of the exchange. */
    client: { request: stageInfoOf('client-request'), response: stageInfoOf('client-response') },
    /** Of all hops together. */
    usage: meta.usage ?? null,
    cost,
    /** The pair of stages that a diff shows first; null when a body of it is missing. */
    diff: stageInfoOf(a) && stageInfoOf(b) ? { a, b } : null,
    /** Stages that can be replayed or bisected. */
    sendable: sendableStages(meta),
  };
}

/** One hop: all tries for one answer of a model. */
function hopView({ number, tries, target, usage, finish, cost }: SampleHop) {
  return {
    /** Counts from 1. */
    hop: number,
    /** In order; the last one counted. */
    tries: tries.map((one) => tryView(one, target ?? '')),
    /** As the vendor reported in its answer. */
    usage: usage ?? null,
    cost,
    finish: finish ?? null,
  };
}

/** One request at a vendor. Times since the exchange began; null where unknown. */
function tryView({ number, counted, request, response }: SampleTry, target: string) {
  const facts: Partial<SampleStage> = response ?? request ?? {};
  const made = response?.made === true;
  return {
    try: number,
    /** Its answer was used. */
    counted,
    target: request?.target ?? facts.target ?? target,
    protocol: request?.protocol ?? facts.protocol ?? null,
    url: request?.url ?? null,
    status: response?.status ?? null,
    error: response?.error ?? null,
    /** Stage names of its bodies. */
    request: request?.stage ?? null,
    response: response?.stage ?? null,
    response_bytes: response?.bytes ?? 0,
    sent_at: request?.at ?? null,
    /** Its new connection was established; null where a kept connection was used, too. */
    connected_at: request?.connected ?? null,
    // Without an answer, the recorded body is this gateway's own.
    /** The answer's head arrived: until then the request was sent and the vendor worked. */
    head_at: made ? null : (response?.at ?? null),
    /** The first byte of the body. */
    first_at: made ? null : (response?.first ?? null),
    end_at: response?.until ?? null,
    stream: response?.file.endsWith('.sse') === true,
    /** The body is incomplete. */
    cut: response?.cut === true,
  };
}

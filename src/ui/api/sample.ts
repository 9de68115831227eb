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
import type { HopView, SampleDetail, TryView } from './api.ts';
import type { Recorded } from './bodies/said.ts';
import type { Viewer } from './guard.ts';
import { priced } from './list.ts';

const ID = /^req_\d+_[0-9A-Za-z]+$/;

/**
 * The sample of an id. One that this viewer may not see is reported as missing.
 * @throws GatewayError not_found
 */
export function metaFor(store: SampleStore, id: string, { owner }: Viewer): SampleMeta {
  const meta = ID.test(id) ? store.find(id) : undefined;
  if (meta === undefined || (owner !== undefined && meta.owner !== owner)) {
    throw new GatewayError('not_found', `There is no sample "${id.slice(0, 100)}".`);
  }
  return meta;
}

export function detailOf({ store, meta, parts }: Recorded, prices: Prices): SampleDetail {
  const hops = hopsOf(store, meta, prices, parts);
  const cost = costOfExchange(meta, hops, prices);
  const [a, b] = stagesToCompare(meta);
  const stageInfoOf = (stage: string) => meta.edges.find((one) => one.stage === stage);
  return {
    row: { ...priced(store.row(meta), prices), cost },
    meta,
    hops: hops.map(hopView),
    tools: meta.tools ?? [],
    client: { request: stageInfoOf('client-request'), response: stageInfoOf('client-response') },
    usage: meta.usage ?? null,
    cost,
    diff: stageInfoOf(a) && stageInfoOf(b) ? { a, b } : null,
    sendable: sendableStages(meta),
  };
}

function hopView({ number, tries, target, usage, finish, cost }: SampleHop): HopView {
  return {
    hop: number,
    tries: tries.map((one) => tryView(one, target ?? '')),
    usage: usage ?? null,
    cost,
    finish: finish ?? null,
  };
}

function tryView({ number, counted, request, response }: SampleTry, target: string): TryView {
  const facts: Partial<SampleStage> = response ?? request ?? {};
  const made = response?.made === true;
  return {
    try: number,
    counted,
    target: request?.target ?? facts.target ?? target,
    protocol: request?.protocol ?? facts.protocol ?? null,
    url: request?.url ?? null,
    status: response?.status ?? null,
    error: response?.error ?? null,
    request: request?.stage ?? null,
    response: response?.stage ?? null,
    response_bytes: response?.bytes ?? 0,
    sent_at: request?.at ?? null,
    connected_at: request?.connected ?? null,
    // Without an answer, the recorded body is this gateway's own.
    head_at: made ? null : (response?.at ?? null),
    first_at: made ? null : (response?.first ?? null),
    end_at: response?.until ?? null,
    stream: response?.file.endsWith('.sse') === true,
    cut: response?.cut === true,
  };
}

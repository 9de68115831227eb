/** Groups the stages of an exchange into hops and tries, with usage and cost of each hop. */

import type { FinishReason } from '../../conversation/events.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../sample.ts';
import { costAt, type Prices } from './cost.ts';
import { digestOf } from './outcome.ts';

/** One request at a vendor. */
export interface SampleTry {
  /** Counts from 1. */
  readonly number: number;
  /** Its answer was used. */
  readonly counted: boolean;
  readonly request: SampleStage | undefined;
  readonly response: SampleStage | undefined;
}

export interface SampleHop {
  /** Counts from 1. */
  readonly number: number;
  readonly tries: readonly SampleTry[];
  /** `provider/model` of the try that counted. */
  readonly target: string | undefined;
  /** As the vendor reported it in its answer. */
  readonly usage: Usage | undefined;
  readonly finish: FinishReason | undefined;
  /** In USD; null when the usage or the price is unknown. */
  readonly cost: number | null;
}

const STAGE = /^(?:hop(\d+)-)?(?:try(\d+)-)?provider-(request|response|error)$/;

/** Tries by hop, in order, without reading any body. */
export const triesOf = (meta: SampleMeta): readonly (readonly SampleTry[])[] =>
  byHop(meta).map(([, tries]) => tries);

function byHop(meta: SampleMeta): readonly (readonly [hop: number, tries: readonly SampleTry[]])[] {
  const hops = new Map<number, Map<string, { request?: SampleStage; response?: SampleStage }>>();
  for (const stageInfo of meta.edges) {
    const [whole, hop = '1', attempt = '', kind] = STAGE.exec(stageInfo.stage) ?? [];
    if (whole === undefined) continue;
    const tries = hops.get(Number(hop)) ?? new Map();
    hops.set(Number(hop), tries);
    const own = tries.get(attempt) ?? {};
    tries.set(attempt, { ...own, [kind === 'request' ? 'request' : 'response']: stageInfo });
  }
  return [...hops]
    .sort(([a], [b]) => a - b)
    .map(([hop, tries]) => {
      // The stages of the try that counted carry no number.
      const order = [...tries].sort(([a], [b]) => rank(a) - rank(b));
      const listed = order.map(([attempt, { request, response }], i) => ({
        number: request?.try ?? response?.try ?? i + 1,
        counted: attempt === '',
        request,
        response,
      }));
      return [hop, listed] as const;
    });
}

const rank = (attempt: string) => (attempt === '' ? Number.POSITIVE_INFINITY : Number(attempt));

/** Hops with usage and cost; reads the answer of every hop. */
export function hopsOf(
  store: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  prices: Prices,
  { protocols }: Pick<SampleServices, 'protocols'>,
): readonly SampleHop[] {
  return byHop(meta).map(([number, tries]) => {
    const counted = tries.find((one) => one.counted);
    const stageInfo = counted?.response ?? counted?.request;
    const target = stageInfo?.target ?? meta.target;
    const digest = digestFor(store, meta, counted?.response, protocols);
    const usage = digest?.usage;
    return {
      number,
      tries,
      target,
      usage,
      finish: digest?.finish,
      cost: costAt(prices, target ?? '', usage),
    };
  });
}

function digestFor(
  store: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  answer: SampleStage | undefined,
  protocols: SampleServices['protocols'],
) {
  if (answer?.stage.endsWith('-response') !== true) return undefined;
  const body = store.read(meta, answer.stage);
  const protocol: ProtocolName | undefined = answer.protocol ?? meta.provider_protocol;
  if (body === undefined || protocol === undefined) return undefined;
  try {
    return digestOf(protocols[protocol], body, answer.file.endsWith('.sse'));
  } catch {
    // A body that its codec cannot read has no known usage.
    return undefined;
  }
}

/** Cost of the whole exchange in USD: the sum of its hops where each is known, else its usage at the target that answered. */
export function costOfExchange(
  meta: SampleMeta,
  hops: readonly SampleHop[],
  prices: Prices,
): number | null {
  const known = hops.filter(({ cost }) => cost !== null);
  if (hops.length > 0 && known.length === hops.length) {
    return known.reduce((sum, { cost }) => sum + cost!, 0);
  }
  return costAt(prices, meta.target ?? '', meta.usage);
}

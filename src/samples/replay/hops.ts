/** The edges of an exchange as hops and tries: when each was sent and answered, and what it used. */

import type { FinishReason } from '../../conversation/events.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../sample.ts';
import { costAt, type Prices, tokensOf } from './cost.ts';
import { digestOf } from './outcome.ts';
import type { SampleServices } from './tools.ts';

/** One request at a vendor. */
export interface SampleTry {
  /** Counts from 1. */
  readonly number: number;
  /** It is the one whose answer was used. */
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
  /** What the vendor said of it in its answer. */
  readonly usage: Usage | undefined;
  readonly finish: FinishReason | undefined;
  /** USD; null when the usage or the price is not known. */
  readonly cost: number | null;
}

const STAGE = /^(?:hop(\d+)-)?(?:try(\d+)-)?provider-(request|response|error)$/;

/** Tries by hop, in order, without a look into any body. */
export const triesOf = (meta: SampleMeta): readonly (readonly SampleTry[])[] =>
  byHop(meta).map(([, tries]) => tries);

function byHop(meta: SampleMeta): readonly (readonly [hop: number, tries: readonly SampleTry[]])[] {
  const hops = new Map<number, Map<string, { request?: SampleStage; response?: SampleStage }>>();
  for (const edge of meta.edges) {
    const [whole, hop = '1', attempt = '', kind] = STAGE.exec(edge.stage) ?? [];
    if (whole === undefined) continue;
    const tries = hops.get(Number(hop)) ?? new Map();
    hops.set(Number(hop), tries);
    const own = tries.get(attempt) ?? {};
    tries.set(attempt, { ...own, [kind === 'request' ? 'request' : 'response']: edge });
  }
  return [...hops]
    .sort(([a], [b]) => a - b)
    .map(([hop, tries]) => {
      // The try that counted has no number in its stages.
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

/** The same with what the answers say; reads the answer of every hop. */
export function hopsOf(
  book: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  prices: Prices,
  { protocols }: Pick<SampleServices, 'protocols'>,
): readonly SampleHop[] {
  return byHop(meta).map(([number, tries]) => {
    const counted = tries.find((one) => one.counted);
    const edge = counted?.response ?? counted?.request;
    const target = edge?.target ?? meta.target;
    const digest = digestFor(book, meta, counted?.response, protocols);
    const usage = digest?.usage;
    const tokens = usage === undefined ? undefined : tokensOf(usage);
    return {
      number,
      tries,
      target,
      usage,
      finish: digest?.finish,
      cost: costAt(prices, target ?? '', tokens),
    };
  });
}

function digestFor(
  book: Pick<SampleStore, 'read'>,
  meta: SampleMeta,
  answer: SampleStage | undefined,
  protocols: SampleServices['protocols'],
) {
  if (answer?.stage.endsWith('-response') !== true) return undefined;
  const body = book.read(meta, answer.stage);
  const protocol: ProtocolName | undefined = answer.protocol ?? meta.provider_protocol;
  if (body === undefined || protocol === undefined) return undefined;
  try {
    return digestOf(protocols[protocol], body, answer.file.endsWith('.sse'));
  } catch {
    // A body that its protocol cannot read says nothing of usage.
    return undefined;
  }
}

/** USD of the whole exchange: its hops' where each is known, else its usage at the target that answered. */
export function costOfExchange(
  meta: SampleMeta,
  hops: readonly SampleHop[],
  prices: Prices,
): number | null {
  const known = hops.filter(({ cost }) => cost !== null);
  if (hops.length > 0 && known.length === hops.length) {
    return known.reduce((sum, { cost }) => sum + cost!, 0);
  }
  const tokens = meta.usage === undefined ? undefined : tokensOf(meta.usage);
  return costAt(prices, meta.target ?? '', tokens);
}

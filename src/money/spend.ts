/** A spend row: what one try at an upstream used and cost, and for whom. */

import type { TryEnd } from '../conversation/account/payer.ts';

/** Tokens by kind, which exclude each other as those of `Usage` do. */
export interface SpendTokens {
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly cache_write: number;
  /** The part of `cache_write` that is stored for one hour. */
  readonly cache_write_1h: number;
  readonly reasoning: number;
  /** Searches of the vendor's own tool. */
  readonly searches: number;
}

/** Members are called as the columns of the tables. */
export interface SpendRow extends SpendTokens {
  /** The request id. */
  readonly request: string;
  /** Milliseconds since 1970: when the try ended. */
  readonly time: number;
  /** The id of the key's owner, `''` where no key is needed. */
  readonly key: string;
  /** JSON, as `labelsText`. */
  readonly labels: string;
  readonly session: string | undefined;
  readonly client: string;
  /** As it was asked for. */
  readonly model: string;
  /** `provider/model` */
  readonly target: string;
  readonly upstream_key: string | undefined;
  readonly hop: number;
  readonly attempt: number;
  /** Status of the vendor's answer; undefined: there was none. */
  readonly status: number | undefined;
  readonly ended: Exclude<TryEnd, 'stopped'>;
  /** 1: no usage came, or only a part. */
  readonly estimated: 0 | 1;
  /** Nano-USD; undefined: no price is known. */
  readonly cost: number | undefined;
  /** JSON of what was applied; undefined: no price is known. */
  readonly price: string | undefined;
  readonly trace: string | undefined;
  /** 1: the first try of its request, so that their sum is the number of requests. */
  readonly requests: 0 | 1;
}

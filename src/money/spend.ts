/** A spend row: what one try at an upstream used and cost, and for whom. */

import type { TryEnd } from '../conversation/account/payer.ts';

/** Tokens by kind, which exclude each other as those of `Usage` do; undefined: nothing is known of them. */
export interface SpendTokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that is stored for one hour. */
  readonly cacheWrite1h: number;
  readonly reasoning: number;
  /** Searches of the vendor's own tool. */
  readonly searches: number;
}

export const NO_TOKENS: SpendTokens = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  reasoning: 0,
  searches: 0,
};

export interface SpendRow {
  /** The request id. */
  readonly request: string;
  /** Milliseconds since 1970: when the try ended. */
  readonly time: number;
  /** The id of the key's owner, `''` where no key is needed. */
  readonly key: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly session: string | undefined;
  readonly client: string;
  /** As it was asked for. */
  readonly model: string;
  /** `provider/model` */
  readonly target: string;
  readonly upstreamKey: string | undefined;
  readonly hop: number;
  readonly attempt: number;
  /** Of the vendor's answer; undefined: there was none. */
  readonly status: number | undefined;
  readonly ended: TryEnd;
  readonly tokens: SpendTokens;
  /** No usage came, or only a part. */
  readonly estimated: boolean;
  /** Nano-USD; undefined: no price is known. */
  readonly cost: number | undefined;
  /** JSON of what was applied; undefined: no price is known. */
  readonly price: string | undefined;
  readonly trace: string | undefined;
}

/** Types of a replay that the page knows as well: edits of the request, and what it may cost. */

import type { Json } from '../../lib/json/json.ts';

export interface RequestEdit {
  /** JSON pointer into the body: a member that is there, or a parameter. */
  readonly at: string;
  /** null removes the member. */
  readonly value: Json;
}

/** Amounts in USD by list prices, from the tokens of the recorded answer; null: not known. */
export interface SpendPlan {
  readonly requests: number;
  readonly targets: readonly {
    /** `provider/model`; '' where routing decides. */
    readonly target: string;
    readonly requests: number;
    readonly usd: number | null;
  }[];
  /** Of all requests. */
  readonly usd: number | null;
  /** The recorded answer reports no tokens: they are guessed from the size of the request. */
  readonly guessed: boolean;
}

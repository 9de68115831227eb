/** What an exchange may use and what each of its tries costs, as the gateway sees it. */

import type { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import type { Usage } from '../conversation/usage.ts';
import type { Principal } from '../keys/principal.ts';
import type { FlatHeaders } from '../lib/http/headers.ts';

/** Opens the account of each exchange. */
export interface Accounts {
  /** @throws GatewayError if a limit or a budget refuses the exchange before anything is sent */
  open(about: AccountStart): Account | Promise<Account>;
}

export interface AccountStart {
  readonly principal: Principal;
  /** `req_…` of the client's request; side calls (vision, model search, embeddings) carry that of their exchange. */
  readonly request: string;
  /** The model as the client asked for it. */
  readonly model: string | undefined;
  readonly session: string | undefined;
  /** As in log lines. */
  readonly client: string;
  readonly stream: boolean;
}

/** One exchange's account. */
export interface Account {
  /** Why the key may not use this target; undefined: it may. A forbidden target is passed over. */
  forbids(target: Target): GatewayError | undefined;
  /**
   * Before a try goes out: its tokens and its money are reserved.
   * @throws GatewayError if a limit refuses the try
   */
  beginTry(about: TryStart): TryAccount | Promise<TryAccount>;
  /** Adds what is left (`x-ratelimit-…`, `x-hopgate-budget-…`) and, once the cost is known, the cost. */
  addHeaders(headers: FlatHeaders): void;
  /** Nano-USD of all tries so far, estimates included; undefined: a price is unknown. */
  readonly cost: number | undefined;
  /** The exchange is over; what it held is given back. */
  end(): void;
}

export interface TryStart {
  readonly target: Target;
  /** A name of the vendor's key for logs that gives nothing away. */
  readonly upstreamKey: string | undefined;
  readonly hop: number;
  readonly attempt: number;
  /** Estimate of the prompt. */
  readonly inputTokens: number;
  /** What the request allows; undefined: it does not say. */
  readonly maxOutputTokens: number | undefined;
}

/** How a try ended. */
export type TryEnd = 'done' | 'client_gone' | 'cut' | 'error' | 'timeout';

/** One try at an upstream. */
export interface TryAccount {
  /** The head of the answer has come: from here on the prompt is paid for unless usage says otherwise. */
  answered(status: number): void;
  /** Once; later calls do nothing. `usage`: what the vendor said, `bytes`: what came of the answer's body. */
  end(ended: TryEnd, usage: Usage | undefined, bytes: number): void;
}

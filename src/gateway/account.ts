/** Permissions of an exchange and the cost of each of its tries, as the gateway sees them. */

import type { Payer, Spent } from '../conversation/account/payer.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
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
  /** Whose prompts they are; left out: it has none. */
  readonly asked?: {
    readonly sessionId: string;
    readonly protocol: { readonly name: string };
    readonly body: Uint8Array;
  };
  /** As in log lines. */
  readonly client: string;
  readonly stream: boolean;
  /** The id of its trace; undefined: it is not traced. */
  readonly trace: string | undefined;
  /** False: no vendor is paid for the request itself; a budget that is used up does not refuse it. */
  readonly costs?: boolean;
}

/** One exchange's account. */
export interface Account extends Payer {
  /** Why the key may not use this target; undefined: it may. A forbidden target is passed over. */
  forbids(target: Target): GatewayError | undefined;
  /** The route by which it goes, whatever its request says; undefined: as the request says. */
  readonly route: string | undefined;
  /** Two tries at a time may be paid for. False: a budget is nearly used up. */
  readonly mayHedge: boolean;
  /** Adds what is left (`x-ratelimit-…`, `x-hopgate-budget-…`) and, on whole answers, the cost. */
  addHeaders(headers: FlatHeaders, whole: boolean): void;
  /** Nano-USD of all tries so far, estimates included; undefined: a price is unknown, or nothing was tried. */
  readonly cost: number | undefined;
  /** Prompt tokens that the vendor's cache should have held and did not; undefined: no known loss. */
  readonly lost?: { readonly tokens: number; readonly nanoUsd: number } | undefined;
  /** Cost of the last try that has ended; undefined: it was not answered. */
  readonly spent: Spent | undefined;
  /** The exchange is over: tries that have not ended end as `ended` says, and what it held is given back. */
  end(ended: 'client_gone' | 'cut'): void;
}

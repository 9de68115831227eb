/** Who asks: a gateway key or a person, with what it may use and the limits that apply to it. */

/** What a key may use. Every method is linear in its argument. */
export interface Policy {
  /** The model as the client asked for it. */
  allowsModel(asked: string): boolean;
  /** The target that was chosen, after aliases, routes and fallbacks. `asked` as in {@link allowsModel}. */
  allowsTarget(
    asked: string,
    target: { readonly provider: string; readonly model: string },
  ): boolean;
  allowsRoute(name: string): boolean;
  /** A tool of the gateway (`web_search`, the name of an HTTP or MCP tool). */
  allowsTool(name: string): boolean;
  allowsSpace(space: string): boolean;
}

/** As in the configuration; what is left out has no limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  /** Exchanges at a time, streams included. */
  readonly concurrent?: number;
}

export type BudgetPeriod = 'minute' | 'hour' | 'day' | 'week' | 'month' | 'total';

/** An amount of money for one period. */
export interface Budget {
  /** Stable: what was spent belongs to it. A key's own: `<key id>/<index or name>`. */
  readonly id: string;
  /** For messages. */
  readonly name: string;
  /** 1e-9 USD, an integer. */
  readonly nanoUsd: number;
  readonly per: BudgetPeriod;
  /** IANA name; where calendar periods begin. */
  readonly timeZone: string;
  /** Shares of the amount, ascending: 0.5, 0.8. */
  readonly warn: readonly number[];
  /** What happens when it is used up; a route's name sends requests there. */
  readonly over:
    | { readonly action: 'refuse' | 'warn' }
    | { readonly action: 'route'; readonly route: string };
}

/** Immutable; replaced as a whole when keys change. */
export interface Principal {
  /**
   * Stable through rotation: spend, limits and stored data belong to it. The name of a key of the configuration,
   * the id of a key made at run time, `jwt:<subject>` of a person; '' where no key is needed.
   */
  readonly id: string;
  /** For logs and pages. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970; from then on it is refused. */
  readonly expires?: number;
  readonly policy: Policy;
  readonly limits: KeyLimits;
  /** Its own, and those of the configuration whose labels choose it. */
  readonly budgets: readonly Budget[];
}

const ANYTHING: Policy = {
  allowsModel: () => true,
  allowsTarget: () => true,
  allowsRoute: () => true,
  allowsTool: () => true,
  allowsSpace: () => true,
};

/** Where the gateway needs no key. */
export const WITHOUT_KEY: Principal = {
  id: '',
  name: '',
  labels: {},
  policy: ANYTHING,
  limits: {},
  budgets: [],
};

/** Who asks: a gateway key or a person, with what it may use and the limits that apply to it. */

import type { Budget } from '../config/sections/keys/budgets.ts';
import type { KeyLimits } from '../config/sections/keys/settings.ts';

export type { Budget } from '../config/sections/keys/budgets.ts';
export type { KeyLimits, LimitName } from '../config/sections/keys/settings.ts';

/** What a key may use. */
export interface Policy {
  /** Every model is allowed: nothing needs to be looked at. */
  readonly everyModel: boolean;
  /**
   * The model as the client asked for it. False: no target can be allowed for this name. True says nothing
   * yet about a target: see {@link allowsTarget}.
   */
  allowsModel(asked: string): boolean;
  /** The target that was chosen, after aliases, routes and fallbacks. `asked` as in {@link allowsModel}. */
  allowsTarget(
    asked: string,
    target: { readonly provider: string; readonly model: string },
  ): boolean;
  allowsRoute(name: string): boolean;
  /** A tool of the gateway (`web_search`, the name of an HTTP or MCP tool). */
  allowsTool(name: string): boolean;
  /** Every tool is allowed: nothing needs to be looked at. */
  readonly everyTool: boolean;
  allowsSpace(space: string): boolean;
}

/** Immutable; replaced as a whole when keys change. */
export interface Principal {
  /**
   * Stable through rotation: spend, limits and stored data belong to it. The name of a key of the configuration,
   * `hk_<id>` of a key made at run time, `jwt:<subject>` of a person; '' where no key is needed.
   */
  readonly id: string;
  /** For people: pages and messages. Several run-time keys may have the same. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970; from then on it is refused. */
  readonly expires?: number;
  /** Which recorded exchanges it may see: its own, or all. */
  readonly sees: 'own' | 'all';
  readonly policy: Policy;
  readonly limits: KeyLimits;
  /** Its own, and those of the configuration whose labels choose it. */
  readonly budgets: readonly Budget[];
}

/** Whom log and metrics name. */
export type Who = Pick<Principal, 'id' | 'name'>;

const ANYTHING: Policy = {
  everyModel: true,
  allowsModel: () => true,
  allowsTarget: () => true,
  allowsRoute: () => true,
  allowsTool: () => true,
  everyTool: true,
  allowsSpace: () => true,
};

/** Where the gateway needs no key. */
export const WITHOUT_KEY: Principal = {
  id: '',
  name: '',
  labels: {},
  sees: 'all',
  policy: ANYTHING,
  limits: {},
  budgets: [],
};

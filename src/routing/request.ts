/** The router's input and output: the facts of a request, and the decision with its reason. */

import type { Category } from '../config/sections/categories.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';

/**
 * The facts of a request. All but the first three may be getters: a fact that no rule reads (see
 * `RoutingTable.needs`) is never computed.
 */
export interface RouteRequest {
  /** As the client spelled it. */
  readonly model: string;
  readonly protocol: ProtocolName;
  /** What tells the session. Among weighted targets, the same affinity always picks the same one. */
  readonly affinity: string;
  readonly stream: boolean;
  /** An estimate of the prompt's size. */
  readonly tokens: number;
  /** Those of it that are sound; left out: none. */
  readonly heard?: number;
  /** Images since the user's last message, those in tool results included. */
  readonly images: number;
  /** PDFs and other files, anywhere in the prompt. */
  readonly documents: number;
  /** Names of the tools that the client runs itself. */
  readonly toolNames: readonly string[];
  /** Canonical names of hosted tools: web_search, … */
  readonly hostedTools: readonly string[];
  readonly thinking: boolean;
  /** none, minimal, low, medium, high, xhigh, max. */
  readonly effort: string | undefined;
  readonly headers: ReadonlyHeaders;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The text of the last user turn; '' when there is none. */
  readonly lastUserText: string;
  /** An agent's side job: a title, a summary, a topic check. */
  readonly background: boolean;
}

/** A request with nothing known but the model and the protocol. */
export function plainRequest(model: string, protocol: ProtocolName, now: number): RouteRequest {
  return {
    model,
    protocol,
    affinity: '',
    stream: true,
    tokens: 0,
    images: 0,
    documents: 0,
    toolNames: [],
    hostedTools: [],
    thinking: false,
    effort: undefined,
    headers: new Headers(),
    time: now,
    lastUserText: '',
    background: false,
  };
}

export type Fact = keyof RouteRequest;

/** A target to try, with its provider. */
export interface RoutedTarget {
  readonly target: Target;
  readonly provider: ProviderConfig;
}

/** Why the targets were chosen, for logs and `explain`. */
export interface RouteReason {
  readonly kind: 'direct' | 'rule' | 'listed' | 'none';
  /** The rule's name; the provider's for `direct` and `listed`. */
  readonly name: string;
  /** From 0; only for rules. */
  readonly index?: number;
  /** The conditions that held, as texts: `model claude-* = claude-opus-4-7`. */
  readonly matched: readonly string[];
  readonly category?: Category;
  /** The aliases that were followed; the last one is the name that was routed. */
  readonly aliases: readonly string[];
}

export type RouteDecision =
  | {
      readonly ok: true;
      /** To be tried in this order; never empty, no target twice. */
      readonly targets: readonly RoutedTarget[];
      /** The route that chose them; undefined when none did. */
      readonly routeName: string | undefined;
      /** So many of the first are equals by weight: one may take the place of the first if that is much slower. */
      readonly equals: number;
      readonly reason: RouteReason;
    }
  | { readonly ok: false; readonly error: GatewayError; readonly reason: RouteReason };

/** What the router asks about a request, and what it answers. */

import type { Category } from '../config/sections/categories.ts';
import type { ProviderConfig } from '../config/sections/providers.ts';
import type { GatewayError } from '../conversation/errors.ts';
import type { Target } from '../conversation/target.ts';
import type { ProtocolName } from '../conversation/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';

/**
 * The facts of a request. All but the first three may be getters: a fact that no rule of the table
 * looks at (see `RoutingTable.needs`) is never read.
 */
export interface RouteRequest {
  /** As the client spelled it. */
  readonly model: string;
  readonly protocol: ProtocolName;
  /** The same text always picks the same of several weighted targets: a session id, else the request id. */
  readonly affinity: string;
  readonly stream: boolean;
  /** An estimate of the prompt's size. */
  readonly tokens: number;
  /** Images since the user last spoke, those in results of tools included. */
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
  /** A side job of an agent: a title, a summary, a topic check. */
  readonly background: boolean;
}

/** A request of which nothing but the model and the protocol is known. */
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

/** One place to try. */
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
  /** The conditions that held, in words: `model claude-* = claude-opus-4-7`. */
  readonly matched: readonly string[];
  readonly category?: Category;
  /** The aliases that were followed, the last one being the name that was routed. */
  readonly aliases: readonly string[];
}

export type RouteDecision =
  | {
      readonly ok: true;
      /** To be tried in this order; never empty, no target twice. */
      readonly targets: readonly RoutedTarget[];
      /** The name of the rule that chose them; undefined where none did. */
      readonly rule: string | undefined;
      readonly reason: RouteReason;
    }
  | { readonly ok: false; readonly error: GatewayError; readonly reason: RouteReason };

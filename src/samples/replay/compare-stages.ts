/** Compares the bodies of two stages of an exchange, and names the rules behind each change. */

import { GatewayError } from '../../conversation/errors.ts';
import { type Json, tryParse } from '../../lib/json/json.ts';
import { diffSteps } from '../../lib/json/json-diff.ts';
import type { Steps } from '../../lib/loop/steps.ts';
import { framesOf, jsonSteps, stageBytes } from '../decode/decode-body.ts';
import type { ExplainedChange, SampleMeta, SampleStore } from '../sample.ts';
import { placedRules, rulesBehind } from './explain.ts';

export interface StageDiff {
  /** Stages. */
  readonly a: string;
  readonly b: string;
  /** Byte for byte the same. */
  readonly identical: boolean;
  readonly changes: readonly ExplainedChange[];
  /** Number of all changes, also of those left out of `changes`. */
  readonly total: number;
}

/** The stages to compare, with defaults: a request is compared with that of the first hop, an answer with the client's. */
export function stagesToCompare(
  meta: SampleMeta,
  first?: string,
  second?: string,
): readonly [a: string, b: string] {
  const toRequest = first === undefined || /request$/.test(first);
  return [first ?? 'client-request', second ?? (toRequest ? sentRequest(meta) : 'client-response')];
}

/** What the gateway made of the client's request: later hops also hold what the tool loop added. */
const sentRequest = (meta: SampleMeta) =>
  meta.edges.find(({ stage }) => /^(hop\d+-)?provider-request$/.test(stage))?.stage ??
  'provider-request';

/**
 * @param most number of changes to return, the first ones
 * @throws GatewayError not_found for an unknown stage, too_large for values that are nested too deep
 */
export function* compareStages(
  store: SampleStore,
  meta: SampleMeta,
  a: string,
  b: string,
  most = Number.POSITIVE_INFINITY,
): Steps<StageDiff> {
  const [from, to] = [stageBytes(store, meta, a), stageBytes(store, meta, b)];
  if (Buffer.from(from).equals(to)) return { a, b, identical: true, changes: [], total: 0 };
  try {
    const was = yield* shownAs(from, store.path(meta, a));
    const is = yield* shownAs(to, store.path(meta, b));
    const all = yield* diffSteps(was, is);
    const rules = placedRules(meta.notes);
    const changes: ExplainedChange[] = [];
    for (const change of all.slice(0, most)) {
      changes.push({ ...change, rules: rulesBehind(change, rules) });
      yield;
    }
    return { a, b, identical: false, changes, total: all.length };
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new GatewayError('too_large', 'The bodies are nested too deeply to compare.');
  }
}

/** A body as JSON; an event stream becomes the list of its events. */
function* shownAs(bytes: Uint8Array, path: string): Steps<Json> {
  if (path.endsWith('.sse')) {
    const events: Json[] = [];
    for (const { event, data } of yield* framesOf(bytes)) {
      yield;
      if (data === undefined) continue;
      events.push({ ...(event !== '' && { event }), data: tryParse(data) ?? data });
    }
    return events;
  }
  try {
    return yield* jsonSteps(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

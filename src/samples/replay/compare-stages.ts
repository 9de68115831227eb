/** Compares the bodies of two stages of an exchange, and names the rules behind each change. */

import { GatewayError } from '../../conversation/errors.ts';
import { SseParser } from '../../lib/bytes/sse.ts';
import { type Json, tryParse } from '../../lib/json/json.ts';
import { diffJson } from '../../lib/json/json-diff.ts';
import type { ExplainedChange, SampleMeta, SampleStore } from '../sample.ts';
import { explainChanges } from './explain.ts';

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
export function compareStages(
  store: SampleStore,
  meta: SampleMeta,
  a: string,
  b: string,
  most = Number.POSITIVE_INFINITY,
): StageDiff {
  const [from, to] = [stageBytes(store, meta, a), stageBytes(store, meta, b)];
  if (Buffer.from(from).equals(to)) return { a, b, identical: true, changes: [], total: 0 };
  try {
    const all = diffJson(shownAs(from, store.path(meta, a)), shownAs(to, store.path(meta, b)));
    const changes = explainChanges(all.slice(0, most), meta.notes);
    return { a, b, identical: false, changes, total: all.length };
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new GatewayError('too_large', 'The bodies are nested too deeply to compare.');
  }
}

/** The body of a stage. @throws GatewayError not_found */
export function stageBytes(store: SampleStore, meta: SampleMeta, stage: string): Uint8Array {
  const bytes = store.read(meta, stage);
  if (bytes === undefined) {
    const names = meta.edges.map((stageInfo) => stageInfo.stage).join(', ');
    throw new GatewayError('not_found', `${meta.id} has no stage "${stage}". It has: ${names}.`);
  }
  return bytes;
}

/** A body as JSON; an event stream becomes the list of its events. */
function shownAs(bytes: Uint8Array, path: string): Json {
  if (path.endsWith('.sse')) {
    const parser = new SseParser();
    return [...parser.push(bytes), ...parser.end()]
      .filter(({ data }) => data !== undefined)
      .map(({ event, data }) => ({
        ...(event !== '' && { event }),
        data: tryParse(data!) ?? data!,
      }));
  }
  const text = new TextDecoder().decode(bytes);
  return tryParse(text) ?? text;
}

/** Pages of files and batches in the form of the client's API, and addresses in them that lead to this gateway. */

import { invalid } from '../../conversation/errors.ts';
import type { Json, JsonObject } from '../../lib/json/json.ts';
import type { ObjectPage, VendorApi } from './vendor-objects.ts';

const USUAL = 20;
const MAX_LIMIT = 100;

/** @throws GatewayError invalid_request */
export function readPage(search: string, api: VendorApi): ObjectPage {
  const query = new URLSearchParams(search);
  const text = query.get('limit');
  const limit = text === null ? USUAL : Number(text);
  if (!Number.isInteger(limit) || limit < 1) {
    throw invalid("'limit' must be a whole number of at least 1.", 'limit');
  }
  const [after, before] = api === 'openai' ? ['after', 'before'] : ['after_id', 'before_id'];
  return {
    limit: Math.min(limit, MAX_LIMIT),
    after: query.get(after!) ?? undefined,
    before: query.get(before!) ?? undefined,
    oldestFirst: api === 'openai' && query.get('order') === 'asc',
  };
}

/** @param hasMore in the direction in which the page was read */
export function listPage(
  read: readonly JsonObject[],
  hasMore: boolean,
  { after, before }: ObjectPage,
  api: VendorApi,
  search: string,
): JsonObject & { readonly data: readonly JsonObject[] } {
  const isBackwards = after === undefined && before !== undefined;
  const all = isBackwards ? read.toReversed() : read;
  const purpose = api === 'openai' ? new URLSearchParams(search).get('purpose') : null;
  const data = purpose === null ? all : all.filter((one) => one.purpose === purpose);
  const idOf = (one: JsonObject | undefined): Json => (typeof one?.id === 'string' ? one.id : null);
  return {
    ...(api === 'openai' && { object: 'list' }),
    data,
    has_more: hasMore,
    first_id: idOf(all[0]),
    last_id: idOf(all.at(-1)),
  };
}

/** A batch of Messages names the address of its results, where SDKs go with the client's key. */
export function ownResultsUrl(object: JsonObject, origin: string): JsonObject {
  const { id, results_url: url } = object;
  if (typeof url !== 'string' || typeof id !== 'string') return object;
  const own = `${origin}/v1/messages/batches/${encodeURIComponent(id)}/results`;
  return { ...object, results_url: own };
}

/** Pages of items for `GET /v1/responses/{id}/input_items`; each item gets an id. */

import { createHash } from 'node:crypto';
import { invalid } from '../../conversation/errors.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';

export interface ItemPageQuery {
  /** 1 to 100, default 20. */
  readonly limit?: number | string;
  /** Default `desc`: newest first. */
  readonly order?: string;
  /** The page begins after the item of this id. */
  readonly after?: string;
  /** The page ends before the item of this id. */
  readonly before?: string;
}

// The prefixes of OpenAI's item ids by type; messages are `msg_`.
const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  custom_tool_call: 'ctc_',
  custom_tool_call_output: 'ctco_',
  web_search_call: 'ws_',
};

/** The item with its type and an id; an item without one gets the same id every time. */
function identified(item: JsonObject, seed: string, position: number): JsonObject {
  if (typeof item.id === 'string') return item;
  const type = typeof item.type === 'string' ? item.type : 'message';
  const hash = createHash('sha256').update(`${seed}\n${position}`).digest('hex').slice(0, 48);
  return { id: (memberOf(PREFIX, type) ?? 'item_') + hash, ...item, type };
}

/**
 * One page of `items` (given oldest first), as the list object of the Responses API.
 * @param seed makes the ids of items that have none
 * @throws GatewayError invalid_request for a query out of bounds
 */
export function pageOf(
  items: readonly JsonObject[],
  seed: string,
  query: ItemPageQuery = {},
): JsonObject {
  const limit = query.limit === undefined ? 20 : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) {
    throw invalid(`Invalid 'limit': expected an integer from 1 to 100.`, 'limit');
  }
  const order = query.order ?? 'desc';
  if (order !== 'asc' && order !== 'desc') {
    throw invalid(`Invalid 'order': expected one of 'asc' or 'desc'.`, 'order');
  }
  const all = items.map((item, i) => identified(item, seed, i));
  if (order === 'desc') all.reverse();
  const place = (id: string, param: string) => {
    const at = all.findIndex((item) => item.id === id);
    if (at < 0) throw invalid(`Invalid '${param}': no item with id '${id}'.`, param);
    return at;
  };
  const start = query.after === undefined ? 0 : place(query.after, 'after') + 1;
  const end = query.before === undefined ? all.length : place(query.before, 'before');
  const rest = all.slice(start, end);
  const data = rest.slice(0, limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: rest.length > data.length,
  };
}

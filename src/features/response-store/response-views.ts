/** Pages of a stored response's input items, each with an id, and the response as a stream. */

import { invalid } from '../../conversation/errors.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { objects } from '../../lib/json/typed-reads.ts';
import { sha256Hex } from '../../lib/text/sha256.ts';

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
  const hash = sha256Hex(`${seed}\n${position}`).slice(0, 48);
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

/** The text field of a call or content part, by type, and the events that carry it. */
const TEXT_FIELDS: Readonly<Record<string, { readonly field: string; readonly event: string }>> = {
  output_text: { field: 'text', event: 'response.output_text' },
  refusal: { field: 'refusal', event: 'response.refusal' },
  function_call: { field: 'arguments', event: 'response.function_call_arguments' },
  custom_tool_call: { field: 'input', event: 'response.custom_tool_call_input' },
};

/**
 * The events of the response as SSE text; each text is one delta.
 * @param after the last sequence number that the client has; earlier events are left out
 * @throws GatewayError invalid_request where `after` is not a number
 */
export function responseStream(response: JsonObject, after: string | null): string {
  const first = after === null ? 0 : Number(after) + 1;
  if (!Number.isInteger(first) || first < 0) {
    throw invalid(`Invalid 'starting_after': expected a sequence number.`, 'starting_after');
  }
  const events: string[] = [];
  let sequence = 0;
  const send = (type: string, members: JsonObject) => {
    const data = JSON.stringify({ type, sequence_number: sequence, ...members });
    if (sequence++ >= first) events.push(`event: ${type}\ndata: ${data}\n\n`);
  };
  const sendText = (source: JsonObject, place: JsonObject) => {
    const field = typeof source.type === 'string' ? TEXT_FIELDS[source.type] : undefined;
    const text = field && source[field.field];
    if (field === undefined || typeof text !== 'string') return;
    const logprobs = source.type === 'output_text' ? { logprobs: [] } : {};
    if (text !== '') send(`${field.event}.delta`, { ...place, delta: text, ...logprobs });
    send(`${field.event}.done`, { ...place, [field.field]: text, ...logprobs });
  };
  const running = { ...response, status: 'in_progress', output: [], usage: null };
  send('response.created', { response: running });
  send('response.in_progress', { response: running });
  objects(response.output).forEach((item, output_index) => {
    const place = { item_id: item.id ?? null, output_index };
    const field = typeof item.type === 'string' ? TEXT_FIELDS[item.type] : undefined;
    const empty = item.type === 'message' ? { content: [] } : field ? { [field.field]: '' } : {};
    send('response.output_item.added', { output_index, item: { ...item, ...empty } });
    if (item.type === 'message') {
      objects(item.content).forEach((part, content_index) => {
        const at = { ...place, content_index };
        const field = (typeof part.type === 'string' && TEXT_FIELDS[part.type]?.field) || 'text';
        send('response.content_part.added', { ...at, part: { ...part, [field]: '' } });
        sendText(part, at);
        send('response.content_part.done', { ...at, part });
      });
    } else sendText(item, place);
    send('response.output_item.done', { output_index, item });
  });
  const status = response.status === 'incomplete' ? 'incomplete' : 'completed';
  send(`response.${status}`, { response });
  return events.join('');
}

/** Turns a stored response into a stream, for `GET /v1/responses/{id}?stream=true`. */

import { invalid } from '../../conversation/errors.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import { objects } from '../../lib/json/typed-reads.ts';

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

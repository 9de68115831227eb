/** A stored response as the stream that it could have been: `GET /v1/responses/{id}?stream=true`. */

import { invalid } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject } from '../../lib/json/json.ts';

const objects = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

/** The fields in which the text of a call or of a part stands, by type, and the events that tell it. */
const TOLD: Readonly<Record<string, { readonly field: string; readonly event: string }>> = {
  output_text: { field: 'text', event: 'response.output_text' },
  refusal: { field: 'refusal', event: 'response.refusal' },
  function_call: { field: 'arguments', event: 'response.function_call_arguments' },
  custom_tool_call: { field: 'input', event: 'response.custom_tool_call_input' },
};

/**
 * The events as SSE text, each text in one piece.
 * @param after events up to this sequence number are left out, as a client asks that has had them
 * @throws GatewayError invalid_request where that is not a number
 */
export function replay(response: JsonObject, after: string | null): string {
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
  const tell = (told: JsonObject, place: JsonObject) => {
    const how = typeof told.type === 'string' ? TOLD[told.type] : undefined;
    const text = how && told[how.field];
    if (how === undefined || typeof text !== 'string') return;
    const logprobs = told.type === 'output_text' ? { logprobs: [] } : {};
    if (text !== '') send(`${how.event}.delta`, { ...place, delta: text, ...logprobs });
    send(`${how.event}.done`, { ...place, [how.field]: text, ...logprobs });
  };
  const running = { ...response, status: 'in_progress', output: [], usage: null };
  send('response.created', { response: running });
  send('response.in_progress', { response: running });
  objects(response.output).forEach((item, output_index) => {
    const place = { item_id: item.id ?? null, output_index };
    const how = typeof item.type === 'string' ? TOLD[item.type] : undefined;
    const empty = item.type === 'message' ? { content: [] } : how ? { [how.field]: '' } : {};
    send('response.output_item.added', { output_index, item: { ...item, ...empty } });
    if (item.type === 'message') {
      objects(item.content).forEach((part, content_index) => {
        const at = { ...place, content_index };
        const field = (typeof part.type === 'string' && TOLD[part.type]?.field) || 'text';
        send('response.content_part.added', { ...at, part: { ...part, [field]: '' } });
        tell(part, at);
        send('response.content_part.done', { ...at, part });
      });
    } else tell(item, place);
    send('response.output_item.done', { output_index, item });
  });
  const status = response.status === 'incomplete' ? 'incomplete' : 'completed';
  send(`response.${status}`, { response });
  return events.join('');
}

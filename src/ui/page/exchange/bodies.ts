/** Loads bodies as JSON values; an event stream becomes the list of its events, as in a diff. */

import { type Json, tryParse } from '../../../lib/json/json.ts';
import { type Body, getBody } from '../kit/api-calls.ts';
import { frameOf } from '../kit/fetching.ts';

/** Most bytes of a body that are loaded for a tree or a diff. */
export const MAX = 4 * 1024 * 1024;

export interface Parsed {
  readonly body: Body;
  /** Undefined: the body is not JSON, or only its beginning was loaded. */
  readonly value: Json | undefined;
}

export async function parsedBody(
  id: string,
  stage: string,
  stream: boolean,
  signal?: AbortSignal,
): Promise<Parsed> {
  const body = await getBody(id, stage, MAX, signal);
  if (stream) return { body, value: eventsOf(body.text) };
  if (!body.whole) return { body, value: undefined };
  return { body, value: tryParse(body.text) };
}

const eventsOf = (text: string): Json =>
  text
    .replace(/\r\n?/g, '\n')
    .split('\n\n')
    .map(frameOf)
    .filter(({ data }) => data !== '')
    .map(({ event, data }) => ({ ...(event !== '' && { event }), data: tryParse(data) ?? data }));

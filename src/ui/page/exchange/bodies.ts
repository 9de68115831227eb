/** Loads bodies as JSON values; an event stream becomes the list of its events, as in a diff. */

import type { Json } from '../../../lib/json/json.ts';
import { type Body, getBody } from '../kit/api-calls.ts';

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
  return { body, value: parsed(body.text) };
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function eventsOf(text: string): Json {
  const events: Json[] = [];
  for (const frame of text.replace(/\r\n?/g, '\n').split('\n\n')) {
    let event = '';
    const data: string[] = [];
    for (const line of frame.split('\n')) {
      if (line.startsWith('event:')) event = line.slice(6).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
    }
    if (data.length === 0) continue;
    const joined = data.join('\n');
    events.push({ ...(event !== '' && { event }), data: parsed(joined) ?? joined });
  }
  return events;
}

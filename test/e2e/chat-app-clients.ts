/** A chat app as a client of the binary, in each of the three protocols: the requests it sends and the replies it reads. */

import { SseParser } from '../../src/lib/bytes/sse.ts';
import { isObject, type JsonObject, tryParse } from '../../src/lib/json/json.ts';
import { readBySdk } from '../features/server-tools/sdk.ts';
import type { Gateway } from '../support/binary.ts';
import type { Protocol } from '../support/fake-upstream/index.ts';
import { until } from '../support/until.ts';

export const CLIENTS: readonly Protocol[] = [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
];
export const VIA: Readonly<Record<Protocol, string>> = {
  'openai-chat': 'via-chat',
  'openai-responses': 'via-responses',
  'anthropic-messages': 'via-messages',
};
const PATHS: Readonly<Record<Protocol, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
};

export interface AppRequest {
  readonly client: Protocol;
  readonly model?: string;
  /** Alternating turns, the user's first. */
  readonly messages: readonly string[];
  readonly system?: string;
  readonly stream?: boolean;
  readonly hopgate?: JsonObject;
  readonly headers?: Record<string, string>;
  readonly more?: JsonObject;
}

export interface AppReply {
  readonly status: number;
  readonly headers: Headers;
  readonly raw: string;
  /** The text that a reader of the chat sees. */
  readonly text: string;
  /** Calls that the client would have to run. */
  readonly calls: readonly string[];
  /** Tool events as the wire carries them. */
  readonly events: readonly JsonObject[];
}

export function bodyOf({
  client,
  model,
  messages,
  system,
  stream = true,
  hopgate,
  more,
}: AppRequest) {
  const parts = messages.map((content, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content,
  }));
  const own: Record<Protocol, JsonObject> = {
    'openai-chat': {
      messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), ...parts],
    },
    'openai-responses': {
      input: parts,
      ...(system === undefined ? {} : { instructions: system }),
    },
    'anthropic-messages': {
      max_tokens: 1000,
      messages: parts,
      ...(system === undefined ? {} : { system }),
    },
  };
  return {
    model: model ?? VIA[client],
    stream,
    ...own[client],
    ...more,
    ...(hopgate === undefined ? {} : { hopgate }),
  } as JsonObject;
}

export async function ask(gateway: Gateway, request: AppRequest): Promise<AppReply> {
  const { client, stream = true, headers = {} } = request;
  const response = await fetch(gateway.url + PATHS[client], {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify(bodyOf(request)),
  });
  const raw = await response.text();
  const common = { status: response.status, headers: response.headers, raw };
  if (response.status !== 200) return { ...common, text: '', calls: [], events: [] };
  if (stream) {
    const { text, calls } = await readBySdk(client, raw);
    return { ...common, text, calls, events: eventsIn(raw) };
  }
  const body = JSON.parse(raw) as JsonObject;
  const own = isObject(body.hopgate) ? (body.hopgate.tool_events as readonly JsonObject[]) : [];
  return { ...common, ...wholeOf(client, body), events: own };
}

/** The `hopgate` objects of a stream's frames, in order. */
function eventsIn(raw: string): readonly JsonObject[] {
  const parser = new SseParser();
  return [...parser.push(Buffer.from(raw)), ...parser.end()].flatMap(({ data }) => {
    const value = data === undefined ? undefined : tryParse(data);
    return isObject(value) && isObject(value.hopgate) ? [value.hopgate] : [];
  });
}

interface Item {
  readonly type: string;
  readonly text?: string;
  readonly id: string;
  readonly content?: readonly Item[];
}

function wholeOf(client: Protocol, body: JsonObject): Pick<AppReply, 'text' | 'calls'> {
  if (client === 'openai-chat') {
    const { message } = (body.choices as unknown as { message: ChatMessage }[])[0]!;
    return { text: message.content ?? '', calls: (message.tool_calls ?? []).map(({ id }) => id) };
  }
  const items = (client === 'openai-responses' ? body.output : body.content) as unknown as Item[];
  const parts = items.flatMap((item) => item.content ?? [item]);
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    calls: items
      .filter(({ type }) => type === 'function_call' || type === 'tool_use')
      .map(({ id }) => id),
  };
}
interface ChatMessage {
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly id: string }[];
}

/** Adds events to a space. */
export async function remember(
  gateway: Gateway,
  space: string,
  texts: readonly string[],
  headers: Record<string, string> = {},
): Promise<void> {
  for (const text of texts) {
    const response = await fetch(`${gateway.url}/v1/memory/${encodeURIComponent(space)}/events`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ text }),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  }
}

/** Waits until a space holds that many events, then returns their texts. */
export async function remembered(
  gateway: Gateway,
  space: string,
  count: number,
  headers: Record<string, string> = {},
): Promise<readonly { readonly text: string; readonly source?: string }[]> {
  return until(async () => {
    const response = await fetch(`${gateway.url}/v1/memory/${encodeURIComponent(space)}/events`, {
      headers,
    });
    const { events } = (await response.json()) as { events: { text: string; source?: string }[] };
    return events.length >= count && events;
  });
}

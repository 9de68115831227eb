/** One turn of one character: a streamed request with the extension `hopgate`, as a chat app would send it. */

import { SseParser } from '../../../lib/bytes/sse.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import type { Character } from './group-chats.ts';

/** Sends a request to a gateway. */
export type SendRequest = (request: Request) => Promise<Response>;

export interface ChatLine {
  readonly from: string;
  readonly text: string;
}

export interface TurnOptions {
  readonly send: SendRequest;
  readonly model: string;
  readonly locale: 'zh' | 'en';
  readonly self: Character;
  readonly members: readonly Character[];
  /** The rounds before this one. */
  readonly history: readonly ChatLine[];
  readonly user: string;
  readonly userText: string;
  /** What other characters have said in this round. */
  readonly round: readonly ChatLine[];
  readonly onEvent: (event: JsonObject) => void;
  readonly onText: (text: string) => void;
}

const ORIGIN = 'http://gateway.invalid';

export const spaceOf = (character: Character): string => `demo/${character.id}`;

/** Stores a character's memories in its memory space. @throws Error when it is refused */
export async function seedMemories(send: SendRequest, character: Character): Promise<void> {
  const path = `/v1/memory/${encodeURIComponent(spaceOf(character))}/events`;
  for (const text of character.memories) {
    const response = await send(post(path, { text, source: character.name }));
    if (!response.ok) throw new Error(await response.text());
  }
}

/** Plays one turn; the whole text. @throws Error with the gateway's message */
export async function takeTurn(options: TurnOptions): Promise<string> {
  const { send, self, members, history, user, userText, round } = options;
  const others = round.filter(({ from }) => from !== self.name);
  const response = await send(
    post('/v1/chat/completions', {
      model: options.model,
      stream: true,
      messages: [
        { role: 'system', content: self.persona },
        ...history.map(({ from, text }) =>
          from === self.name
            ? { role: 'assistant', content: text }
            : { role: 'user', content: from === user ? text : `${from}: ${text}` },
        ),
        { role: 'user', content: userText },
      ],
      // This makes it a group chat with a memory. No vendor sees it.
      hopgate: {
        conversation: {
          mode: 'group',
          self: { id: self.id, name: self.name },
          members: members.map(({ id, name }) => ({ id, name })),
          others: others.map(({ from, text }) => ({ from, text })),
          mentions: members.filter(({ name }) => userText.includes(`@${name}`)).map(({ id }) => id),
          locale: options.locale,
        },
        memory: { space: spaceOf(self), recall: 'always', max_recalls: 2, capture: true },
        tool_events: true,
      },
    }),
  );
  if (!response.ok || response.body === null) throw new Error(await response.text());
  const parser = new SseParser();
  let text = '';
  const take = (data: string | undefined) => {
    const chunk = data === undefined ? undefined : tryParse(data);
    if (!isObject(chunk)) return;
    if (isObject(chunk.error)) throw new Error(String(chunk.error.message));
    if (isObject(chunk.hopgate)) options.onEvent(chunk.hopgate);
    const more = deltaOf(chunk);
    if (more !== '') options.onText(more);
    text += more;
  };
  for await (const bytes of response.body) {
    for (const { data } of parser.push(bytes as Uint8Array)) take(data);
  }
  for (const { data } of parser.end()) take(data);
  return text;
}

function deltaOf(chunk: JsonObject): string {
  const [choice] = (Array.isArray(chunk.choices) ? chunk.choices : []) as readonly Json[];
  const delta = isObject(choice) ? choice.delta : undefined;
  return isObject(delta) && typeof delta.content === 'string' ? delta.content : '';
}

const post = (path: string, body: JsonObject): Request =>
  new Request(ORIGIN + path, {
    method: 'POST',
    headers: { host: 'localhost', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

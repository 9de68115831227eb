/** A conversation keeps its key also where only the response that it continues tells the session. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type FakeUpstream, say, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { idOf, ResponsesSocket } from '../support/responses-socket.ts';

const KEYS = Array.from({ length: 8 }, (_, i) => `sk-of-eight-${i}`);
const SESSIONS = 16;
const TURNS = 4;
/** On a slow machine a session may leave a key that seems slow. Turns that each go their own way have three keys in four. */
const MAX_PLACES = 1.6 * SESSIONS;

let upstream: FakeUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: KEYS, models: ['m1'] });
  const provider = (protocol: 'openai-chat' | 'openai-responses') => ({
    protocol,
    base_url: upstream.baseUrl(protocol),
    keys: KEYS,
    models: ['m1'],
  });
  gateway = await startInProcess({
    providers: { chat: provider('openai-chat'), responses: provider('openai-responses') },
    routes: [
      { when: { model: 'via-chat' }, to: ['chat/m1'] },
      { when: { model: 'via-responses' }, to: ['responses/m1'] },
    ],
  });
  upstream.answerWith(() => say('Yes.'));
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

/** The keys of the last requests, each once. */
const keysOf = (requests: number) =>
  new Set(
    upstream.modelRequests
      .slice(-requests)
      .map(({ headers }) => String(headers.authorization ?? headers['x-api-key'])),
  );

const question = (session: number, turn: number) => `Turn ${turn} of session ${session}.`;

async function posted(body: JsonObject): Promise<string> {
  const answer = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  return String(((await answer.json()) as JsonObject).id);
}

describe.each(['via-chat', 'via-responses'])('%s', (model) => {
  test('a stored response that is continued by its id', async () => {
    const seen = new Set<string>();
    let places = 0;
    for (let session = 0; session < SESSIONS; session++) {
      let previous: string | undefined;
      for (let turn = 0; turn < TURNS; turn++) {
        const input = question(session, turn);
        previous = await posted({
          model,
          input,
          ...(previous !== undefined && { previous_response_id: previous }),
        });
      }
      const keys = keysOf(TURNS);
      places += keys.size;
      for (const key of keys) seen.add(key);
    }
    expect(seen.size).toBeGreaterThan(3);
    expect(places).toBeLessThan(MAX_PLACES);
  });

  test('the deltas of a lane of a WebSocket, with nothing stored', async () => {
    const seen = new Set<string>();
    let places = 0;
    const socket = await ResponsesSocket.open(gateway.url);
    let answers = 0;
    for (let session = 0; session < SESSIONS; session++) {
      let previous: string | undefined;
      for (let turn = 0; turn < TURNS; turn++) {
        const input = [{ role: 'user', content: question(session, turn) }];
        socket.create({
          model,
          input,
          store: false,
          ...(previous !== undefined && { previous_response_id: previous }),
        });
        previous = idOf(await socket.last(answers++));
      }
      const keys = keysOf(TURNS);
      places += keys.size;
      for (const key of keys) seen.add(key);
    }
    socket.close();
    expect(seen.size).toBeGreaterThan(3);
    expect(places).toBeLessThan(MAX_PLACES);
  });
});

/** What the gateway itself adds to a prompt leaves its beginning as it is, from turn to turn and from hop to hop. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Server } from 'bun';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { CLAUDE_PRICES, claudeCache, costOf } from '../../support/prompt-caches/caches.ts';
import { PROMPTS } from '../../support/prompt-caches/prompts.ts';
import { words } from '../../support/prompt-caches/sessions.ts';

let vendor: Server<undefined>;
let gateway: InProcess;
const bodies: JsonObject[] = [];

/** Answers a question with a text; asks its memory first where it may, once in a turn. */
function answer(body: JsonObject): JsonObject {
  const messages = body.messages as readonly JsonObject[];
  const last = messages.at(-1)!.content as readonly JsonObject[];
  const tools = (body.tools ?? []) as readonly JsonObject[];
  const recalled = last.some(({ type }) => type === 'tool_result');
  const recalls = !recalled && tools.some(({ name }) => name === 'recall_memory');
  const content = recalls
    ? [
        {
          type: 'tool_use',
          id: `toolu_${bodies.length}`,
          name: 'recall_memory',
          input: { query: 'party' },
        },
      ]
    : [{ type: 'text', text: words(`answer ${bodies.length}`, 200) }];
  return {
    id: `msg_${bodies.length}`,
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content,
    stop_reason: recalls ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 10 },
  };
}

beforeAll(async () => {
  vendor = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      bodies.push(body);
      return Response.json(answer(body));
    },
  });
  gateway = await startInProcess({
    providers: {
      claude: {
        protocol: 'anthropic-messages',
        base_url: `http://127.0.0.1:${vendor.port}`,
        keys: 'k',
        profile: 'anthropic',
        models: ['claude-sonnet-4-5'],
      },
    },
    memory: { enabled: true },
  });
});

afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

async function chat(messages: readonly JsonObject[], hopgate: JsonObject): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-session-id': String(hopgate.name) },
    body: JSON.stringify({ model: 'claude-sonnet-4-5', messages, hopgate: hopgate.value }),
  });
  const reply = (await response.json()) as {
    readonly choices: readonly { readonly message: { readonly content: string } }[];
  };
  return reply.choices[0]!.message.content;
}

/** A chat of some turns, and what the vendor's cache has read of its prompts. */
async function session(name: string, extension: JsonObject) {
  bodies.length = 0;
  const messages: JsonObject[] = [{ role: 'system', content: words('rules', 1500) }];
  for (let turn = 0; turn < 8; turn++) {
    messages.push({ role: 'user', content: words(`question ${turn}`, 300) });
    const content = await chat(messages, { name, value: extension });
    messages.push({ role: 'assistant', content });
  }
  const cache = claudeCache(1024);
  let cost = 0;
  let all = 0;
  const fresh: number[] = [];
  bodies.forEach((body, i) => {
    const counted = cache.ask(PROMPTS['anthropic-messages'](body), i * 10);
    cost += costOf(counted, CLAUDE_PRICES);
    const tokens = counted.read + counted.written + counted.fresh;
    all += tokens;
    fresh.push(tokens - counted.read);
  });
  return { sent: bodies.length, fresh, share: cost / all };
}

/** In each turn: a question, an answer, and what was recalled. */
const MAX_NEW = 1500;

for (const [name, memory, hops] of [
  ['recalled before each answer', { recall: 'always' }, 8],
  ['recalled when the model asks', { recall: 'auto' }, 16],
  ['recalled, at most once', { recall: 'auto', max_recalls: 1 }, 16],
] as const) {
  test(`${name}: each turn pays for its news alone`, async () => {
    const { sent, fresh, share } = await session(name, { memory: { space: name, ...memory } });
    expect(sent).toBe(hops);
    expect(fresh.slice(2).filter((tokens) => tokens > MAX_NEW)).toEqual([]);
    expect(share).toBeLessThan(0.5);
  });
}

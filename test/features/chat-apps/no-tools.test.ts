/** Forced calls of a chat at a model that takes no tools: it reads what they gave as text. */

import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';

const sent: JsonObject[] = [];
let vendor: ReturnType<typeof Bun.serve>;
let gateway: InProcess;
beforeAll(async () => {
  vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = (await request.json()) as JsonObject;
      sent.push(body);
      if (body.tools !== undefined || JSON.stringify(body.messages).includes('tool_call')) {
        const message = `${body.model} does not support tools`;
        return Response.json({ error: { message, type: 'api_error' } }, { status: 400 });
      }
      const message = { role: 'assistant', content: 'Hello.' };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      return Response.json({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices });
    },
  });
  const provider = (profile: string) => ({
    protocol: 'openai-chat',
    base_url: `http://127.0.0.1:${vendor.port}`,
    keys: ['k'],
    models: [`${profile}-*`],
    profile,
  });
  gateway = await startInProcess({
    providers: { none: provider('none'), small: provider('small') },
    profiles: { small: { maxTools: 0 } },
    memory: {},
    samples: { mode: 'off' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await vendor.stop(true);
});

const GROUP = {
  mode: 'group',
  self: { id: 'a', name: 'Ann' },
  members: [{ id: 'b', name: 'Bob' }],
  others: 'Bob: Cats are fine.',
};

test.each<[what: string, model: string, conversation: object | undefined, tries: number]>([
  ['a memory', 'small-1', undefined, 1],
  ['a memory and a group', 'small-2', GROUP, 1],
  ['a memory, before the model is known', 'none-1', undefined, 2],
  ['a memory and a group, before the model is known', 'none-2', GROUP, 2],
])('%s is no reason for a refusal (%s)', async (_, model, conversation, tries) => {
  sent.length = 0;
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: 'What of cats?' }],
      hopgate: { memory: { space: 's', recall: 'always' }, conversation },
    }),
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-hopgate-notes')).toContain('content_bridged');
  expect(sent.length).toBe(tries);
  const texts = JSON.stringify(sent.at(-1)!.messages);
  expect(texts).toContain('recall_memory:');
  if (conversation !== undefined) expect(texts).toContain(GROUP.others);
});

test.each<[what: string, model: string, conversation: object | undefined, tries: number]>([
  ['a memory', 'small-3', undefined, 1],
  ['a memory and a group', 'small-4', GROUP, 1],
  ['a memory, before the model is known', 'none-3', undefined, 2],
  ['a memory and a group, before the model is known', 'none-4', GROUP, 2],
])('%s that the model may ask is no reason, either (%s)', async (_, model, conversation, tries) => {
  for (const recall of ['auto', 'off']) {
    sent.length = 0;
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: `${model}-${recall}`,
        messages: [{ role: 'user', content: 'What of cats?' }],
        hopgate: { memory: { space: 's', recall }, conversation },
      }),
    });
    expect(answer.status).toBe(200);
    const isOffered = recall === 'auto' || conversation !== undefined;
    expect(sent.length).toBe(isOffered ? tries : 1);
    expect(answer.headers.get('x-hopgate-notes')).toBe(isOffered ? 'tool_dropped' : null);
  }
});

/** A response can be continued as soon as its last event is there, while its vendor still holds the stream open. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type InProcess, startInProcess } from '../../support/in-process.ts';
import { idOf, ResponsesSocket } from '../../support/responses-socket.ts';

let gateway: InProcess;
let vendor: Server;
/** Streams that have said everything and were not closed. */
const open: ServerResponse[] = [];
const bodies: string[] = [];
let pieces = 1;
let answers = 0;

const event = (data: JsonObject) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const chunk = (delta: JsonObject, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

function words(path: string): string {
  if (!path.endsWith('/responses')) {
    return `${chunk({ role: 'assistant', content: 'Blue.' })}${chunk({}, 'stop')}data: [DONE]\n\n`;
  }
  const id = `resp_vendor${++answers}`;
  const content = [{ type: 'output_text', text: 'Blue.', annotations: [] }];
  const item = { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed' };
  const response = { id, object: 'response', created_at: 1, model: 'm', status: 'in_progress' };
  const place = { item_id: item.id, output_index: 0, content_index: 0 };
  return [
    { type: 'response.created', response: { ...response, output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    { type: 'response.output_text.delta', ...place, delta: 'Blue.' },
    { type: 'response.output_item.done', output_index: 0, item: { ...item, content } },
    {
      type: 'response.completed',
      response: { ...response, status: 'completed', output: [{ ...item, content }] },
    },
  ]
    .map((data) => event(data))
    .join('');
}

beforeAll(async () => {
  vendor = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += String(part);
    bodies.push(body);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = words(request.url ?? '');
    const size = Math.ceil(text.length / pieces);
    for (let at = 0; at < text.length; at += size) {
      response.write(text.slice(at, at + size));
      await Bun.sleep(1);
    }
    open.push(response);
  });
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  const base_url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
  const provider = { base_url, keys: ['sk-up'], profile: 'none' };
  gateway = await startInProcess({
    providers: {
      same: { ...provider, protocol: 'openai-responses', models: ['same'] },
      translated: { ...provider, protocol: 'openai-chat', models: ['translated'] },
    },
    samples: { mode: 'off' },
  });
});
afterEach(() => {
  for (const response of open.splice(0)) response.end();
  bodies.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  vendor.closeAllConnections();
  vendor.close();
});

/** Reads until the last event of the response; the stream stays open. */
async function streamed(body: JsonObject): Promise<string> {
  const answer = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of answer.body!) {
    text += decoder.decode(bytes, { stream: true });
    if (/"type":"response\.completed".*\n\n/.test(text)) break;
  }
  expect(answer.status, text).toBe(200);
  return /"id":"(resp_[^"]+)"/.exec(text)![1]!;
}

describe.each(['same', 'translated'])('%s protocol', (model) => {
  for (const count of [1, 7, 40]) {
    const first = (store: boolean) => ({ model, store, input: 'Which colour?' });
    const next = (id: string) => ({ model, previous_response_id: id, input: 'Sure?' });

    test(`in ${count} pieces, by POST: known before its stream has ended`, async () => {
      pieces = count;
      const id = await streamed(first(true));
      await streamed(next(id));
      expect(bodies[1]).toMatch(/Which colour\?.*Blue\..*Sure\?/);
    });

    for (const store of [true, false]) {
      test(`in ${count} pieces, on another lane, store ${store}: known before its stream has ended`, async () => {
        pieces = count;
        const socket = await ResponsesSocket.open(gateway.url);
        try {
          socket.create({ ...first(store), stream_id: 'a' });
          const id = idOf(await socket.last(0, 'a'));
          socket.create({ ...next(id), store, stream_id: 'b' });
          expect(await socket.last(0, 'b')).toMatchObject({ type: 'response.completed' });
          expect(bodies[1]).toMatch(/Which colour\?.*Blue\..*Sure\?/);
        } finally {
          socket.close();
        }
      });
    }
  }
});

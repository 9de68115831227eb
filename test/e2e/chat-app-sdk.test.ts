/** The chat app extension used from the official SDKs, through the binary: they send it and read the reply as usual. */

import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { JsonObject } from '../../src/lib/json/json.ts';
import { type Gateway, startGateway, threeProviders } from '../support/binary.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream/index.ts';
import { leakyVendor, type Plan } from '../support/leaky-vendor.ts';
import { stopAll } from '../support/tool-servers.ts';
import { remember } from './chat-app-clients.ts';

setDefaultTimeout(60_000);

let upstream: FakeUpstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startFakeUpstream({ keys: ['sk-upstream'], models: ['m1'] });
  gateway = await startGateway(threeProviders(upstream));
  await remember(gateway, 'sdk', ['豆豆是一只橘猫']);
}, 120_000);
afterEach(() => upstream.clear());
afterAll(() => stopAll(gateway, upstream));

const EVENTS = ['tool_call', 'tool_result', 'tool_call', 'tool_result'];
const TEXT = /^想想。\s*是一只橘猫。$/;
const extension = (events: boolean) => ({
  hopgate: {
    memory: { space: 'sdk', recall: 'always' },
    ...(events ? { tool_events: true } : {}),
  },
});
const answer = () =>
  upstream.answerWith(
    leakyVendor(
      ({ results }): Plan =>
        results.length < 2
          ? { text: '想想。', calls: [{ name: 'recall_memory', arguments: { query: '豆豆' } }] }
          : { text: '是一只橘猫。' },
      { leaks: (n) => n === 0 },
    ),
  );
/** Fields that the SDK's types do not know. */
const eventOf = (value: unknown) => (value as { hopgate?: { event: string } }).hopgate?.event;
const toolEvents = (value: unknown) =>
  ((value as { hopgate?: { tool_events: JsonObject[] } }).hopgate?.tool_events ?? []).map(
    ({ event }) => event,
  );
const messages = [{ role: 'user' as const, content: '豆豆是什么猫' }];

for (const events of [true, false]) {
  const expected = events ? EVENTS : [];
  describe(events ? 'with tool events' : 'without', () => {
    const openai = () => new OpenAI({ apiKey: 'k', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const anthropic = () => new Anthropic({ apiKey: 'k', baseURL: gateway.url, maxRetries: 0 });

    test('OpenAI Chat Completions reads the reply iterated, accumulated and whole', async () => {
      const body = { model: 'via-chat', messages, ...extension(events) };
      answer();
      const received: string[] = [];
      let text = '';
      for await (const chunk of await openai().chat.completions.create({ ...body, stream: true })) {
        const event = eventOf(chunk);
        if (event !== undefined) received.push(event);
        text += chunk.choices[0]?.delta.content ?? '';
      }
      expect([received, text]).toEqual([expected, expect.stringMatching(TEXT)]);
      answer();
      const final = await openai().chat.completions.stream(body).finalChatCompletion();
      expect(final.choices[0]!.message.content).toMatch(TEXT);
      expect(final.choices[0]!.finish_reason).toBe('stop');
      expect(final.choices[0]!.message.tool_calls ?? []).toEqual([]);
      answer();
      const whole = await openai().chat.completions.create(body);
      expect(whole.choices[0]!.message.content).toMatch(TEXT);
      expect(toolEvents(whole)).toEqual(expected);
    });

    test('OpenAI Responses reads the reply iterated, accumulated and whole', async () => {
      const body = { model: 'via-responses', input: messages, ...extension(events) };
      answer();
      const stream = openai().responses.stream(body);
      const received: string[] = [];
      for await (const event of stream) {
        const one = eventOf(event);
        if (one !== undefined) received.push(one);
      }
      const final = await stream.finalResponse();
      expect(received).toEqual(expected);
      expect(final.output_text).toMatch(/想想。\s*是一只橘猫。/);
      expect(final.output.every(({ type }) => type === 'message')).toBe(true);
      answer();
      const whole = await openai().responses.create(body);
      expect(whole.output_text).toBe(final.output_text);
      expect(toolEvents(whole)).toEqual(expected);
    });

    test('Anthropic reads the reply iterated, accumulated, whole, and as raw lines of a stream', async () => {
      const body = { model: 'via-messages', max_tokens: 500, messages, ...extension(events) };
      answer();
      const stream = anthropic().messages.stream(body);
      const kinds = new Set<string>();
      for await (const event of stream) kinds.add(event.type);
      expect(kinds).not.toContain('ping');
      expect(await stream.finalText()).toMatch(/想想。\s*是一只橘猫。/);
      const final = await stream.finalMessage();
      expect([final.stop_reason, final.content.every(({ type }) => type === 'text')]).toEqual([
        'end_turn',
        true,
      ]);
      answer();
      const whole = await anthropic().messages.create(body);
      expect(
        whole.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      ).toMatch(/想想。\s*是一只橘猫。/);
      expect(toolEvents(whole)).toEqual(expected);
      answer();
      const raw = await anthropic()
        .messages.create({ ...body, stream: true })
        .asResponse();
      const response = (await raw.text()).matchAll(/"hopgate":\{"event":"(\w+)"/g);
      expect([...response].map(([, event]) => event!)).toEqual(expected);
    });

    test('request headers have the same effect as the body', async () => {
      answer();
      const headers = {
        'x-hopgate-memory-space': 'sdk',
        'x-hopgate-recall': 'always',
        'x-hopgate-tool-events': String(events),
      };
      const whole = await openai().chat.completions.create(
        { model: 'via-chat', messages },
        { headers },
      );
      expect(toolEvents(whole)).toEqual(expected);
      expect(whole.choices[0]!.message.content).toMatch(TEXT);
    });
  });
}

test('a wrong field raises the SDK’s own error, which names the field', async () => {
  const client = new OpenAI({ apiKey: 'k', baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const hopgate = { memory: { space: 'sdk', recall: 'never' } };
  try {
    await client.chat.completions.create({
      model: 'via-chat',
      messages,
      ...({ hopgate } as object),
    });
    throw new Error('it was taken');
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(OpenAI.BadRequestError);
    expect(thrown).toMatchObject({ status: 400, param: 'hopgate.memory.recall' });
  }
});

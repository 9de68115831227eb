/** Gemini streams: the same events at every split, and what is emitted is read by the official SDK. */

import { describe, expect, test } from 'bun:test';
import { type GenerateContentResponse, GoogleGenAI } from '@google/genai';
import fc from 'fast-check';
import { googleGemini } from '../../../src/codecs/google-gemini/index.ts';
import { lintStream } from '../../../src/codecs/google-gemini/lint/lint-stream.ts';
import type { Reply, StreamEvent } from '../../../src/conversation/events.ts';
import { ReplyBuilder } from '../../../src/conversation/reply-builder.ts';
import type { Conversation } from '../../../src/conversation/types.ts';
import { totalInput } from '../../../src/conversation/usage.ts';
import { SseParser } from '../../../src/lib/bytes/sse.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { fixtureBytes, haveFixtures } from '../../support/fixtures.ts';
import { disorder } from '../openai-chat/streams.ts';
import {
  chunk,
  client,
  decodeAll,
  NOTHING_SENT,
  rows,
  sse,
  upstream,
  withoutIds,
} from './support.ts';

const THOUGHTS: Conversation = googleGemini.decodeRequest({
  model: 'm',
  stream: true,
  contents: [{ parts: [{ text: 'hi' }] }],
  generationConfig: { thinkingConfig: { includeThoughts: true } },
  tools: [{ googleSearch: {} }],
});

function fold(events: readonly StreamEvent[]): Reply & { complete: boolean } {
  const builder = new ReplyBuilder();
  for (const event of events) builder.push(event);
  return { ...builder.reply, complete: builder.complete };
}

function encodeAll(events: readonly StreamEvent[], request: Conversation = THOUGHTS): string {
  const encoder = googleGemini.encodeStream(client(request));
  return events.map((event) => encoder.event(event)).join('');
}

/** What the official SDK reads from a stream; rejects where it would throw in a client. */
async function readBySdk(body: string): Promise<GenerateContentResponse[]> {
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const sdk = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: String(server.url) } });
  return Array.fromAsync(await sdk.models.generateContentStream({ model: 'm', contents: 'hi' }));
}

/** The parts of all chunks: texts and thoughts joined, calls with their signatures. */
function saidBy(chunks: readonly GenerateContentResponse[]) {
  const said = { text: '', thoughts: '', calls: [] as unknown[] };
  for (const part of chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])) {
    if (part.thought === true) said.thoughts += part.text ?? '';
    else said.text += part.text ?? '';
    const { functionCall: call, thoughtSignature } = part;
    if (call !== undefined) said.calls.push([call.name, call.args ?? {}, thoughtSignature]);
  }
  return said;
}

function saidByEvents({ blocks }: Reply) {
  const textOf = (type: string) =>
    blocks.map((block) => (block.type === type ? (block as { text: string }).text : '')).join('');
  const calls = blocks.flatMap((block) =>
    block.type === 'tool-call' && block.by === 'client'
      ? [[block.name, JSON.parse(block.input), block.sealed?.value]]
      : [],
  );
  return { text: textOf('text'), thoughts: textOf('reasoning'), calls };
}

const lintOf = (body: string) => {
  const parser = new SseParser();
  const linter = lintStream();
  const frames = [...parser.push(new TextEncoder().encode(body)), ...parser.end()];
  return [...frames.flatMap((frame) => linter.push(frame)), ...linter.end()];
};

const USAGE: JsonObject = {
  usageMetadata: {
    promptTokenCount: 100,
    cachedContentTokenCount: 60,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 7,
    toolUsePromptTokenCount: 5,
    totalTokenCount: 132,
  },
};

const FULL = sse(
  chunk([{ text: 'I ', thought: true }]),
  chunk([{ text: 'think.', thought: true }]),
  chunk([{ text: 'Grüße ' }, { text: '👋🏽' }]),
  chunk([
    { functionCall: { name: 'look', args: { at: 'ü' } }, thoughtSignature: 'EiwKIAAA' },
    { functionCall: { id: 'c2', name: 'look', args: {} } },
  ]),
  chunk([{ text: '', thoughtSignature: 'EiwKIBBB' }], { finishReason: 'STOP' }, USAGE),
);

describe('streams by hand', () => {
  test('thoughts, text and calls come in order, with seals and usage', () => {
    const events = decodeAll(FULL);
    expect(disorder(events)).toEqual([]);
    const reply = fold(events);
    expect(reply.complete).toBe(true);
    expect(reply.finish).toBe('tool-calls');
    expect(reply.usage).toEqual({ input: 45, cacheRead: 60, output: 20, reasoning: 7 });
    expect(saidByEvents(reply)).toEqual({
      text: 'Grüße 👋🏽',
      thoughts: 'I think.',
      calls: [
        ['look', { at: 'ü' }, 'EiwKIAAA'],
        ['look', {}, undefined],
      ],
    });
  });

  test('the same events come out at every split of the bytes', () => {
    const whole = withoutIds(decodeAll(FULL));
    for (let at = 1; at < FULL.length; at++) {
      expect(withoutIds(decodeAll(FULL, [at]))).toEqual(whole);
    }
    const all = Array.from({ length: FULL.length - 1 }, (_, i) => i + 1);
    expect(withoutIds(decodeAll(FULL, all))).toEqual(whole);
  });

  test('what is emitted is read by the official SDK and says the same', async () => {
    const events = decodeAll(FULL);
    const body = encodeAll(events);
    expect(lintOf(body)).toEqual([]);
    const chunks = await readBySdk(body);
    expect(saidBy(chunks)).toEqual(saidByEvents(fold(events)));
    const end = chunks.at(-1)!;
    expect(String(end.candidates?.[0]?.finishReason)).toBe('STOP');
    expect(end.usageMetadata).toMatchObject({ promptTokenCount: 105, thoughtsTokenCount: 7 });
    expect(body).toContain('EiwKIBBB');
  });

  test('a keep-alive before, between and behind chunks changes nothing for the SDK', async () => {
    const encoder = googleGemini.encodeStream(client());
    const events = decodeAll(FULL);
    const body = encoder.ping() + events.map((e) => encoder.event(e) + encoder.ping()).join('');
    const plain = encodeAll(events, NOTHING_SENT);
    expect(saidBy(await readBySdk(body))).toEqual(saidBy(await readBySdk(plain)));
  });

  test('an error inside a stream makes the SDK throw', async () => {
    const encoder = googleGemini.encodeStream(client());
    const { GatewayError } = await import('../../../src/conversation/errors.ts');
    const body = encoder.fail(new GatewayError('overloaded', 'Too much to do.'));
    await expect(readBySdk(body)).rejects.toThrow(/Too much to do/);
  });

  test('a stream without a finishReason was cut: nothing ends it', () => {
    const events = decodeAll(sse(chunk([{ text: 'half' }])));
    expect(events.map(({ type }) => type)).toEqual(['start', 'block-start', 'delta', 'block-stop']);
  });

  test('a prompt that was blocked is an answer that was filtered', () => {
    const events = decodeAll(sse({ promptFeedback: { blockReason: 'SAFETY' }, modelVersion: 'm' }));
    expect(fold(events)).toMatchObject({ complete: true, finish: 'content-filter', blocks: [] });
    expect(encodeAll(events)).toContain('"promptFeedback":{"blockReason":"SAFETY"}');
  });

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ...[
      'SAFETY',
      'RECITATION',
      'LANGUAGE',
      'BLOCKLIST',
      'PROHIBITED_CONTENT',
      'SPII',
      'MODEL_ARMOR',
      'IMAGE_SAFETY',
      'IMAGE_PROHIBITED_CONTENT',
      'IMAGE_RECITATION',
    ].map((reason) => [reason, 'content-filter']),
    ['NO_IMAGE', 'stop'],
  ])(
    '%s ends as %s, and a client of this protocol reads the reason itself',
    (finishReason, finish) => {
      const events = decodeAll(sse(chunk([{ text: 'x' }], { finishReason })));
      expect(fold(events).finish).toBe(finish as Reply['finish']);
      expect(encodeAll(events)).toContain(
        `"finishReason":"${finishReason === 'NO_IMAGE' ? 'NO_IMAGE' : finishReason}"`,
      );
    },
  );

  test.each([
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MALFORMED_RESPONSE',
    'OTHER',
    'MISSING_THOUGHT_SIGNATURE',
  ])('%s is a failure, not an answer', (finishReason) => {
    const last = decodeAll(sse(chunk([], { finishReason, finishMessage: 'why' }))).at(-1);
    expect(last).toMatchObject({ type: 'error', error: { code: finishReason.toLowerCase() } });
  });

  test('log probabilities have the form that clients of Chat read', () => {
    // https://ai.google.dev/api/generate-content#LogprobsResult
    const logprobsResult = {
      chosenCandidates: [{ token: 'Hé', tokenId: 7, logProbability: -0.25 }],
      topCandidates: [
        {
          candidates: [
            { token: 'Hé', tokenId: 7, logProbability: -0.25 },
            { token: 'Ha', tokenId: 8, logProbability: -2 },
          ],
        },
      ],
    };
    const events = decodeAll(
      sse(chunk([{ text: 'Hé' }], { logprobsResult, finishReason: 'STOP' })),
    );
    const chosen = { token: 'Hé', logprob: -0.25, bytes: [72, 195, 169] };
    expect(fold(events).logprobs).toEqual([
      {
        ...chosen,
        top_logprobs: [chosen, { token: 'Ha', logprob: -2, bytes: [72, 97] }],
      },
    ]);
  });

  test('arguments in pieces are put together by their paths', () => {
    const call = (value: JsonObject) => chunk([{ functionCall: value }]);
    const bytes = sse(
      call({ name: 'look', willContinue: true }),
      call({
        partialArgs: [{ jsonPath: '$.city', stringValue: 'Os', willContinue: true }],
        willContinue: true,
      }),
      call({ partialArgs: [{ jsonPath: '$.city', stringValue: 'lo' }], willContinue: true }),
      call({
        partialArgs: [
          { jsonPath: '$.days[0].n', numberValue: 2 },
          { jsonPath: '$.days[1].n', boolValue: true },
        ],
        willContinue: true,
      }),
      call({}),
      chunk([{ text: '' }], { finishReason: 'STOP' }),
    );
    const { blocks } = fold(decodeAll(bytes));
    expect(blocks).toMatchObject([{ type: 'tool-call', name: 'look' }]);
    expect(JSON.parse((blocks[0] as { input: string }).input)).toEqual({
      city: 'Oslo',
      days: [{ n: 2 }, { n: true }],
    });
  });

  test('sources are cited at characters, and go back at bytes', () => {
    const groundingMetadata = {
      webSearchQueries: ['greetings'],
      groundingChunks: [{ web: { uri: 'https://a.test/', title: 'a.test' } }],
      groundingSupports: [
        { segment: { startIndex: 8, endIndex: 16, text: 'are kind' }, groundingChunkIndices: [0] },
      ],
    };
    const bytes = sse(
      chunk([{ text: 'Grüße ' }]),
      chunk([{ text: 'are kind.' }], { finishReason: 'STOP', groundingMetadata }, USAGE),
    );
    const events = decodeAll(bytes, [], THOUGHTS);
    const { blocks, usage } = fold(events);
    expect(blocks).toMatchObject([
      { citations: [{ url: 'https://a.test/', title: 'a.test', start: 6, end: 14 }] },
    ]);
    expect(usage?.hosted).toEqual({ web_search_requests: 1 });
    const sent = JSON.parse(encodeAll(events).trim().split('\n\n').at(-1)!.slice(6));
    expect(sent.candidates[0].groundingMetadata).toMatchObject({
      groundingChunks: groundingMetadata.groundingChunks,
      groundingSupports: groundingMetadata.groundingSupports,
    });
  });

  test('thoughts go only to clients that ask for them', () => {
    const quiet = googleGemini.decodeRequest({
      model: 'm',
      contents: [{ parts: [{ text: 'hi' }] }],
    });
    expect(encodeAll(decodeAll(FULL), quiet)).not.toContain('I think');
  });
});

if (!haveFixtures) test.skip('SKIPPED: recorded streams are not available', () => {});
else {
  describe('recorded streams', () => {
    const streams = rows.filter(({ kind }) => kind === 'sse');

    test('events keep their order, and every stream is complete', () => {
      expect(streams.length).toBeGreaterThan(50);
      for (const { file } of streams) {
        const events = decodeAll(fixtureBytes(file));
        expect({ file, wrong: disorder(events) }).toEqual({ file, wrong: [] });
        const failed = events.at(-1)?.type === 'error';
        expect({ file, over: fold(events).complete || failed }).toEqual({ file, over: true });
      }
    });

    test('the same events come out at any split of the bytes', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 0, max: streams.length - 1 }),
          fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 }),
          (i, shares) => {
            const bytes = fixtureBytes(streams[i]!.file);
            const cuts = shares.map((s) => Math.floor(s * bytes.length)).sort((a, b) => a - b);
            expect(withoutIds(decodeAll(bytes, cuts))).toEqual(withoutIds(decodeAll(bytes)));
          },
        ),
        { numRuns: 150 },
      );
    });

    test('what is emitted says the same, to the SDK and to the linter', async () => {
      for (const { file } of streams) {
        const events = decodeAll(fixtureBytes(file));
        if (events.at(-1)?.type === 'error') continue;
        const body = encodeAll(events);
        expect({ file, wrong: lintOf(body) }).toEqual({ file, wrong: [] });
        const said = saidBy(await readBySdk(body));
        expect({ file, said }).toEqual({ file, said: saidByEvents(fold(events)) });
      }
    }, 60_000);

    test('the digest of a forwarded stream agrees with its events', () => {
      for (const { file } of streams) {
        const parser = new SseParser();
        const bytes = fixtureBytes(file);
        const frames = [...parser.push(bytes), ...parser.end()];
        const digest = googleGemini.digestStream(frames);
        const reply = fold(decodeAll(bytes));
        expect({ file, complete: digest.complete }).toEqual({ file, complete: reply.complete });
        if (!reply.complete) continue;
        expect({ file, finish: digest.finish }).toEqual({ file, finish: reply.finish });
        expect({ file, usage: digest.usage }).toEqual({ file, usage: reply.usage });
        if (reply.usage !== undefined) expect(totalInput(reply.usage)).toBeGreaterThanOrEqual(0);
      }
    });
  });
}

describe('an error that Google puts into a stream that has begun', () => {
  const begun = sse(chunk([{ text: 'Half' }]));
  const error = { error: { code: 503, message: 'gone for now', status: 'UNAVAILABLE' } };
  const list = JSON.stringify([error]);
  test.each([
    ['bare JSON', JSON.stringify(error), true],
    ['bare JSON in lines', `${JSON.stringify(error, null, 2)}\n`, true],
    ['bare JSON in a list', list, true],
    ['a list in a frame', `data: ${list}\r\n\r\n`, true],
    ['a frame', `data: ${JSON.stringify(error)}\r\n\r\n`, false],
  ])('%s', (_, tail, unsaid) => {
    const parser = new SseParser();
    const frames = [...parser.push(Buffer.concat([begun, Buffer.from(tail)])), ...parser.end()];
    const digest = googleGemini.digestStream(frames);
    const decoder = googleGemini.decodeStream(upstream());
    const events = frames.flatMap((frame) => decoder.push(frame));
    const failed = events.find((event) => event.type === 'error');
    expect([failed?.error.message, failed?.error.kind]).toEqual(['gone for now', 'overloaded']);
    expect(digest.error?.message).toBe('gone for now');
    expect([failed?.unsaid ?? false, digest.unsaid ?? false]).toEqual([unsaid, unsaid]);
  });
});

/** A turn that the vendor pauses amid its own searches: recorded exchanges, as the gateway goes on with them. */

import { describe, expect } from 'bun:test';
import { HOPS, serverTools } from '../../../src/features/server-tools/index.ts';
import { toolRegistry } from '../../../src/features/server-tools/registry.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Summary } from '../../../src/gateway/types.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import { memoryRoom } from '../../support/entries.ts';
import { fixtureBytes, fixtureTest } from '../../support/fixtures.ts';

type Client = 'openai-chat' | 'openai-responses' | 'google-gemini' | 'anthropic-messages';

const ask: Readonly<Record<Client, JsonObject>> = {
  'openai-chat': { messages: [{ role: 'user', content: 'hi' }], web_search_options: {} },
  'openai-responses': { input: 'hi', tools: [{ type: 'web_search' }] },
  'google-gemini': {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    tools: [{ googleSearch: {} }],
  },
  'anthropic-messages': {
    max_tokens: 15_000,
    thinking: { type: 'enabled', budget_tokens: 4096 },
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  },
};
const CLIENTS = Object.keys(ask) as Client[];

function run(
  client: Client,
  script: Scripted[],
  stream: boolean,
  rounds = 8,
  signal?: AbortSignal,
) {
  const loop = serverTools({
    registry: toolRegistry([]),
    ledger: memoryRoom(HOPS),
    client,
    owner: '',
    limits: { rounds },
    log: () => {},
  });
  const gateway = scriptedGateway(
    'anthropic-messages',
    script,
    [loop, toolPairing, vendorFit()],
    '',
    { profile: 'anthropic' },
  );
  const usage =
    client === 'openai-chat' && stream ? { stream_options: { include_usage: true } } : {};
  const answer = gateway.ask(client, { model: 'm', stream, ...usage, ...ask[client] }, signal);
  return { gateway, answer };
}

const PREFIX = 'anthropic-messages/pydantic-ai__test_anthropic__test_pause_turn_web_search_';
const text = (file: string) => Buffer.from(fixtureBytes(`${PREFIX}${file}`)).toString();
const recorded = (stream: boolean, number: number): Scripted =>
  stream
    ? { sse: [text(`streaming_vcr.${number}.sse`)] }
    : { json: JSON.parse(text(`vcr.${number}.json`)) };

/** What pydantic-ai sent back of the paused answer, which Anthropic took. */
function sentBack(stream: boolean): JsonObject {
  const { messages } = JSON.parse(text(`${stream ? 'streaming_' : ''}vcr.1.req.json`));
  return messages[1];
}

/** Whether the answer says that it is complete. */
function isComplete(client: Client, answer: string): boolean {
  const complete: Readonly<Record<Client, RegExp>> = {
    'openai-chat': /"finish_reason":\s?"stop"/,
    'openai-responses':
      /"status":\s?"completed"[^{}]*"(?:output|incomplete|model|error)|"type":\s?"response\.completed"/,
    'google-gemini': /"finishReason":\s?"STOP"/,
    'anthropic-messages': /"stop_reason":\s?"end_turn"/,
  };
  return complete[client].test(answer);
}

const usageOf = (stream: boolean, number: number): JsonObject => {
  if (!stream) return JSON.parse(text(`vcr.${number}.json`)).usage;
  const ending = text(`streaming_vcr.${number}.sse`).split('event: message_delta\ndata: ')[1]!;
  return JSON.parse(ending.slice(0, ending.indexOf('\n'))).usage;
};

describe.each(CLIENTS)('%s', (client) => {
  for (const stream of [true, false]) {
    const how = stream ? 'streamed' : 'whole';

    fixtureTest(`a recorded pause goes on with the answer as it came, ${how}`, async () => {
      const { gateway, answer } = run(client, [recorded(stream, 0), recorded(stream, 1)], stream);
      const { status, text: got, reset } = await answer;
      expect({ status, reset }).toEqual({ status: 200, reset: false });
      expect(gateway.sent).toHaveLength(2);
      const [first, second] = gateway.sent as { messages: JsonObject[] }[];
      expect(second!.messages.slice(0, -1)).toEqual(first!.messages);
      expect(comparable(second!.messages.at(-1)!)).toEqual(comparable(sentBack(stream)));
      expect(got).not.toContain('pause_turn');
      expect(isComplete(client, got)).toBe(true);
      const usages = [usageOf(stream, 0), usageOf(stream, 1)];
      const sum = (key: string) => usages.reduce((all, usage) => all + Number(usage[key] ?? 0), 0);
      const { output = 0, reasoning = 0 } = gateway.summaries[0]!.usage ?? {};
      expect(output + reasoning).toBe(sum('output_tokens'));
      // Gemini counts reasoning beside the answer.
      expect(got).toMatch(
        new RegExp(`:${client === 'google-gemini' ? output : output + reasoning}\\b`),
      );
      expect(noteNames(gateway)).toContain('paused_turn_continued');
    });

    fixtureTest(`a pause that the limit ends is no complete answer, ${how}`, async () => {
      const script = [recorded(stream, 0), recorded(stream, 0)];
      const { gateway, answer } = run(client, script, stream, 1);
      const { status, text: got, reset } = await answer;
      expect({ status, reset }).toEqual({ status: 200, reset: false });
      expect(gateway.sent).toHaveLength(2);
      expect(isComplete(client, got)).toBe(false);
      if (client === 'anthropic-messages') expect(got).toContain('pause_turn');
      expect(noteNames(gateway)).toContain('paused_turn_unfinished');
    });
  }

  fixtureTest(
    'a client that leaves in a later hop costs no further one, and gets no end',
    async () => {
      const leaving = new AbortController();
      const script: Scripted[] = [
        recorded(true, 0),
        { sse: [text('streaming_vcr.0.sse').split('event: message_delta')[0]!], open: true },
        recorded(true, 1),
      ];
      const { gateway, answer } = run(client, script, true, 8, leaving.signal);
      while (gateway.sent.length < 2) await Bun.sleep(1);
      // Its stream is read by then.
      await Bun.sleep(20);
      leaving.abort();
      const { text: got } = await answer;
      expect(gateway.sent).toHaveLength(2);
      expect(isComplete(client, got)).toBe(false);
      expect(got).not.toContain('pause_turn');
    },
  );
});

const noteNames = ({ summaries }: { summaries: readonly Summary[] }) =>
  [...summaries[0]!.notes].map(({ name }) => name);

/** Blocks without what SDKs add or leave out, and without titles, whose dashes and quotes the recording spells plainly. */
function comparable(message: JsonObject): unknown {
  return JSON.parse(
    JSON.stringify(message, (key, value) =>
      value === null || key === 'title' || key === 'page_age' || key === 'caller'
        ? undefined
        : value,
    ),
  );
}

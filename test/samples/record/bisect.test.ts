/** The search for the smallest failing request: its result, its budget, and that every candidate is valid. */

import { describe, expect, test } from 'bun:test';
import { isObject, type Json, type JsonObject } from '../../../src/lib/json/json.ts';
import { shownAt, valueAt } from '../../../src/lib/json/pointer.ts';
import { bisect } from '../../../src/samples/bisect/minimize.ts';
import type {
  BisectOptions,
  BisectReport,
  ProbeReport,
  Verdict,
} from '../../../src/samples/bisect/types.ts';
import { checkChat } from '../../support/fake-upstream/check-chat.ts';
import { checkMessages } from '../../support/fake-upstream/check-messages.ts';
import { checkResponses } from '../../support/fake-upstream/check-responses.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';
import { chatHistory, envelope, messagesHistory, responsesHistory } from './histories.ts';

const CHECK: Record<ProtocolName, (body: JsonObject) => void> = {
  'openai-chat': (body) => checkChat(body, {}, {}),
  'openai-responses': (body) => checkResponses(body, {}, {}),
  'anthropic-messages': (body) => checkMessages(body, { 'anthropic-version': '2023-06-01' }, {}),
};

const list = (value: Json | undefined) => (Array.isArray(value) ? (value as readonly Json[]) : []);

interface Run {
  readonly report: BisectReport;
  readonly probes: readonly ProbeReport[];
  readonly refused: readonly string[];
}

/** Runs a bisection against a vendor that checks requests strictly and fails where `fails` says so. */
async function run(
  body: JsonObject,
  protocol: ProtocolName,
  fails: (body: JsonObject) => boolean,
  more: Partial<Pick<BisectOptions, 'budget' | 'known' | 'failure' | 'isRefusal' | 'more'>> = {},
): Promise<Run> {
  const probes: ProbeReport[] = [];
  const refused: string[] = [];
  const report = await bisect({
    body,
    protocol,
    ...more,
    budget: more.budget ?? 200,
    onProbe: (probe) => probes.push(probe),
    probe: async (candidate) => {
      try {
        CHECK[protocol](candidate);
      } catch (error) {
        refused.push(String(error));
        return 'other';
      }
      return fails(candidate) ? 'same' : 'passes';
    },
  });
  return { report, probes, refused };
}

/** Whether GLM fails on the body: its last tool result is a large record of an executed tool. */
function glmFails(body: JsonObject): boolean {
  const last = list(body.messages).findLast(
    (message) => isObject(message) && message.role === 'tool',
  );
  const content = isObject(last) ? last.content : undefined;
  return typeof content === 'string' && content.length > 8192 && content.includes('rcc.tool.v1');
}

describe('a large envelope as the last tool result', () => {
  test('the envelope is named within 40 probes out of 60 messages', async () => {
    const body = chatHistory(60);
    const { report, refused } = await run(body, 'openai-chat', glmFails, { budget: 40 });
    expect(refused).toEqual([]);
    expect(report.probes).toBeLessThanOrEqual(40);
    expect(report.result).toBe('minimal');
    expect(report.cause).toMatchObject({ at: '/messages/59/content' });
    expect(report.cause?.bytes).toBe((valueAt(body, '/messages/59/content') as string).length);
    expect(report.words).toContain('the last tool result: 4');
    expect(report.words).toContain('KB JSON at messages[59].content');
    // The reduced request still fails and holds the call of the result and a user message.
    expect(glmFails(report.minimal)).toBe(true);
    expect(list(report.minimal.messages).map((one) => (one as JsonObject).role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
    expect(report.minimal.tools).toBeUndefined();
    expect(glmFails(report.passing!)).toBe(false);
    expect(valueAt(report.minimal, report.cause!.in_minimal)).toBeString();
  });

  test('the envelope is named when text follows it', async () => {
    const body = chatHistory(59, 'unused');
    const messages = [
      ...list(body.messages),
      { role: 'user', content: 'And now sum it up for me, please.' },
    ];
    messages[57] = { ...(messages[57] as JsonObject), content: envelope(41_000) } as Json;
    const { report } = await run({ ...body, messages }, 'openai-chat', glmFails, { budget: 40 });
    expect(report.cause?.at).toBe('/messages/57/content');
  });

  test('the envelope is narrowed down as far as ten probes allow', async () => {
    const { report } = await run(chatHistory(60), 'openai-chat', glmFails, { budget: 10 });
    expect(report).toMatchObject({ probes: 10, result: 'partial' });
    expect(report.cause?.at).toBe('/messages/59/content');
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'the envelope is named although it fails only 6 times in 10 (seed %d)',
    async (seed) => {
      let state = seed * 7919;
      const random = () => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
        return state / 0x7fffffff;
      };
      for (let i = 0; i < 5; i++) random();
      const flaky = (body: JsonObject) => glmFails(body) && random() < 0.6;
      const { report, refused } = await run(chatHistory(60), 'openai-chat', flaky, { budget: 120 });
      expect(refused).toEqual([]);
      expect(report.cause?.at).toBe('/messages/59/content');
      expect(glmFails(report.minimal)).toBe(true);
    },
  );
});

describe('other causes', () => {
  test('a message in the middle is found by halving', async () => {
    const body = chatHistory(60);
    const at = 29;
    const fails = (candidate: JsonObject) =>
      JSON.stringify(candidate.messages).includes('file-14.ts');
    const { report, refused } = await run(body, 'openai-chat', fails, { budget: 60 });
    expect(refused).toEqual([]);
    expect(report.cause?.at).toBe(`/messages/${at}/content`);
  });

  test('a tool is found, although the history is huge', async () => {
    const fails = (body: JsonObject) => JSON.stringify(body.tools ?? []).includes('update_plan');
    const { report } = await run(chatHistory(60), 'openai-chat', fails);
    expect(report.cause?.at).toStartWith('/tools/2');
    expect(report.words).toContain('the tool update_plan');
    expect(report.probes).toBeLessThan(30);
  });

  test.each([0, 12, 24])(
    'the member of a schema that a vendor refuses is named within 20 probes: tool %i of 25',
    async (at) => {
      const schema = (i: number): JsonObject => ({
        type: 'object',
        properties: {
          path: { type: 'string', description: 'The file. '.repeat(20) },
          offset: { type: 'integer', ...(i === at ? { exclusiveMinimum: 0 } : { minimum: 1 }) },
          options: { type: 'object', properties: { lines: { type: 'array' } } },
        },
        required: ['path'],
      });
      const tools = Array.from({ length: 25 }, (_, i) => ({
        name: `Tool${i}`,
        description: 'Reads things. '.repeat(40),
        input_schema: schema(i),
      }));
      const body: JsonObject = {
        ...messagesHistory(2, 'done'),
        system: 'You are an agent. '.repeat(300),
        tools,
      };
      const fails = (given: JsonObject) => JSON.stringify(given).includes('exclusiveMinimum');
      const { report } = await run(body, 'anthropic-messages', fails, { isRefusal: true });
      expect(report.probes).toBeLessThanOrEqual(20);
      expect(report.words).toContain(`the tool Tool${at}`);
      expect(report.cause?.at).toBe(`/tools/${at}/input_schema/properties/offset/exclusiveMinimum`);
    },
  );

  test('a field is found', async () => {
    const { report } = await run(
      chatHistory(60),
      'openai-chat',
      (body) => body.temperature !== undefined,
    );
    expect(report.cause?.at).toBe('/temperature');
    expect(report.minimal).toMatchObject({ temperature: 0.7 });
  });

  test('two parts that fail only together are both named', async () => {
    const both = (body: JsonObject) => glmFails(body) && body.temperature !== undefined;
    const { report } = await run(chatHistory(60), 'openai-chat', both);
    expect(report.cause?.at).toBe('/messages/59/content');
    expect(report.words).toContain('only together with temperature');
  });

  test('when every request fails, nothing is named', async () => {
    const { report } = await run(chatHistory(60), 'openai-chat', () => true);
    expect(report).toMatchObject({ result: 'minimal', cause: undefined, passing: undefined });
    expect(report.words).toContain('leaving out parts never made it pass');
  });

  test('when no request fails any longer, six tries report it', async () => {
    const { report } = await run(chatHistory(60), 'openai-chat', () => false);
    expect(report).toMatchObject({ result: 'does-not-fail', probes: 6 });
  });
});

/** A turn of an agent with 25 tools, one of whose schemas has a keyword that a vendor refuses. */
function agentTurn(): JsonObject {
  const tools = Array.from({ length: 25 }, (_, i) => ({
    name: i === 3 ? 'Read' : `Tool${i}`,
    description: `What the tool does, in some detail. ${'It does it well. '.repeat(40)}`,
    input_schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        file_path: {
          type: 'string',
          description: 'The absolute path of the file that is to be read',
        },
        offset: { type: 'integer', minimum: 0, description: 'The line to begin with' },
        limit: {
          type: 'integer',
          ...(i === 3 && { exclusiveMinimum: 0 }),
          maximum: 9_007_199_254_740_991,
          description: 'How many lines are read at most',
        },
        pages: { type: 'string', description: 'Of a PDF' },
      },
      required: ['file_path', 'limit'],
      additionalProperties: false,
    },
  }));
  return {
    ...messagesHistory(10, 'done'),
    tools,
    temperature: 1,
    metadata: { user_id: 'somebody' },
    system: [{ type: 'text', text: 'You help with code. '.repeat(300) }],
  };
}

describe('a keyword in the schema of one of 25 tools', () => {
  const fails = (body: JsonObject) => JSON.stringify(body.tools ?? []).includes('exclusiveMinimum');
  test.each([
    ['says nothing', 'invalid request', 20],
    ['names the keyword', 'unsupported keyword exclusiveMinimum in schema', 12],
    ['names the place', 'tools.3.input_schema: JSON schema is invalid', 15],
  ])('the member is named where the refusal %s', async (_name, failure, probes) => {
    const { report, refused } = await run(agentTurn(), 'anthropic-messages', fails, {
      failure: () => failure,
      isRefusal: true,
    });
    expect(refused).toEqual([]);
    expect(report).toMatchObject({ result: 'minimal' });
    expect(report.cause?.at).toBe('/tools/3/input_schema/properties/limit/exclusiveMinimum');
    expect(shownAt(report.minimal, report.cause!.in_minimal)).toBe('"exclusiveMinimum": 0');
    expect(report.words).toStartWith('the tool Read: 1 byte JSON at tools[3].input_schema');
    expect(report.probes).toBeLessThanOrEqual(probes);
    const [tool] = list(report.minimal.tools) as readonly JsonObject[];
    expect(tool).toEqual({
      name: 'Read',
      input_schema: {
        type: 'object',
        properties: { limit: { type: 'integer', exclusiveMinimum: 0 } },
      },
    });
  });
});

describe('every candidate is valid for its protocol', () => {
  test('Messages: parallel calls keep their results, one of which is at fault', async () => {
    const fails = (body: JsonObject) => JSON.stringify(body.messages).includes('rcc.tool.v1');
    const body = messagesHistory(20, envelope(9000));
    const { report, refused } = await run(body, 'anthropic-messages', fails);
    expect(refused).toEqual([]);
    expect(report.cause?.at).toBe('/messages/40/content/1/content');
    expect(report.words).toContain('the last tool result');
    const stored = JSON.stringify(report.minimal.messages);
    expect(stored).not.toContain('toolu_20a');
    expect(stored.match(/toolu_20b/g)).toHaveLength(2);
    expect(list(report.minimal.tools)).toHaveLength(1);
  });

  test('Responses: reasoning stays with its call, and the call with its output', async () => {
    const fails = (body: JsonObject) => JSON.stringify(body.input).includes('rcc.tool.v1');
    const body = responsesHistory(20, envelope(9000));
    const { report, refused } = await run(body, 'openai-responses', fails);
    expect(refused).toEqual([]);
    expect(report.cause?.at).toBe('/input/60/output');
    expect(report.words).toContain('the last tool result');
  });
});

describe('a spent budget', () => {
  test('more is asked for, and the search goes on as long as it is given', async () => {
    const asked: number[] = [];
    const { report } = await run(chatHistory(60), 'openai-chat', glmFails, {
      budget: 3,
      more: async (spent) => {
        asked.push(spent);
        return asked.length < 3 ? 3 : 0;
      },
    });
    expect(asked).toEqual([3, 6, 9]);
    expect(report).toMatchObject({ probes: 9, result: 'partial' });
  });
});

describe('an interrupted run', () => {
  test('the run resumes where it stopped: known verdicts cost nothing', async () => {
    const first = await run(chatHistory(60), 'openai-chat', glmFails, { budget: 7 });
    const known = new Map<string, Verdict[]>();
    for (const { key, verdict } of first.probes)
      known.set(key, [...(known.get(key) ?? []), verdict]);
    const second = await run(chatHistory(60), 'openai-chat', glmFails, { known });
    const whole = await run(chatHistory(60), 'openai-chat', glmFails);
    expect(second.report.minimal).toEqual(whole.report.minimal);
    expect(second.report.probes).toBe(whole.report.probes - 7);
  });
});

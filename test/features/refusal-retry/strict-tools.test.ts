/** Strict tools that a vendor refuses, often one of an MCP server among many: the request goes once more with none strict. */

import { expect, test } from 'bun:test';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import type { SuiteProtocol } from '../../support/suite-protocols.ts';

const OPENAI = ['openai-chat', 'openai-responses'] as const;
const CLAUDE = ['anthropic-messages'] as const;
const REFUSALS: readonly (readonly [string, readonly SuiteProtocol[], source: string])[] = [
  [
    "Invalid schema for function 'web_search_browse__webbrowser': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'screenshotMode'.",
    OPENAI,
    'dust-tt/dust#27635',
  ],
  [
    "Invalid schema for function 'question': In context=('properties', 'questions', 'items'), 'required' is required to be supplied and to be an array including every key in properties. Missing 'multiple'.",
    OPENAI,
    'anomalyco/opencode#13737',
  ],
  [
    "Invalid schema for function 'my_tool': In context=('properties', 'fields'), 'additionalProperties' is required to be supplied and to be false.",
    OPENAI,
    'letta-ai/letta#3137',
  ],
  [
    "Invalid schema for function 'mcp_firecrawl_mcp_firecrawl_scrape': In context=('properties', 'url'), 'uri' is not a valid format.",
    OPENAI,
    'can1357/oh-my-pi#206',
  ],
  [
    "tools.25.custom: For 'integer' type, properties maximum, minimum are not supported",
    CLAUDE,
    'earendil-works/pi#9953',
  ],
  [
    "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
    CLAUDE,
    'vercel/ai#20681',
  ],
  [
    'The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.',
    CLAUDE,
    'anthropics/anthropic-sdk-typescript#885, alphaXiv/agents#49',
  ],
  [
    'Schema is too complex for compilation. Try reducing the number of tools or simplifying tool schemas.',
    CLAUDE,
    'genkit-ai/genkit#5230, CherryHQ/cherry-studio#18179',
  ],
];

const schema = { type: 'object', properties: { a: { type: 'string' } } };
const HI = [{ role: 'user', content: 'hi' }];
const tool = (name: string, more: JsonObject): Readonly<Record<SuiteProtocol, JsonObject>> => ({
  'openai-chat': { type: 'function', function: { name, parameters: schema, ...more } },
  'openai-responses': { type: 'function', name, parameters: schema, ...more },
  'anthropic-messages': { name, input_schema: schema, ...more },
});
const TOOLS = [tool('a', { strict: true }), tool('b', { strict: false }), tool('c', {})];
const NOT_STRICT = { strict: false };
const asked = (protocol: SuiteProtocol, tools: typeof TOOLS): JsonObject => ({
  model: 'm',
  ...(protocol === 'openai-responses' ? { input: 'hi' } : { messages: HI }),
  ...(protocol === 'anthropic-messages' && { max_tokens: 9 }),
  tools: tools.map((one) => one[protocol]),
});
const refused = (message: string): Scripted => ({ status: 400, json: { error: { message } } });

test.each(REFUSALS)('%s', async (message, protocols) => {
  for (const protocol of protocols) {
    const features = [refusalRetry(), vendorFit()];
    const gateway = scriptedGateway(protocol, [refused(message), FINE[protocol]], features);
    expect((await gateway.ask(protocol, asked(protocol, TOOLS))).status).toBe(200);
    // A tool of Responses is strict unless it says no.
    const last = protocol === 'openai-responses' ? NOT_STRICT : {};
    expect(gateway.sent[1]).toEqual(
      asked(protocol, [tool('a', NOT_STRICT), tool('b', NOT_STRICT), tool('c', last)]),
    );
    const notes = gateway.summaries[0]!.notes.map(({ name }) => name);
    expect(notes).toContain('stripped_after_refusal');
  }
});

test('a request without a strict tool is not sent again', async () => {
  const [message] = REFUSALS[0]!;
  const gateway = scriptedGateway('openai-chat', [refused(message)], [refusalRetry(), vendorFit()]);
  const answer = await gateway.ask('openai-chat', asked('openai-chat', TOOLS.slice(1)));
  expect([answer.status, gateway.sent.length]).toEqual([400, 1]);
});

test('a schema that is wrong for any tool is another matter', async () => {
  const message =
    "Invalid schema for function 'f': In context=('properties', 'x'), array schema missing items.";
  const features = [refusalRetry(), vendorFit()];
  const script = [refused(message), FINE['openai-chat']];
  const gateway = scriptedGateway('openai-chat', script, features);
  await gateway.ask('openai-chat', asked('openai-chat', TOOLS));
  expect(JSON.stringify(gateway.sent.at(-1))).toContain('"strict":true');
});

// AstrBotDevs/AstrBot#6447, langchain-ai/langchain#34140
test('content without a part, at xAI: a message with calls says nothing, one without goes', async () => {
  const message = 'Invalid request content: Each message must have at least one content element.';
  const error = { code: 'Client specified an invalid argument', error: message };
  const features = [refusalRetry(), vendorFit()];
  const script = [{ status: 400, json: error }, FINE['openai-chat']];
  const gateway = scriptedGateway('openai-chat', script, features);
  const call = { id: 'c1', type: 'function', function: { name: 'a', arguments: '{}' } };
  const result = { role: 'tool', tool_call_id: 'c1', content: 'x' };
  const messages = [
    ...HI,
    { role: 'assistant', content: [], tool_calls: [call] },
    result,
    { role: 'assistant', content: [], reasoning_content: 'hm' },
    { role: 'user', content: 'go' },
  ];
  const tools = TOOLS.map((one) => one['openai-chat']);
  const answer = await gateway.ask('openai-chat', { model: 'm', messages, tools });
  expect(answer.status).toBe(200);
  expect((gateway.sent[1] as JsonObject).messages).toEqual([
    ...HI,
    { role: 'assistant', content: '', tool_calls: [call] },
    result,
    { role: 'user', content: 'go' },
  ]);
});

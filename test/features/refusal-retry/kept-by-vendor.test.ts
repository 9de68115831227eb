/**
 * What a vendor keeps or has encrypted, and does not know again: ids of items, encrypted reasoning, summaries and
 * results of searches. The session goes on without it.
 */

import { expect, test } from 'bun:test';
import type { ProtocolName } from '../../../src/conversation/protocol-names.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { toolPairing } from '../../../src/features/tool-pairing/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import type { Json, JsonObject } from '../../../src/lib/json/json.ts';
import { FINE, type Scripted, scriptedGateway } from '../../gateway/scripted.ts';

const FEATURES = [refusalRetry(), toolPairing, vendorFit()];

const openAi = (message: string, more: JsonObject = {}, status = 400): Scripted => ({
  status,
  json: { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } },
});
const anthropic = (message: string, type = 'invalid_request_error'): Scripted => ({
  status: 400,
  json: { type: 'error', error: { type, message } },
});
const xai = (error: string): Scripted => ({
  status: 400,
  json: { code: 'invalid-argument', error },
});
/** An event of a stream that has begun with 200. */
const streamed = (event: JsonObject): Scripted => ({
  sse: [`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`],
});

const user = { role: 'user', content: 'go' };
const reasoning = (more: JsonObject = {}) => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  ...more,
});
const sealed = reasoning({ encrypted_content: 'gAAAAABsealed' });
const call = { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'call_1', output: 'found' };
const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] };
const compaction = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAAABsummary' };

const NOT_KEPT = (id: string) =>
  `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;

/** The source, what the client sends, the refusal, and what is sent then. */
type Row = readonly [source: string, asked: readonly Json[], Scripted, then: readonly Json[]];

const search = (action?: JsonObject) => ({
  type: 'web_search_call',
  status: 'completed',
  ...(action && { action }),
});
const looked = search({ type: 'search', query: 'tea' });

const RESPONSES: readonly Row[] = [
  [
    'a search that the client wrote as another, https://github.com/openai/codex/issues/7073',
    [user, search({ type: 'other' }), looked, said, user],
    openAi(
      "Invalid value: 'other'. Supported values are: 'search', 'open_page', and 'find_in_page'.",
      {
        param: 'input[1].action.type',
        code: 'invalid_value',
      },
    ),
    [user, looked, said, user],
  ],
  [
    'a search without its words, https://github.com/openai/codex/pull/7061',
    [user, search({ type: 'search' }), said, user],
    openAi("Missing required parameter: 'input[1].action.query'.", {
      param: 'input[1].action.query',
      code: 'missing_required_parameter',
    }),
    [user, said, user],
  ],
  [
    'a search that looks right, in the same words',
    [user, looked, said, user],
    openAi("Invalid value: 'search'.", { param: 'input[1].action.type', code: 'invalid_value' }),
    [user, said, user],
  ],
  [
    'unsealed reasoning, https://github.com/vercel/ai/issues/7543',
    [user, reasoning({ encrypted_content: null }), { id: 'fc_1', ...call }, output],
    openAi(NOT_KEPT('rs_1'), { param: 'input' }, 404),
    [user, call, output],
  ],
  [
    'the same with 400, https://github.com/continuedev/continue/issues/9101',
    [user, reasoning(), { id: 'fc_1', ...call }, output],
    openAi(NOT_KEPT('rs_1'), { param: 'input' }),
    [user, call, output],
  ],
  [
    'sealed reasoning under an id of another program, https://github.com/router-for-me/CLIProxyAPI/issues/2112',
    [user, { ...sealed, id: 'rs_resp_0622e9_0' }, { id: 'fc_1', ...call }, output],
    openAi(NOT_KEPT('rs_resp_0622e9_0'), { param: 'input' }, 404),
    [user, { type: 'reasoning', summary: [], encrypted_content: 'gAAAAABsealed' }, call, output],
  ],
  [
    'a message, https://github.com/numman-ali/opencode-openai-codex-auth/issues/21',
    [user, { id: 'msg_1', ...said }, user],
    openAi(NOT_KEPT('msg_1'), { param: 'input' }, 404),
    [user, said, user],
  ],
  [
    'a reference, https://github.com/anomalyco/opencode/pull/40943',
    [user, { type: 'item_reference', id: 'msg_1' }, user],
    openAi(NOT_KEPT('msg_1'), { param: 'input' }, 404),
    [user, user],
  ],
  [
    'without the hint, https://github.com/earendil-works/pi/issues/3369',
    [user, reasoning(), { id: 'fc_1', ...call }, output],
    openAi("Item with id 'rs_1' not found.", { param: 'input' }, 404),
    [user, call, output],
  ],
  [
    'a call, https://github.com/VRSEN/agency-swarm/issues/367',
    [user, { id: 'fc_1', ...call }, output],
    openAi(
      "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
      { param: 'input' },
    ),
    [user, call, output],
  ],
  [
    'a message through LiteLLM, https://github.com/continuedev/continue/issues/11309',
    [user, { id: 'msg_1', ...said }, user],
    openAi(
      'litellm.BadRequestError: AzureException BadRequestError - {\n  "error": {\n    "message": "Item \'msg_1\' of type \'message\' was provided without its required \'reasoning\' item: \'rs_1\'.",\n    "type": "invalid_request_error",\n    "param": "input",\n    "code": null\n  }\n}. Received Model Group=gpt-5.2-codex\nAvailable Model Group Fallbacks=None',
      { type: null, code: '400' },
    ),
    [user, said, user],
  ],
  [
    'reasoning alone, https://github.com/continuedev/continue/issues/8933',
    [user, sealed, { id: 'msg_1', ...said }, user],
    openAi("Item 'rs_1' of type 'reasoning' was provided without its required following item.", {
      param: 'input',
    }),
    [user, said, user],
  ],
  [
    'https://github.com/openai/codex/issues/8119',
    [user, compaction, sealed, { id: 'fc_1', ...call }, output],
    openAi('The encrypted content gAAA...c90= could not be verified.', {
      code: 'invalid_encrypted_content',
    }),
    [user, compaction, { id: 'fc_1', ...call }, output],
  ],
  [
    'in a stream, https://github.com/caozhiyuan/copilot-api/issues/363',
    [user, sealed, { id: 'fc_1', ...call }, output],
    streamed({
      type: 'error',
      code: 'bad_request',
      message:
        'The encrypted content gAAA...Qw== could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
    }),
    [user, { id: 'fc_1', ...call }, output],
  ],
  [
    'a summary, https://github.com/openai/codex/issues/35334',
    [compaction, user, sealed, call, output],
    openAi(
      'The encrypted content for item cmp_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
      { code: 'invalid_encrypted_content' },
    ),
    [user, sealed, call, output],
  ],
  [
    'a summary, and no reasoning',
    [compaction, user],
    openAi('The encrypted content gAAA...c90= could not be verified.', {
      code: 'invalid_encrypted_content',
    }),
    [user],
  ],
  [
    'xAI, https://github.com/Wei-Shaw/sub2api/issues/4535',
    [user, sealed, call, output],
    xai(
      'Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response.',
    ),
    [user, call, output],
  ],
  [
    'xAI, https://github.com/chenyme/grok2api/issues/688',
    [user, compaction, sealed, call, output],
    xai('Could not decode the compaction blob. Ensure it is unmodified from the compact response.'),
    [user, call, output],
  ],
];

async function sentThen(protocol: ProtocolName, body: JsonObject, refusal: Scripted) {
  const gateway = scriptedGateway(protocol, [refusal, FINE[protocol]], FEATURES);
  const { status, text } = await gateway.ask(protocol, body);
  expect([status, text]).toEqual([200, expect.stringContaining('fine')]);
  const [first, second] = gateway.sent as JsonObject[];
  expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toContain('stripped_after_refusal');
  return { first, second };
}

test.each(RESPONSES)('Responses: %s', async (_source, input, refusal, then) => {
  // Where nothing is kept, references do not go out at all.
  const kept = JSON.stringify(input).includes('item_reference');
  const body = { model: 'm', store: kept, stream: 'sse' in refusal, input };
  const { first, second } = await sentThen('openai-responses', body, refusal);
  expect(first).toEqual(body);
  expect(second).toEqual({ ...body, input: then });
});

const SEAL = Buffer.from(Array.from({ length: 60 }, (_, i) => (i * 97 + 161) % 256)).toString(
  'base64',
);
const text = { type: 'text', text: 'a' };
const thinking = { type: 'thinking', thinking: 'hm', signature: SEAL };
const redacted = { type: 'redacted_thinking', data: SEAL };
const searched = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [
      {
        type: 'web_search_result',
        url: 'https://a.test',
        title: 'A',
        encrypted_content: SEAL,
        page_age: null,
      },
    ],
  },
];

const MESSAGES: readonly Row[] = [
  [
    'https://github.com/microsoft/vscode/pull/320196',
    [redacted, text],
    anthropic('messages.1.content.0: Invalid `data` in `redacted_thinking` block'),
    [text],
  ],
  [
    'https://github.com/diegosouzapw/OmniRoute/pull/2191',
    [{ type: 'redacted_thinking', signature: SEAL }, text],
    anthropic('messages.1.content.0.redacted_thinking.data: Field required'),
    [text],
  ],
  [
    'https://github.com/can1357/oh-my-pi/issues/6379',
    [thinking, text],
    anthropic('messages.1.content.0: Invalid `signature` in `thinking` block'),
    [text],
  ],
  [
    'Bedrock, https://github.com/can1357/oh-my-pi/pull/10486',
    [{ type: 'thinking', thinking: 'hm' }, text],
    anthropic(
      'The model returned the following errors: messages.1.content.0.thinking.signature: Field required',
      'ValidationException',
    ),
    [text],
  ],
  [
    'Copilot, https://github.com/caozhiyuan/copilot-api/issues/63',
    [thinking, text],
    {
      status: 400,
      json: {
        error: {
          message: 'messages.1.content.0: Invalid signature in thinking block',
          code: 'invalid_request_body',
        },
      },
    },
    [text],
  ],
  [
    'Vertex AI in an envelope of Google, https://github.com/lbjlaq/Antigravity-Manager/issues/498',
    [thinking, text],
    {
      status: 400,
      json: {
        error: {
          code: 400,
          message:
            '{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"},"request_id":"req_vrtx_011"}',
          status: 'INVALID_ARGUMENT',
        },
      },
    },
    [text],
  ],
  [
    'a result of a search, https://github.com/code-yeongyu/senpi/pull/150',
    [...searched, text],
    anthropic('messages.1.content.1: Invalid encrypted_content in search_result block'),
    [{ type: 'text', text: 'A\nhttps://a.test' }, text],
  ],
];

test.each(MESSAGES)('Messages: %s', async (_source, content, refusal, then) => {
  const turn = (answer: readonly Json[]) => [user, { role: 'assistant', content: answer }, user];
  const body = { model: 'm', max_tokens: 99, messages: turn(content) };
  const { second } = await sentThen('anthropic-messages', body, refusal);
  expect(second?.messages).toEqual(turn(then));
});

const CHAT: readonly (readonly [string, Scripted])[] = [
  [
    'OpenRouter with xAI, https://github.com/hackerai-tech/hackerai/pull/996',
    openAi('Provider returned error', {
      metadata: {
        raw: '{"code":"invalid-argument","error":"Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response."}',
      },
    }),
  ],
  [
    'OpenRouter with Google, https://github.com/massgen/MassGen/issues/665',
    openAi('Provider returned error', {
      code: 400,
      metadata: {
        raw: '{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}',
      },
    }),
  ],
];

test.each(CHAT)('Chat: %s', async (_source, refusal) => {
  const details = [{ type: 'reasoning.encrypted', data: SEAL, format: 'x', index: 0 }];
  const answer = { role: 'assistant', content: 'a' };
  const messages = (more: JsonObject = {}) => [user, { ...answer, ...more }, user];
  const body = { model: 'm', messages: messages({ reasoning_details: details }) };
  const { second } = await sentThen('openai-chat', body, refusal);
  expect(second?.messages).toEqual(messages());
});

test('Chat: calls keep a signature that is not checked, https://github.com/RooCodeInc/Roo-Code/pull/10640', async () => {
  const called = (...details: readonly JsonObject[]) => [
    user,
    {
      role: 'assistant',
      content: 'a',
      reasoning_details: details,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: 'x' },
  ];
  const detail = { type: 'reasoning.encrypted', data: SEAL, format: 'google-gemini-v1', index: 0 };
  const { second } = await sentThen(
    'openai-chat',
    { model: 'm', messages: called(detail) },
    openAi('Unable to submit request because Thought signature is not valid.'),
  );
  const unchecked = { ...detail, data: 'skip_thought_signature_validator', id: 'call_1' };
  expect((second!.messages as Json[])[1]).toMatchObject(called(unchecked)[1] as object);
});

test.each([
  ['https://github.com/google-gemini/gemini-cli/issues/13467', 'Corrupted thought signature.'],
  [
    'https://github.com/decolua/9router/issues/301',
    'Unable to submit request because Thought signature is not valid.',
  ],
])('Gemini: %s', async (_source, message) => {
  const said = (part: JsonObject) => [
    { role: 'user', parts: [{ text: 'go' }] },
    { role: 'model', parts: [part] },
    { role: 'user', parts: [{ text: 'on' }] },
  ];
  const refusal = {
    status: 400,
    json: { error: { code: 400, message, status: 'INVALID_ARGUMENT' } },
  };
  const { second } = await sentThen(
    'google-gemini',
    { model: 'm', stream: false, contents: said({ text: 'a', thoughtSignature: SEAL }) },
    refusal,
  );
  expect(second?.contents).toEqual(said({ text: 'a' }));
});

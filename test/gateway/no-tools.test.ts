/** A model that takes no tools: the next target is asked, and who has no other one reads which model it is. */

import { afterEach, expect, test } from 'bun:test';
import { type RawUpstream, rawUpstream, rawWorld, saying, whole } from './raw-upstream.ts';

const upstreams: RawUpstream[] = [];
afterEach(() => {
  for (const each of upstreams.splice(0)) each.stop();
});

const vendor = (bytes: string) => {
  const started = rawUpstream(async (wire) => {
    await wire.write(bytes);
    wire.end();
  });
  upstreams.push(started);
  return started;
};

const e = (message: string, more = {}) => ({ error: { message, ...more } });

const SAID: readonly (readonly [who: string, status: number, body: object, source: string])[] = [
  [
    'Ollama',
    400,
    e('registry.ollama.ai/library/gemma:2b does not support tools', { type: 'api_error' }),
    'ollama/ollama server/routes.go',
  ],
  [
    'OpenRouter',
    404,
    e('No endpoints found that support tool use. Try disabling "question".', { code: 404 }),
    'Kilo-Org/kilocode#9006, Routstr/routstr-core#554',
  ],
  [
    'vLLM',
    400,
    {
      object: 'error',
      message:
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      type: 'BadRequestError',
      code: 400,
    },
    'vllm-project/vllm vllm/entrypoints/openai/serving_chat.py',
  ],
  [
    'Groq',
    400,
    e('`tool calling` is not supported with this model', { type: 'invalid_request_error' }),
    'console.groq.com/docs/tool-use',
  ],
  [
    'DeepSeek',
    400,
    e('deepseek-reasoner does not support Function Calling', { type: 'invalid_request_error' }),
    'deepseek-ai issues',
  ],
  [
    'Gemma at Google',
    400,
    e('Function calling is not enabled for models/gemma-3-27b-it', { status: 'INVALID_ARGUMENT' }),
    'google-gemini forum',
  ],
  [
    'OpenAI',
    400,
    e(
      'tools is not supported in this model. For a list of supported models, refer to https://platform.openai.com/docs/guides/function-calling#models-supporting-function-calling.',
    ),
    'sbintuitions/flexeval#242',
  ],
  [
    'Azure',
    404,
    e('Unrecognized request argument supplied: tools', { type: 'invalid_request_error' }),
    'MicrosoftDocs/azure-docs#118069',
  ],
  ['FastAPI', 400, e('body.tools: Extra inputs are not permitted'), 'pydantic'],
  ['serde', 400, e('unknown field `tools`, expected one of `model`, `messages`'), 'serde'],
  [
    'llama.cpp without its flag',
    500,
    e('tools param requires --jinja flag', { code: 500, type: 'server_error' }),
    'containers/ramalama#988',
  ],
  [
    'llama.cpp of 2024',
    500,
    e('Unsupported param: tools', { code: 500, type: 'server_error' }),
    'ggml-org/llama.cpp#10920',
  ],
  [
    'SiliconFlow',
    400,
    { code: 20037, message: 'Function call is not supported for this model.', data: null },
    'docs.siliconflow.cn',
  ],
  ['Bedrock', 400, { message: "This model doesn't support tool use." }, 'Converse'],
];

const CLIENTS = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;

test.each(SAID)('%s: another target is asked', async (_, status, body) => {
  for (const client of CLIENTS) {
    const refuses = vendor(whole(status, JSON.stringify(body)));
    const answers = vendor(saying('openai-chat', false, 'Hello'));
    const { ask, health } = rawWorld(`
providers:
  a: { protocol: openai-chat, base_url: "${refuses.url}", keys: [k], models: ["*"] }
  b: { protocol: openai-chat, base_url: "${answers.url}", keys: [k], models: ["*"] }
routes: [{ to: ["a/*", "b/*"] }]
`);
    const answer = await ask(client, false);
    expect([answer.status, answer.text.includes('Hello'), refuses.asked]).toEqual([200, true, 1]);
    // Without tools the model is as good as before.
    expect(JSON.stringify(health())).not.toContain('cooldown');
  }
});

/** A tool in the client's own form. */
const TOOLS = {
  'openai-chat': { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] },
  'openai-responses': { tools: [{ type: 'function', name: 'f', parameters: {} }] },
  'anthropic-messages': { tools: [{ name: 'f', input_schema: { type: 'object' } }] },
} as const;

test.each(SAID)('%s: a model that refused tools is asked once', async (_, status, body) => {
  for (const client of CLIENTS) {
    const refuses = vendor(whole(status, JSON.stringify(body)));
    const answers = vendor(saying('openai-chat', false, 'Hello'));
    const { ask } = rawWorld(`
providers:
  a: { protocol: openai-chat, base_url: "${refuses.url}", keys: [k], models: ["*"] }
  b: { protocol: openai-chat, base_url: "${answers.url}", keys: [k], models: ["*"] }
routes: [{ to: ["a/*", "b/*"] }]
`);
    for (let turn = 0; turn < 3; turn++) {
      const answer = await ask(client, false, TOOLS[client]);
      expect([answer.status, answer.text.includes('Hello')]).toEqual([200, true]);
    }
    expect([refuses.asked, answers.asked]).toEqual([1, 3]);
    // Without tools it comes first as before, and where nothing else is left.
    await ask(client, false);
    expect(refuses.asked).toBe(2);
    answers.stop();
    await ask(client, false, TOOLS[client]);
    expect(refuses.asked).toBe(3);
  }
});

test('a profile that says so saves the first try, too', async () => {
  const refuses = vendor(whole(400, JSON.stringify(e('This model does not support tools'))));
  const answers = vendor(saying('openai-chat', false, 'Hello'));
  const { ask } = rawWorld(`
profiles: { small: { maxTools: 0 } }
providers:
  a: { protocol: openai-chat, base_url: "${refuses.url}", profile: small, keys: [k], models: ["*"] }
  b: { protocol: openai-chat, base_url: "${answers.url}", keys: [k], models: ["*"] }
routes: [{ to: ["a/*", "b/*"] }]
`);
  for (let turn = 0; turn < 4; turn++) {
    expect((await ask('openai-chat', false, TOOLS['openai-chat'])).status).toBe(200);
  }
  expect([refuses.asked, answers.asked]).toEqual([0, 4]);
});

test.each(SAID)(
  '%s: where there is none, the client reads which model takes none',
  async (_, status, body) => {
    const refuses = vendor(whole(status, JSON.stringify(body)));
    const { ask, summaries } = rawWorld(
      `providers: { p: { protocol: openai-chat, base_url: "${refuses.url}", keys: [k], models: ["*"] } }`,
    );
    for (const client of CLIENTS) {
      const answer = await ask(client, false);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.text).error.message).toStartWith(
        'The model "m" of provider p takes no tools: ',
      );
    }
    expect([refuses.asked, summaries[0]!.error?.kind]).toEqual([3, 'invalid_request']);
  },
);

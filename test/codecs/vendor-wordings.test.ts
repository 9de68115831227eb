/** What vendors and servers say, in the form in which they say it, and what each of the four codecs takes it for. */

import { describe, expect, test } from 'bun:test';
import { CODECS } from '../../src/app/codecs.ts';
import type { ErrorKind } from '../../src/conversation/errors.ts';
import { remedyForError, remedyForStatus } from '../../src/upstream/classify.ts';
import { vendorError } from '../../src/upstream/vendor-error.ts';
import { PROFILES } from '../../src/vendors/index.ts';

const e = (message: string, more: object = {}) => ({ error: { message, ...more } });
const invalid = (message: string, code: string | null = null) =>
  e(message, { type: 'invalid_request_error', param: null, code });
const google = (code: number, message: string, status: string, details: readonly object[] = []) =>
  e(message, { code, status, details });
const anthropic = (type: string, message: string) => ({ type: 'error', error: { type, message } });

type Said = readonly [
  who: string,
  profile: string,
  status: number,
  body: unknown,
  kind: ErrorKind,
  source: string,
];

const PI = 'badlogic/pi-mono packages/ai/test/context-overflow.test.ts';
const QWEN = 'alibabacloud.com/help/en/model-studio/error-code';

const OVERFLOWS: readonly Said[] = [
  [
    'Anthropic',
    'anthropic',
    400,
    anthropic('invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'),
    'context_overflow',
    PI,
  ],
  [
    'Anthropic cap',
    'anthropic',
    400,
    anthropic(
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ),
    'context_overflow',
    'docs.claude.com/en/docs/build-with-claude/context-windows',
  ],
  [
    'OpenAI',
    'openai-chat',
    400,
    invalid(
      'Your input exceeds the context window of this model. Please adjust your input and try again.',
      'context_length_exceeded',
    ),
    'context_overflow',
    PI,
  ],
  [
    'OpenAI Chat',
    'openai-chat',
    400,
    invalid(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens.",
    ),
    'context_overflow',
    PI,
  ],
  [
    'DeepSeek',
    'deepseek',
    400,
    invalid(
      "This model's maximum context length is 102400 tokens. However, you requested 102772 tokens (70772 in the messages, 32000 in the completion).",
      'invalid_request_error',
    ),
    'context_overflow',
    'deepseek-ai issues',
  ],
  [
    'DashScope',
    'qwen',
    400,
    invalid(
      '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]',
      'invalid_parameter_error',
    ),
    'context_overflow',
    QWEN,
  ],
  [
    'MiniMax',
    'minimax',
    400,
    {
      base_resp: {
        status_code: 2013,
        status_msg: 'invalid params, context window exceeds limit (2013)',
      },
    },
    'context_overflow',
    PI,
  ],
  [
    'MiniMax Messages',
    'minimax-anthropic',
    400,
    anthropic('invalid_request_error', 'invalid params, context window exceeds limit (2013)'),
    'context_overflow',
    PI,
  ],
  [
    'Kimi',
    'kimi',
    400,
    invalid('Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)'),
    'context_overflow',
    PI,
  ],
  [
    'GLM 1261',
    'glm',
    400,
    e('Prompt 超长', { code: '1261' }),
    'context_overflow',
    'docs.bigmodel.cn/cn/api/api-code',
  ],
  [
    'Gemini',
    'google-gemini',
    400,
    google(
      400,
      'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
      'INVALID_ARGUMENT',
    ),
    'context_overflow',
    PI,
  ],
  [
    'Gemini in a list',
    'gemini',
    400,
    [
      google(
        400,
        'The input token count exceeds the maximum number of tokens allowed 1048576.',
        'INVALID_ARGUMENT',
      ),
    ],
    'context_overflow',
    PI,
  ],
  [
    'xAI',
    'xai',
    400,
    {
      code: 'invalid-argument',
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    'context_overflow',
    PI,
  ],
  [
    'Mistral',
    'mistral',
    400,
    {
      object: 'error',
      message:
        'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      type: 'invalid_request_error',
      code: '3051',
    },
    'context_overflow',
    PI,
  ],
  [
    'Groq',
    'groq',
    400,
    invalid('Please reduce the length of the messages or completion.', 'context_length_exceeded'),
    'context_overflow',
    PI,
  ],
  [
    'OpenRouter',
    'openrouter',
    400,
    e(
      "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (100000 of text input, 8000 of tool input, 32000 in the output).",
      { code: 400 },
    ),
    'context_overflow',
    PI,
  ],
  [
    'OpenRouter raw JSON',
    'openrouter',
    400,
    e('Provider returned error', {
      code: 400,
      metadata: {
        raw: JSON.stringify(
          anthropic('invalid_request_error', 'prompt is too long: 205351 tokens > 200000 maximum'),
        ),
        provider_name: 'Anthropic',
      },
    }),
    'context_overflow',
    'openrouter.ai/docs/api-reference/errors',
  ],
  [
    'OpenRouter raw text',
    'openrouter',
    400,
    e('Provider returned error', {
      code: 400,
      metadata: {
        raw: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      },
    }),
    'context_overflow',
    'openrouter.ai/docs/api-reference/errors',
  ],
  [
    'Together',
    'together',
    422,
    invalid(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 7000 `inputs` tokens and 2000 `max_new_tokens`',
    ),
    'context_overflow',
    'text-generation-inference router/src/validation.rs',
  ],
  [
    'TGI',
    'none',
    422,
    {
      error: 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000',
      error_type: 'validation',
    },
    'context_overflow',
    'text-generation-inference router/src/validation.rs',
  ],
  [
    'Bedrock',
    'bedrock-claude',
    400,
    { message: 'Input is too long for requested model.', __type: 'ValidationException' },
    'context_overflow',
    'aws-samples/bedrock-chat#95',
  ],
  [
    'Bedrock Titan',
    'bedrock-claude',
    400,
    {
      message:
        '400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279',
      __type: 'ValidationException',
    },
    'context_overflow',
    'pkdone/paul-genai-test-tools-ts',
  ],
  [
    'Cohere',
    'none',
    400,
    {
      message:
        'too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt, or enabling prompt truncating. See https://docs.cohere.com/reference/generate for more details.',
    },
    'context_overflow',
    'docs.cohere.com errors',
  ],
  [
    'Cohere size',
    'none',
    400,
    {
      message:
        'too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs',
    },
    'context_overflow',
    'docs.cohere.com errors',
  ],
  [
    'Ollama',
    'ollama',
    400,
    { error: 'prompt too long; exceeded max context length by 5 tokens' },
    'context_overflow',
    PI,
  ],
  [
    'Ollama input',
    'ollama',
    400,
    e('the input length exceeds the context length', { type: 'api_error' }),
    'context_overflow',
    'ollama/ollama',
  ],
  [
    'LM Studio',
    'lmstudio',
    400,
    {
      error:
        'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens',
    },
    'context_overflow',
    'lmstudio-bug-tracker#546',
  ],
  [
    'LM Studio keep',
    'lmstudio',
    400,
    {
      error:
        'The number of tokens to keep from the initial prompt (9800) is greater than the context length (8192).',
    },
    'context_overflow',
    PI,
  ],
  [
    'llama.cpp',
    'llamacpp',
    400,
    e('the request exceeds the available context size, try increasing it', {
      code: 400,
      type: 'exceed_context_size_error',
      n_prompt_tokens: 9000,
      n_ctx: 4096,
    }),
    'context_overflow',
    'ggml-org/llama.cpp tools/server',
  ],
  [
    'vLLM',
    'vllm',
    400,
    e(
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 tokens and your request has 12000 input tokens (32000 > 40960 - 12000).",
      { type: 'BadRequestError', code: 400 },
    ),
    'context_overflow',
    'farion1231/cc-switch#1022',
  ],
  [
    'vLLM flat',
    'vllm',
    400,
    { object: 'error', message: "This model's maximum context length is 4096 tokens.", code: 400 },
    'context_overflow',
    'vllm serving_engine.py',
  ],
  [
    'vLLM decoder',
    'vllm',
    400,
    e(
      'The decoder prompt (length 9000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.',
    ),
    'context_overflow',
    'vllm processor.py',
  ],
  [
    'SGLang',
    'sglang',
    400,
    {
      object: 'error',
      message: "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
      type: 'BadRequestError',
      code: 400,
    },
    'context_overflow',
    'sglang tokenizer_manager.py',
  ],
  [
    'SGLang total',
    'sglang',
    400,
    {
      object: 'error',
      message:
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 5000 tokens from the input messages and 4000 tokens for the completion.",
      code: 400,
    },
    'context_overflow',
    'sglang tokenizer_manager.py',
  ],
  [
    'TabbyAPI',
    'none',
    400,
    { detail: 'Request length 71599 + 2048 is greater than max_seq_len 65536' },
    'context_overflow',
    'SillyTavern#3543',
  ],
  [
    'Copilot',
    'none',
    400,
    e('prompt token count of 200000 exceeds the limit of 128000', {
      code: 'model_max_prompt_tokens_exceeded',
    }),
    'context_overflow',
    PI,
  ],
  [
    'LiteLLM',
    'none',
    400,
    e(
      'litellm.ContextWindowExceededError: AnthropicException - prompt is too long: 205351 tokens > 200000 maximum',
    ),
    'context_overflow',
    'BerriAI/litellm',
  ],
];

const KEYS: readonly Said[] = [
  [
    'Gemini expired',
    'google-gemini',
    400,
    google(400, 'API key expired. Please renew the API key.', 'INVALID_ARGUMENT', [
      { reason: 'API_KEY_INVALID' },
    ]),
    'authentication',
    'CLIProxyAPI#2016',
  ],
  [
    'Gemini in a list',
    'gemini',
    400,
    [
      google(400, 'API key expired. Please renew the API key.', 'INVALID_ARGUMENT', [
        { reason: 'API_KEY_INVALID' },
      ]),
    ],
    'authentication',
    'CLIProxyAPI#2016',
  ],
  [
    'Gemini not valid',
    'gemini',
    400,
    [google(400, 'API key not valid. Please pass a valid API key.', 'INVALID_ARGUMENT')],
    'authentication',
    'ai.google.dev troubleshooting',
  ],
  [
    'Gemini leaked',
    'google-gemini',
    403,
    google(
      403,
      'Your API key was reported as leaked. Please use another API key.',
      'PERMISSION_DENIED',
    ),
    'authentication',
    'ai.google.dev troubleshooting',
  ],
  [
    'xAI',
    'xai',
    400,
    {
      code: 'Client specified an invalid argument',
      error:
        'Incorrect API key provided: na***ys. You can obtain an API key from https://console.x.ai.',
    },
    'authentication',
    'continuedev/continue#10778',
  ],
  [
    'OpenAI',
    'openai-chat',
    401,
    invalid('Incorrect API key provided: sk-…', 'invalid_api_key'),
    'authentication',
    'platform.openai.com error-codes',
  ],
  [
    'Anthropic',
    'anthropic',
    401,
    anthropic('authentication_error', 'invalid x-api-key'),
    'authentication',
    'docs.claude.com/en/api/errors',
  ],
  [
    'Anthropic disabled',
    'anthropic',
    400,
    anthropic('invalid_request_error', 'This organization has been disabled.'),
    'authentication',
    'anthropics/claude-code issues',
  ],
  [
    'DashScope',
    'qwen',
    401,
    invalid('Incorrect API key provided.', 'invalid_api_key'),
    'authentication',
    QWEN,
  ],
  [
    'MiniMax',
    'minimax',
    200,
    { base_resp: { status_code: 1004, status_msg: 'login fail: Please carry the API secret key' } },
    'authentication',
    'platform.minimax.io errorcode',
  ],
  ['GLM', 'glm', 401, e('身份验证失败。', { code: '1000' }), 'authentication', 'docs.bigmodel.cn'],
  [
    'GLM expired',
    'zai',
    401,
    e('token expired or incorrect', { code: '401' }),
    'authentication',
    'docs.z.ai',
  ],
  [
    'DeepSeek',
    'deepseek',
    401,
    e('Authentication Fails, Your api key: ****abcd is invalid', {
      type: 'authentication_error',
      code: 'invalid_request_error',
    }),
    'authentication',
    'api-docs.deepseek.com',
  ],
  [
    'Kimi',
    'kimi',
    401,
    e('Invalid Authentication', { type: 'invalid_authentication_error' }),
    'authentication',
    'platform.moonshot.ai',
  ],
  [
    'Groq',
    'groq',
    401,
    invalid('Invalid API Key', 'invalid_api_key'),
    'authentication',
    'console.groq.com/docs/errors',
  ],
  [
    'Bedrock',
    'bedrock-claude',
    403,
    {
      message: 'The security token included in the request is invalid.',
      __type: 'UnrecognizedClientException',
    },
    'authentication',
    'AWS common errors',
  ],
  [
    'Azure',
    'none',
    401,
    e(
      'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
      { code: '401' },
    ),
    'authentication',
    'SciSharp/BotSharp#386',
  ],
  [
    'OpenRouter',
    'openrouter',
    401,
    e('No auth credentials found', { code: 401 }),
    'authentication',
    'openrouter.ai/docs errors',
  ],
  ['a relay', 'none', 400, { detail: 'Invalid API key' }, 'authentication', 'FastAPI relays'],
  [
    'a relay of OpenRouter',
    'none',
    400,
    { error: JSON.stringify(e('Invalid API key', { code: 401 })) },
    'authentication',
    'maxnowack/anthropic-proxy#4',
  ],
];

const ACCOUNTS: readonly Said[] = [
  [
    'Anthropic limit',
    'anthropic',
    400,
    anthropic(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
    ),
    'quota',
    'OmniRoute#4986',
  ],
  [
    'Anthropic workspace',
    'anthropic',
    400,
    anthropic(
      'invalid_request_error',
      'You have reached your specified workspace API usage limits.',
    ),
    'quota',
    'OmniRoute#4986',
  ],
  [
    'Anthropic credits',
    'anthropic',
    400,
    anthropic(
      'invalid_request_error',
      'Your credit balance is too low to access the Anthropic API.',
    ),
    'billing',
    'docs.claude.com errors',
  ],
  [
    'OpenAI',
    'openai-chat',
    429,
    e('You exceeded your current quota, please check your plan and billing details.', {
      type: 'insufficient_quota',
      code: 'insufficient_quota',
    }),
    'quota',
    'platform.openai.com error-codes',
  ],
  [
    'OpenAI hard limit',
    'openai-chat',
    400,
    invalid('Billing hard limit has been reached.', 'billing_hard_limit_reached'),
    'billing',
    'platform.openai.com error-codes',
  ],
  [
    'DeepSeek',
    'deepseek',
    402,
    e('Insufficient Balance', { type: 'unknown_error', code: 'invalid_request_error' }),
    'billing',
    'api-docs.deepseek.com',
  ],
  [
    'Kimi',
    'kimi',
    403,
    e(
      'Your account org-x is not active, organization exceeded current quota, please check your plan',
      { type: 'exceeded_current_quota_error' },
    ),
    'quota',
    'MoonshotAI/Kimi-K2#5',
  ],
  ['GLM arrears', 'glm', 429, e('您的账户已欠费', { code: '1113' }), 'billing', 'docs.bigmodel.cn'],
  [
    'DashScope arrears',
    'qwen',
    400,
    invalid('Access denied, please make sure your account is in good standing.', 'Arrearage'),
    'billing',
    QWEN,
  ],
  [
    'Kimi Code',
    'kimi',
    403,
    e("You've reached your usage limit for this billing cycle. Please upgrade to continue."),
    'quota',
    'kimi.com/code error reference',
  ],
  [
    'Bedrock day',
    'bedrock-claude',
    429,
    {
      message: 'Too many tokens per day, please wait before trying again.',
      __type: 'ThrottlingException',
    },
    'quota',
    'minorun365/agent-book#29',
  ],
  [
    'Bedrock region',
    'bedrock-claude',
    400,
    {
      message:
        'Access to Anthropic models is not allowed from unsupported countries, regions, or territories.',
      __type: 'ValidationException',
    },
    'permission',
    'anthropics/claude-code#2656',
  ],
  [
    'MiniMax',
    'minimax',
    200,
    { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    'billing',
    'platform.minimax.io errorcode',
  ],
  [
    'OpenRouter',
    'openrouter',
    402,
    e('Insufficient credits. This account never purchased credits.', { code: 402 }),
    'billing',
    'free-claude-code#772',
  ],
  [
    'OpenRouter key',
    'openrouter',
    403,
    e('Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys', {
      code: 403,
    }),
    'quota',
    'openrouter.ai/docs errors',
  ],
  [
    'xAI',
    'xai',
    403,
    {
      code: 'The caller does not have permission',
      error:
        'Your team has either used all available credits or reached its monthly spending limit.',
    },
    'quota',
    'docs.x.ai debugging',
  ],
  [
    'Gemini region',
    'google-gemini',
    400,
    google(400, 'User location is not supported for the API use.', 'FAILED_PRECONDITION'),
    'permission',
    'ai.google.dev troubleshooting',
  ],
  [
    'Gemini region, in a list',
    'gemini',
    400,
    [google(400, 'User location is not supported for the API use.', 'FAILED_PRECONDITION')],
    'permission',
    'ai.google.dev troubleshooting',
  ],
  [
    'OpenAI region',
    'openai-chat',
    403,
    e('Country, region, or territory not supported', {
      code: 'unsupported_country_region_territory',
      type: 'request_forbidden',
    }),
    'permission',
    'platform.openai.com error-codes',
  ],
];

const MODELS: readonly Said[] = [
  [
    'OpenAI',
    'openai-chat',
    404,
    invalid('The model `gpt-9` does not exist or you do not have access to it.', 'model_not_found'),
    'not_found',
    'platform.openai.com',
  ],
  [
    'OpenAI Responses',
    'openai',
    400,
    invalid("The requested model 'gpt-9' does not exist.", 'model_not_found'),
    'not_found',
    'platform.openai.com',
  ],
  [
    'OpenAI project',
    'openai-chat',
    403,
    invalid('Project `proj_x` does not have access to model `gpt-4`', 'model_not_found'),
    'not_found',
    'platform.openai.com',
  ],
  [
    'Anthropic',
    'anthropic',
    404,
    anthropic('not_found_error', 'model: claude-9'),
    'not_found',
    'docs.claude.com errors',
  ],
  [
    'Groq',
    'groq',
    400,
    invalid(
      'The model `gemma2-9b-it` has been decommissioned and is no longer supported.',
      'model_decommissioned',
    ),
    'not_found',
    'continuedev/continue#12741',
  ],
  [
    'GLM',
    'glm',
    400,
    e('模型不存在，请检查模型代码。', { code: '1211' }),
    'not_found',
    'docs.bigmodel.cn',
  ],
  [
    'Z.AI, Messages',
    'glm-anthropic',
    400,
    anthropic('1211', 'Unknown Model, please check the model code.'),
    'not_found',
    'docs.z.ai',
  ],
  [
    'DeepSeek',
    'deepseek',
    400,
    invalid('Model Not Exist', 'invalid_request_error'),
    'not_found',
    'deepwn/addi#13',
  ],
  [
    'Mistral',
    'mistral',
    400,
    {
      object: 'error',
      message: 'Invalid model: mistral-medium-3.5',
      type: 'invalid_model',
      param: null,
      code: '1500',
    },
    'not_found',
    'langchaingo#1233',
  ],
  [
    'Together',
    'together',
    400,
    invalid(
      'Unable to access non-serverless model mistralai/Mixtral. Please visit …',
      'model_not_available',
    ),
    'not_found',
    'HeyPuter/puter#3168',
  ],
  [
    'OpenRouter',
    'openrouter',
    400,
    e('google/gemini-2.0-pro-exp-02-05:free is not a valid model ID', { code: 400 }),
    'not_found',
    'maxnowack/anthropic-proxy#4',
  ],
  [
    'OpenRouter endpoints',
    'openrouter',
    404,
    e('No endpoints found for moonshotai/kimi-k2.', { code: 404 }),
    'not_found',
    'opencode#1558',
  ],
  [
    'xAI',
    'xai',
    404,
    {
      code: 'Some requested entity was not found',
      error: 'The model grok-9 does not exist or your team x does not have access to it.',
    },
    'not_found',
    'docs.x.ai',
  ],
  [
    'Kimi',
    'kimi',
    404,
    e('Not found the model kimi-k2.5 or Permission denied', { type: 'resource_not_found_error' }),
    'not_found',
    'langgenius/dify#39778',
  ],
  [
    'MiniMax',
    'minimax',
    400,
    {
      base_resp: {
        status_code: 2013,
        status_msg: "invalid params, unknown model 'gpt-5.5' (2013)",
      },
    },
    'not_found',
    'cockpit-tools#1431',
  ],
  [
    'MiniMax Messages',
    'minimax-anthropic',
    400,
    anthropic('invalid_request_error', "invalid params, unknown model 'gpt-5.5' (2013)"),
    'not_found',
    'cockpit-tools#1431',
  ],
  [
    'DashScope',
    'qwen',
    404,
    invalid('The model `qwen9` does not exist or you do not have access to it.', 'model_not_found'),
    'not_found',
    QWEN,
  ],
  [
    'DashScope 400',
    'qwen',
    400,
    { code: 'InvalidParameter', message: 'Model not exist.' },
    'not_found',
    QWEN,
  ],
  [
    'DashScope access',
    'qwen',
    403,
    { code: 'Model.AccessDenied', message: 'Model access denied.' },
    'not_found',
    QWEN,
  ],
  [
    'Gemini',
    'google-gemini',
    404,
    google(
      404,
      'models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.',
      'NOT_FOUND',
    ),
    'not_found',
    'ai.google.dev troubleshooting',
  ],
  [
    'Gemini retired',
    'gemini',
    400,
    [
      google(
        400,
        'This model models/gemini-1.5-pro is no longer available. Please update your code.',
        'INVALID_ARGUMENT',
      ),
    ],
    'not_found',
    'quill-router#287',
  ],
  [
    'Bedrock',
    'bedrock-claude',
    400,
    { message: 'The provided model identifier is invalid.', __type: 'ValidationException' },
    'not_found',
    'RooCodeInc/Roo-Code#9182',
  ],
  [
    'Bedrock access',
    'bedrock-claude',
    403,
    {
      message: "You don't have access to the model with the specified model ID.",
      __type: 'AccessDeniedException',
    },
    'not_found',
    'dirkpetersen/our-chat#3',
  ],
  [
    'Azure',
    'azure',
    404,
    e('The API deployment for this resource does not exist.', { code: 'DeploymentNotFound' }),
    'not_found',
    'chatboxai/chatbox#646',
  ],
  [
    'NVIDIA',
    'none',
    410,
    {
      type: 'about:blank',
      title: 'Gone',
      status: 410,
      detail: "The model 'x' has reached its end of life on 2026-08-07 and is no longer available.",
    },
    'not_found',
    'NemoClaw#11902',
  ],
  [
    'Ollama',
    'ollama',
    404,
    { error: 'model "llama9" not found, try pulling it first' },
    'not_found',
    'ollama/ollama',
  ],
  [
    'LM Studio',
    'lmstudio',
    400,
    { error: 'Failed to load model "qwen3.5-35b-a3b"' },
    'not_found',
    'trvon/agent',
  ],
  [
    'vLLM',
    'vllm',
    404,
    e('The model `x` does not exist.', { type: 'NotFoundError', code: 404 }),
    'not_found',
    'vllm serving_engine.py',
  ],
  [
    'a gateway',
    'none',
    400,
    e('Model kimi-k2.5 has been retired.', { code: 410, type: 'model_gone' }),
    'not_found',
    'getkimchi/kimchi#1176',
  ],
];

const OTHERS: readonly Said[] = [
  [
    'OpenRouter moderation',
    'openrouter',
    403,
    e(
      'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "violence". No credits were charged.',
      {
        code: 403,
        metadata: { reasons: ['violence'], flagged_input: 'how to …', provider_name: 'OpenAI' },
      },
    ),
    'content_filter',
    'openrouter.ai/docs errors',
  ],
  [
    'xAI safety',
    'xai',
    403,
    {
      code: 'The caller does not have permission',
      error: 'Content violates usage guidelines. Team: x, Failed check: SAFETY_CHECK_TYPE_BIO',
    },
    'content_filter',
    'docs.x.ai',
  ],
  [
    'Azure filter',
    'azure',
    400,
    e(
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      { code: 'content_filter' },
    ),
    'content_filter',
    'microsoft/azurechat#351',
  ],
  [
    'DashScope filter',
    'qwen',
    400,
    invalid('Input data may contain inappropriate content.', 'data_inspection_failed'),
    'content_filter',
    QWEN,
  ],
  [
    'DeepSeek filter',
    'deepseek',
    400,
    invalid('Content Exists Risk', 'invalid_request_error'),
    'content_filter',
    'deepseek-ai issues',
  ],
  [
    'Kimi filter',
    'kimi',
    400,
    e('The request was rejected because it was considered high risk', { type: 'content_filter' }),
    'content_filter',
    'MoonshotAI/kimi-cli#1002',
  ],
  [
    'MiniMax filter',
    'minimax',
    200,
    { base_resp: { status_code: 1026, status_msg: 'input new_sensitive' } },
    'content_filter',
    'platform.minimax.io',
  ],
  [
    'Gemini per minute',
    'gemini',
    429,
    [
      google(
        429,
        'You exceeded your current quota, please check your plan. Please retry in 37.5s.',
        'RESOURCE_EXHAUSTED',
        [
          {
            '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
            violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }],
          },
        ],
      ),
    ],
    'rate_limit',
    'ai.google.dev rate-limits',
  ],
  [
    'Gemini, retry in seconds',
    'gemini',
    429,
    [google(429, 'You exceeded your current quota. Please retry in 37.5s.', 'RESOURCE_EXHAUSTED')],
    'rate_limit',
    'ai.google.dev rate-limits',
  ],
  [
    'Gemini per day',
    'gemini',
    429,
    [
      google(429, 'You exceeded your current quota. Please retry in 37.5s.', 'RESOURCE_EXHAUSTED', [
        { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
      ]),
    ],
    'quota',
    'ai.google.dev rate-limits',
  ],
  [
    'OpenAI, never fits',
    'openai-chat',
    429,
    e(
      'Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 64000. The input or output tokens must be reduced in order to run successfully.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    'too_large',
    'BerriAI/litellm#5225',
  ],
  [
    'Groq, never fits',
    'groq',
    413,
    e(
      'Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    'too_large',
    'console.groq.com/docs/errors',
  ],
  [
    'OpenAI, full minute',
    'openai-chat',
    429,
    e(
      'Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s.',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    'rate_limit',
    'platform.openai.com',
  ],
  [
    'Kimi busy',
    'kimi',
    429,
    e('The engine is currently overloaded, please try again later', {
      type: 'engine_overloaded_error',
    }),
    'overloaded',
    'platform.moonshot.ai',
  ],
  [
    'Bedrock throttling',
    'bedrock-claude',
    429,
    {
      message: 'Too many requests, please wait before trying again.',
      __type: 'ThrottlingException',
    },
    'rate_limit',
    'AWS common errors',
  ],
  [
    "the client's organization",
    'openai-chat',
    401,
    invalid(
      'OpenAI-Organization header should match organization for API key',
      'mismatched_organization',
    ),
    'invalid_request',
    'platform.openai.com',
  ],
  [
    "the client's file",
    'google-gemini',
    403,
    google(
      403,
      'You do not have permission to access the File abc or it may not exist.',
      'PERMISSION_DENIED',
    ),
    'invalid_request',
    'ai.google.dev files',
  ],
];

/** What relays, clouds and smaller vendors say. */
const MORE: readonly Said[] = [
  [
    'Cerebras, a day',
    'none',
    429,
    {
      message: 'Tokens per day limit exceeded - too many tokens processed.',
      type: 'too_many_tokens_error',
      param: 'quota',
      code: 'token_quota_exceeded',
    },
    'quota',
    'inference-docs.cerebras.ai/support/rate-limits',
  ],
  [
    'Cerebras, a minute',
    'none',
    429,
    {
      message: 'Requests per minute limit exceeded - too many requests sent.',
      type: 'too_many_requests_error',
      param: 'quota',
      code: 'request_quota_exceeded',
    },
    'rate_limit',
    'inference-docs.cerebras.ai/support/rate-limits',
  ],
  [
    'Kimi, a day',
    'kimi',
    429,
    e('Your account org-1 request reached TPD rate limit, current: 1500001, limit: 1500000', {
      type: 'rate_limit_reached_error',
    }),
    'quota',
    'platform.moonshot.ai/docs/api/errors',
  ],
  [
    'OpenRouter, free models',
    'openrouter',
    429,
    e(
      'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
      { code: 429 },
    ),
    'quota',
    'openrouter.ai/docs/api/reference/limits',
  ],
  [
    'OpenRouter, free models, a minute',
    'openrouter',
    429,
    e('Rate limit exceeded: free-models-per-min. ', { code: 429 }),
    'rate_limit',
    'openrouter.ai/docs/api/reference/limits',
  ],
  [
    'OpenRouter, a shorter answer is affordable',
    'openrouter',
    402,
    e(
      'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104. To increase, visit https://openrouter.ai/settings/credits',
      { code: 402 },
    ),
    'invalid_request',
    'can1357/oh-my-pi#9569',
  ],
  [
    'OpenRouter, nothing is affordable',
    'openrouter',
    402,
    e(
      'This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 0. To increase, visit https://openrouter.ai/settings/keys',
      { code: 402 },
    ),
    'billing',
    'anomalyco/opencode#12219',
  ],
  [
    'Gemini, a model that the tier does not have',
    'google-gemini',
    429,
    google(
      429,
      'Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: gemini-3-pro',
      'RESOURCE_EXHAUSTED',
      [{ violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }] }],
    ),
    'quota',
    'ai.google.dev/gemini-api/docs/rate-limits',
  ],
  [
    'NVIDIA, a model that is down',
    'none',
    400,
    {
      status: 400,
      title: 'Bad Request',
      detail:
        "Function id '3b9748d8-1d85-40e8-8573-0eeaa63a4b63': DEGRADED function cannot be invoked",
    },
    'overloaded',
    'Alishahryar1/free-claude-code#1012',
  ],
  [
    'LM Studio, unloaded',
    'lmstudio',
    400,
    { error: 'Model unloaded.' },
    'overloaded',
    'lmstudio-ai/lmstudio-bug-tracker',
  ],
  [
    'LM Studio, crashed',
    'lmstudio',
    400,
    {
      error:
        'The model has crashed without additional information. (Exit code: 18446744072635812000)',
    },
    'overloaded',
    'lmstudio-ai/lmstudio-bug-tracker#1347',
  ],
  [
    'LM Studio, its engine failed',
    'lmstudio',
    400,
    { error: 'Channel Error' },
    'overloaded',
    'mdc-ng/mdc-ng#451',
  ],
  [
    'GLM and others, more than max tokens',
    'none',
    400,
    e('tokens in request more than max tokens allowed'),
    'context_overflow',
    'anomalyco/opencode#27519',
  ],
  [
    'ds4-server',
    'none',
    400,
    e('Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens'),
    'context_overflow',
    'earendil-works/pi#6262',
  ],
  [
    'Bedrock, input limit',
    'none',
    400,
    { message: 'Input exceeds the max input token limit' },
    'context_overflow',
    'openclaw/openclaw#58839',
  ],
  [
    'Cohere, total',
    'none',
    400,
    { message: "total tokens exceeds the model's max of 4096" },
    'context_overflow',
    'openclaw/openclaw#58839',
  ],
  [
    'Claude by a subscription, a limit of one model',
    'none',
    500,
    anthropic('api_error', "You've reached your Fable 5 limit."),
    'quota',
    'rynfar/meridian#909',
  ],
  [
    'Claude by a subscription, no credits of the group',
    'none',
    500,
    anthropic(
      'api_error',
      "Your group's usage limit is set to $0 · run /usage-credits to request more",
    ),
    'billing',
    'rynfar/meridian#909',
  ],
  [
    'Claude by a subscription, a window',
    'none',
    429,
    anthropic('rate_limit_error', "You've hit your limit · resets 3pm (Europe/Berlin)"),
    'quota',
    'rynfar/meridian#908',
  ],
  [
    'a limit of a minute in the same words',
    'none',
    429,
    e('You have exceeded your requests per minute limit'),
    'rate_limit',
    'the counter-example',
  ],
  [
    'LiteLLM, used up',
    'none',
    429,
    e('hard billing limit reached', { code: 'terminal_quota_exhausted' }),
    'quota',
    'NousResearch/hermes-agent#106427',
  ],
  [
    'a relay, the cost of a day',
    'none',
    429,
    e('daily cost limit exceeded', { code: 'daily_cost_limit_exceeded' }),
    'quota',
    'screenpipe/screenpipe#4594',
  ],
  [
    'a relay, no credits',
    'none',
    429,
    e('credits exhausted', { code: 'credits_exhausted' }),
    'billing',
    'screenpipe/screenpipe#4594',
  ],
  [
    'Novita, balance',
    'none',
    403,
    { code: 403, reason: 'NOT_ENOUGH_BALANCE', message: 'not enough balance', metadata: {} },
    'billing',
    'novita.ai/docs/api-reference/basic-error-code',
  ],
  [
    'SiliconFlow, paid balance',
    'none',
    403,
    {
      code: 30011,
      message:
        'The selected model requires paid balance. Your paid balance is insufficient. Please top up and try again.',
      data: null,
    },
    'billing',
    'FoundationAgents/OpenManus#438',
  ],
  [
    'Hunyuan, used up',
    'none',
    400,
    e('资源包余量已用尽，请购买资源包或开通后付费', {
      type: 'runtime_error',
      code: 'FailedOperation.ResourcePackExhausted',
    }),
    'billing',
    'cloud.tencent.com/document/product/1729/101838',
  ],
  [
    'Ark, the limit that the account set',
    'none',
    429,
    e(
      'Your account [1] has reached the set inference limit for the [x] model, and the model service has been paused.',
      { code: 'SetLimitExceeded', type: 'TooManyRequests' },
    ),
    'quota',
    'volcengine.com/docs/82379/1299023',
  ],
  [
    'Workers AI, the amount of a day',
    'none',
    429,
    {
      success: false,
      errors: [
        {
          message:
            'you have used up your daily free allocation of 10,000 neurons, please upgrade to Cloudflare’s Workers Paid plan',
          code: 4006,
        },
      ],
    },
    'quota',
    'developers.cloudflare.com/workers-ai/platform/errors',
  ],
  [
    'watsonx, model',
    'none',
    404,
    {
      errors: [
        {
          code: 'model_not_supported',
          message: 'Model x is not supported for this environment.',
        },
      ],
      trace: 't',
      status_code: 404,
    },
    'not_found',
    'ibm.com/docs watsonx.ai API',
  ],
  ['Bedrock, the model failed', 'none', 424, { message: 'x' }, 'upstream', 'ModelErrorException'],
  [
    'SiliconFlow, balance',
    'none',
    403,
    { code: 30001, message: 'Sorry, your account balance is insufficient', data: null },
    'billing',
    'docs.siliconflow.cn/en/faqs/error-code',
  ],
  [
    'Bedrock, payment',
    'none',
    403,
    {
      message:
        'Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided.. Your AWS Marketplace subscription for this model cannot be completed at this time.',
    },
    'billing',
    'docs.aws.amazon.com/bedrock',
  ],
  [
    'Azure, no capacity',
    'azure',
    429,
    e('The service is temporarily unable to process your request. Please try again later.', {
      code: 'NoCapacity',
    }),
    'overloaded',
    'learn.microsoft.com/azure/ai-foundry',
  ],
  [
    'OpenAI, flex',
    'openai-chat',
    429,
    e('Resource unavailable', { code: 'resource_unavailable' }),
    'overloaded',
    'platform.openai.com/docs/guides/flex-processing',
  ],
  [
    'New API, full',
    'none',
    429,
    e('当前分组上游负载已饱和，请稍后再试', { type: 'new_api_error' }),
    'overloaded',
    'QuantumNous/new-api',
  ],
  [
    'New API, words',
    'none',
    400,
    e('sensitive words detected', { type: 'new_api_error', code: 'sensitive_words_detected' }),
    'content_filter',
    'QuantumNous/new-api',
  ],
  [
    'LiteLLM, budget',
    'none',
    400,
    e('Budget has been exceeded! Current cost: 10.2, Max budget: 10.0', {
      type: 'budget_exceeded',
      code: '400',
    }),
    'quota',
    'BerriAI/litellm litellm/exceptions.py',
  ],
  [
    'StepFun',
    'none',
    451,
    e('The request you input or the content generated has been blocked due to sensitive content', {
      type: 'censorship_blocked',
    }),
    'content_filter',
    'platform.stepfun.com',
  ],
  [
    'Portkey',
    'none',
    446,
    e('The guardrail checks defined in the config failed.', { type: 'hooks_failed' }),
    'content_filter',
    'portkey.ai/docs',
  ],
  [
    'any verb',
    'none',
    400,
    e("Prompt is longer than the model's context window"),
    'context_overflow',
    PI,
  ],
  [
    'no article',
    'none',
    400,
    e('messages exceed the model context window'),
    'context_overflow',
    PI,
  ],
  [
    'GitHub Models',
    'none',
    413,
    e('Request body too large for gpt-5-mini model. Max size: 4000 tokens.', {
      code: 'tokens_limit_reached',
    }),
    'context_overflow',
    'docs.github.com/github-models',
  ],
  [
    'Vertex AI',
    'google-gemini',
    400,
    google(
      400,
      'Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. Reduce the input token count and try again.',
      'INVALID_ARGUMENT',
    ),
    'context_overflow',
    'cloud.google.com api-errors',
  ],
  [
    'LM Studio n_keep',
    'lmstudio',
    400,
    { error: 'Cannot truncate prompt with n_keep (9012) >= n_ctx (4096)' },
    'context_overflow',
    'openclaw/openclaw#30056',
  ],
  [
    'SiliconFlow length',
    'siliconflow',
    400,
    {
      code: 20015,
      message: 'length of prompt_tokens (131073) must be less than max_seq_len (131072).',
      data: null,
    },
    'context_overflow',
    'docs.siliconflow.cn error-code',
  ],
  [
    'Qianfan',
    'none',
    400,
    { error_code: 336007, error_msg: 'the max input characters is 8000' },
    'context_overflow',
    'cloud.baidu.com qianfan-api',
  ],
  [
    'Qianfan v2',
    'none',
    400,
    e('Prompt tokens too long', { code: 'tokens_too_long', type: 'invalid_request_error' }),
    'context_overflow',
    'cloud.baidu.com qianfan-api',
  ],
  [
    'a relay, wrapped once more',
    'none',
    400,
    {
      type: 'error',
      error: {
        type: 'request_fail',
        upstream_error: anthropic(
          'invalid_request_error',
          'prompt is too long: 213462 tokens > 200000 maximum',
        ),
      },
    },
    'context_overflow',
    'ding113/claude-code-hub#518',
  ],
  [
    'Anthropic, long context',
    'anthropic',
    429,
    anthropic('rate_limit_error', 'Extra usage is required for long context requests.'),
    'too_large',
    'openclaw troubleshooting',
  ],
  [
    'New API token',
    'none',
    403,
    e('该令牌额度已用尽 TokenStatusExhausted[sk-x***x]', { type: 'new_api_error' }),
    'quota',
    'QuantumNous/new-api model/token.go',
  ],
  [
    'New API user',
    'none',
    403,
    e('用户额度不足, 剩余额度: $0.00', { type: 'new_api_error', code: 'insufficient_user_quota' }),
    'quota',
    'QuantumNous/new-api',
  ],
  [
    'New API reserve',
    'none',
    403,
    e('pre-consume token quota failed', { code: 'pre_consume_token_quota_failed' }),
    'quota',
    'QuantumNous/new-api',
  ],
  [
    'One API',
    'none',
    403,
    e('user quota is not enough', { code: 'insufficient_user_quota' }),
    'quota',
    'songquanpeng/one-api',
  ],
  [
    'Perplexity',
    'none',
    401,
    e('You exceeded your current quota, please check your plan and billing details.', {
      type: 'insufficient_quota',
      code: 401,
    }),
    'quota',
    'docs.perplexity.ai errors',
  ],
  [
    'Gemini spending cap',
    'google-gemini',
    429,
    google(
      429,
      'Your project has exceeded its monthly spending cap. Please go to AI Studio at https://ai.studio/spend to manage your project spend cap.',
      'RESOURCE_EXHAUSTED',
    ),
    'quota',
    'ai.studio/spend',
  ],
  [
    'Cohere trial',
    'none',
    429,
    { message: 'You are using a Trial key, which is limited to 1000 API calls / month.' },
    'quota',
    'docs.cohere.com rate-limits',
  ],
  [
    'Cohere trial, a minute',
    'none',
    429,
    { message: 'You are using a Trial key, which is limited to 20 API calls / minute.' },
    'rate_limit',
    'docs.cohere.com rate-limits',
  ],
  [
    'Copilot',
    'none',
    400,
    e('The requested model is not supported.', {
      code: 'model_not_supported',
      param: 'model',
      type: 'invalid_request_error',
    }),
    'not_found',
    'github/gh-aw',
  ],
  [
    'OpenAI, invalid id',
    'openai-chat',
    400,
    invalid('invalid model ID'),
    'not_found',
    'community.openai.com',
  ],
  [
    'New API channel',
    'none',
    503,
    e('当前分组 default 下对于模型 gpt-9 无可用渠道', { type: 'new_api_error' }),
    'not_found',
    'QuantumNous/new-api',
  ],
  [
    'Vertex AI project',
    'google-gemini',
    400,
    google(400, 'Project `123` not allowed to use Publisher Model `x`', 'FAILED_PRECONDITION'),
    'not_found',
    'cloud.google.com api-errors',
  ],
  [
    'SiliconFlow disabled',
    'siliconflow',
    403,
    { code: 30003, message: 'Model disabled.', data: null },
    'not_found',
    'docs.siliconflow.cn error-code',
  ],
  [
    'Cohere, removed',
    'none',
    400,
    { message: "model 'command' was removed on September 15, 2025." },
    'not_found',
    'docs.cohere.com deprecations',
  ],
  [
    'LiteLLM name',
    'none',
    400,
    e(
      '/chat/completions: Invalid model name passed in model=gpt-9. Call `/v1/models` to view available models for your key.',
      { code: '400' },
    ),
    'not_found',
    'BerriAI/litellm route_llm_request.py',
  ],
  [
    'LiteLLM team',
    'none',
    401,
    e(
      "team not allowed to access model. This team can only access models=['x']. Tried to access gpt-9",
      { type: 'team_model_access_denied', param: 'model', code: '401' },
    ),
    'not_found',
    'BerriAI/litellm _types.py',
  ],
  [
    'LiteLLM filter',
    'none',
    400,
    e(
      'litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered',
      { code: '400' },
    ),
    'content_filter',
    'BerriAI/litellm#16231',
  ],
  [
    'Ark input',
    'doubao',
    400,
    e('The request failed because the input text may contain sensitive information.', {
      code: 'InputTextSensitiveContentDetected',
      type: 'BadRequest',
    }),
    'content_filter',
    'volcengine.com/docs/82379/1299023',
  ],
  [
    'Ark output',
    'none',
    400,
    e('The request failed because the output text may contain sensitive information.', {
      code: 'OutputTextSensitiveContentDetected',
    }),
    'content_filter',
    'volcengine.com/docs/82379/1299023',
  ],
  [
    'OpenAI, cyber',
    'openai-chat',
    400,
    invalid(
      'This content was flagged for possible cybersecurity risk. If this seems wrong, try rephrasing your request.',
      'cyber_policy',
    ),
    'content_filter',
    'openai-ruby SessionTurnError',
  ],
  [
    'Cloud Code',
    'google-gemini',
    429,
    google(
      429,
      'No capacity available for model gemini-3.1-pro-preview on the server',
      'RESOURCE_EXHAUSTED',
    ),
    'overloaded',
    'google-gemini/gemini-cli',
  ],
  [
    'New API load',
    'none',
    500,
    e('当前模型负载已经达到上限，请稍后重试', {
      type: 'new_api_error',
      code: 'get_channel_failed',
    }),
    'overloaded',
    'QuantumNous/new-api',
  ],
];

/** What a client may write, and a vendor quotes when it refuses the request for another reason. */
const QUOTED = [
  'prompt is too long',
  'API key expired. Please renew the API key.',
  'You have reached your specified API usage limits',
  'the model `x` does not exist',
  'insufficient_quota',
  'User location is not supported',
  'content_filter',
  'Rate limit reached',
];

const ALL = [...OVERFLOWS, ...KEYS, ...ACCOUNTS, ...MODELS, ...OTHERS, ...MORE];
const NO_HEADERS = new Headers();

describe.each(Object.values(CODECS).map((codec) => [codec.name, codec] as const))(
  'read by %s',
  (_, codec) => {
    test.each(ALL)('%s: its words decide the kind', (_who, profile, status, body, kind) => {
      if (status === 200) return;
      const read = codec.decodeError(status, JSON.stringify(body), NO_HEADERS);
      expect([vendorError(PROFILES[profile]!, read).kind, read.fromUpstream]).toEqual([kind, true]);
      // A provider that names no profile says the same.
      expect(vendorError(PROFILES.none!, read).kind).toBe(kind);
    });

    test.each(QUOTED)('%s: quoted from the request, it decides nothing', (words) => {
      for (const message of [
        `Invalid value for 'messages[0].content': "${words}"`,
        `1 validation error: input_value='${words}', input_type=str`,
        `Unexpected value at contents[0]: {"text": "${words}"}`,
      ]) {
        const body = JSON.stringify(invalid(message));
        expect(codec.decodeError(400, body, NO_HEADERS).kind).toBe('invalid_request');
      }
    });
  },
);

// https://github.com/vertesia/llumiverse/pull/467, https://github.com/google-gemini/gemini-cli/issues/20309
test.each(Object.values(CODECS))(
  '$name: a request that Google cancels under load is asked again',
  (codec) => {
    const body = JSON.stringify(google(499, 'The operation was cancelled.', 'CANCELLED'));
    const error = vendorError(PROFILES.none!, codec.decodeError(499, body, NO_HEADERS));
    expect(error.status).toBeGreaterThanOrEqual(500);
    expect(remedyForStatus(499, error, NO_HEADERS)).toBe('again');
  },
);

describe('a kind has one remedy, whatever status it comes with', () => {
  const REMEDIES: Readonly<Partial<Record<ErrorKind, string>>> = {
    context_overflow: 'wider',
    too_large: 'wider',
    authentication: 'next-key',
    permission: 'next-key',
    quota: 'next-key',
    billing: 'next-key',
    not_found: 'next-target',
    content_filter: 'never',
    invalid_request: 'never',
    rate_limit: 'again',
    overloaded: 'again',
    upstream: 'again',
  };
  test.each(ALL)('%s', (_who, profile, status, body, kind) => {
    const chat = CODECS['openai-chat'];
    const read = chat.decodeError(status, JSON.stringify(body), NO_HEADERS);
    const error = vendorError(PROFILES[profile]!, read);
    expect(error.kind).toBe(kind);
    const remedy = REMEDIES[kind] as never;
    for (const at of [400, 401, 402, 403, 404, 413, 422, 429]) {
      expect(remedyForStatus(at, error, NO_HEADERS)).toBe(remedy);
    }
    expect(remedyForError(error)).toBe(remedy);
  });
});

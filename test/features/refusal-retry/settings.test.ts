/** A refusal of a setting is mended at that place: asked once more, and remembered, in the words of every vendor. */

import { describe, expect, test } from 'bun:test';
import { restsIn } from '../../../src/cli/running-gateway.ts';
import type { ProviderConfig } from '../../../src/config/sections/providers.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { Profile } from '../../../src/conversation/profile-facts.ts';
import { historyRefusal } from '../../../src/conversation/refusal/refusal.ts';
import { refusalRetry } from '../../../src/features/refusal-retry/index.ts';
import { vendorFit } from '../../../src/features/vendor-fit/index.ts';
import { canLearnFrom, learntFacts } from '../../../src/gateway/tries/learnt-targets.ts';
import type { JsonObject } from '../../../src/lib/json/json.ts';
import { type Scripted, scriptedGateway } from '../../gateway/scripted.ts';
import type { SuiteProtocol as ProtocolName } from '../../support/suite-protocols.ts';

type Row = readonly [
  source: string,
  message: string,
  /** Undefined: nothing may be changed. */
  learnt: { facts?: Partial<Profile>; paths?: string; once?: boolean } | undefined,
  more?: { param?: string; code?: string; status?: number; kind?: 'context_overflow' },
];

const cap = (maxOutput: number) => ({ facts: { maxOutput } });
const room = (maxOutput: number) => ({ facts: { maxOutput }, once: true });
const efforts = (...list: readonly string[]) => ({
  facts: { efforts: list as Profile['efforts'] },
});
const NO_REASONING = { facts: { reasoningParam: 'none' } } as const;
const SCHEMAS = { facts: { looseSchemas: false, rootUnions: false } } as const;
const ONLY_STREAMS = { facts: { streams: 'always' } } as const;
const names = (maxToolName: number) => ({ facts: { maxToolName } });
const overflow = { kind: 'context_overflow' } as const;

const ROWS: readonly Row[] = [
  // What may be streamed.
  [
    'DashScope, https://github.com/infiniflow/ragflow/issues/5912',
    'This model only support stream mode, please enable the stream parameter to access the model. ',
    ONLY_STREAMS,
  ],
  [
    'DashScope, https://github.com/QuantumNous/new-api/pull/1109',
    'parameter.enable_thinking must be set to false for non-streaming calls',
    ONLY_STREAMS,
  ],
  [
    'DashScope, https://github.com/alibaba/spring-ai-alibaba/issues/867',
    'parameter.enable_thinking必须设置为false才能进行非流式调用',
    ONLY_STREAMS,
  ],
  [
    'ModelScope, https://github.com/musistudio/claude-code-router/issues/948',
    'enable thinking can not be support when `stream=False`.',
    ONLY_STREAMS,
  ],
  ['Codex, by its own address', 'Stream must be set to true', ONLY_STREAMS],
  [
    'OpenAI, https://github.com/charmbracelet/crush/issues/422',
    'Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.',
    { facts: { streams: 'never' }, once: true },
    { param: 'stream', code: 'unsupported_value' },
  ],
  [
    'OpenAI, https://github.com/chathub-dev/chathub/issues/1294',
    "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.",
    { facts: { streams: 'never' } },
    { param: 'stream', code: 'unsupported_value' },
  ],
  [
    'Bedrock, https://github.com/earendil-works/pi/issues/3739',
    "This model doesn't support tool use in streaming mode.",
    { facts: { streams: 'never' }, once: true },
  ],
  // Names of tools.
  [
    'xAI through OpenCode, https://github.com/can1357/oh-my-pi/issues/7970',
    'invalid request: invalid tools in request: custom function name "web_search" is reserved',
    { facts: { reservedTools: ['web_search'] } },
  ],
  [
    'xAI, https://github.com/NousResearch/hermes-agent/issues/95003',
    'The function name tool_search is reserved for the tool_search tool',
    { facts: { reservedTools: ['tool_search'] } },
  ],
  [
    'Perplexity, https://github.com/anomalyco/opencode/issues/34468',
    'invalid request: invalid tools in request: custom function name "bash" is reserved',
    { facts: { reservedTools: ['bash'] } },
  ],
  [
    'DashScope, https://github.com/Aas-ee/open-webSearch/issues/21',
    '<400> InternalError.Algo.InvalidParameter: Tool names are not allowed to be [search]',
    { facts: { reservedTools: ['search'] } },
  ],
  // Schemas of tools that a server makes a grammar of.
  ...[
    [
      'llama.cpp, https://github.com/QwenLM/qwen-code/issues/10520',
      'Failed to initialize samplers: failed to parse grammar',
    ],
    [
      'llama.cpp, https://github.com/containers/kubernetes-mcp-server/issues/758',
      "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
    ],
    ['vLLM, xgrammar', 'Grammar error: Unimplemented keys: ["propertyNames"]'],
  ].map(([source, message]) => [source!, message!, { facts: { schemaBounds: false } }] as const),
  [
    'Vertex AI, https://github.com/unclecode/crawl4ai/issues/1311',
    "Unable to submit request because `md` functionDeclaration `parameters.f` schema didn't specify the schema type field. Learn more: https://cloud.google.com/vertex-ai",
    { facts: { looseSchemas: false } },
  ],
  [
    'Vertex AI, of a union beside other keywords',
    'Unable to submit request because `read` functionDeclaration `parameters.limit` schema specified other fields alongside any_of. When using any_of, it must be the only field set.',
    { facts: { looseSchemas: false } },
  ],
  [
    'Google, of a list that does not say what it holds',
    '* GenerateContentRequest.tools[0].function_declarations[3].parameters.properties[x].items: missing field.',
    { facts: { looseSchemas: false } },
  ],
  [
    'MiniMax, https://github.com/QwenLM/qwen-code/issues/11834',
    'invalid params, function parameters is empty (2013)',
    { facts: { looseSchemas: false } },
  ],
  [
    'MiniMax, https://github.com/CherryHQ/cherry-studio/issues/16431',
    'invalid params, invalid thinking.type: "enabled" (allowed: adaptive, disabled) (2013)',
    { facts: { budgetThinking: false, adaptiveThinking: true } },
  ],
  [
    'OpenAI; vLLM as OpenAI, https://github.com/vllm-project/vllm/pull/39780',
    "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    { paths: 'tools', once: true },
  ],
  ['OpenAI before that', "[] is too short - 'tools'", { paths: 'tools', once: true }],
  [
    'OpenAI, https://github.com/openai/swarm/issues/30, https://github.com/pydantic/pydantic-ai/pull/4935',
    "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
    { paths: 'parallel_tool_calls', once: true },
  ],
  [
    'OpenAI, https://github.com/vybestack/llxprt-code/issues/2853, https://github.com/NousResearch/hermes-agent/issues/62063',
    "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 69 instead.",
    { paths: 'prompt_cache_key', once: true },
  ],
  [
    'Google, of the schema of an answer',
    'The specified schema produces a constraint that has too many states for serving.',
    { facts: { jsonSchema: false }, once: true },
  ],
  [
    'Anthropic, https://github.com/anthropics/claude-code/issues/11971',
    '`clear_thinking_20251015` strategy requires `thinking` to be enabled',
    { paths: 'context_management', once: true },
  ],
  [
    'Google, https://github.com/vellum-ai/vellum-assistant/pull/32687',
    'Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.',
    efforts('low', 'medium', 'high'),
  ],
  [
    'Vertex AI, https://github.com/can1357/oh-my-pi/issues/10543',
    'Thinking level is unsupported: THINKING_LEVEL_MINIMAL',
    efforts('low', 'medium', 'high'),
  ],
  [
    'OpenAI, https://github.com/microsoft/vscode/issues/243602',
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 71 instead.",
    names(64),
  ],
  [
    'DeepSeek, https://github.com/nikkigallery/Whimbox/issues/59',
    "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    names(64),
  ],
  [
    'Anthropic, https://github.com/anthropics/claude-code/issues/2485',
    'tools.63.custom.name: String should have at most 64 characters',
    names(64),
  ],
  [
    'Anthropic, https://github.com/anthropics/claude-code/issues/96152',
    'tools.18.custom.name: String should have at most 128 characters',
    names(128),
  ],
  [
    'Anthropic, https://github.com/anthropics/claude-code/issues/20830',
    'messages.63.content.0.tool_result.content.0.tool_reference.tool_name: String should have at most 64 characters',
    names(64),
  ],
  [
    'Anthropic',
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    names(128),
  ],
  [
    'GLM, https://github.com/mcp-router/mcp-router/issues/100',
    '工具名称过长，请检查: mcp__mcp-router__mcp-router__mcp-shrimp-task-manager__analyze_task',
    names(64),
  ],
  [
    'GLM, https://github.com/hanlulong/stata-mcp/issues/48',
    'Tool name too long, please check: mcp__stata-mcp__stata_run_selection_stream_endpoint_run_selection_stream_get',
    names(64),
  ],
  [
    'Google, https://github.com/CherryHQ/cherry-studio/issues/4087',
    '* GenerateContentRequest.tools[0].function_declarations[9].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64.\n',
    names(64),
  ],
  [
    'Mistral, https://github.com/Kochava-Studios/witsy/pull/164',
    'Function name was add_newam_task_with_due_date___8c498bee-e833-49a9-8a88-0ab59fa26cb8 but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.',
    names(64),
  ],
  [
    'Kimi, https://github.com/MoonshotAI/kimi-cli/issues/1773',
    'function name is invalid, must start with a letter and can contain letters, numbers, underscores, and dashes',
    names(64),
  ],
  [
    'Bedrock, https://github.com/openclaw/openclaw/issues/12892',
    "2 validation errors detected: Value at 'messages.73.member.content.2.member.toolUse.name' failed to satisfy constraint: Member must have length less than or equal to 64; Value at 'messages.73.member.content.2.member.toolUse.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
    names(64),
  ],
  [
    'a name of something else',
    "Invalid 'response_format.json_schema.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    undefined,
  ],
  [
    'the name of a speaker',
    "Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.",
    undefined,
  ],
  [
    'DeepSeek, https://github.com/decolua/9router/pull/3333',
    'Tool names must be unique.',
    { facts: { uniqueTools: true } },
  ],
  ['Google', 'Duplicate function declaration found: read_file', { facts: { uniqueTools: true } }],
  [
    'Google, https://github.com/0xPlaygrounds/rig/issues/788',
    'Developer instruction is not enabled for models/gemma-3-27b-it',
    { facts: { instructions: false } },
  ],
  // What the models of autumn 2026 say.
  [
    'OpenAI, https://github.com/BerriAI/litellm/pull/34569',
    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    { facts: { chatToolsWhileThinking: false } },
    { param: 'reasoning_effort' },
  ],
  [
    'OpenAI, https://github.com/pipecat-ai/pipecat/issues/4043',
    'Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.',
    { facts: { chatToolsWhileThinking: false } },
    { param: 'reasoning_effort' },
  ],
  [
    'Anthropic, https://github.com/can1357/oh-my-pi/issues/12939',
    'tool_choice: type "tool" and "any" are not supported for this model.',
    { facts: { toolChoices: ['auto', 'none'] } },
  ],
  [
    'Anthropic, https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5',
    '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    { facts: { thinkingDefault: 'always' } },
  ],
  [
    'Anthropic, https://platform.claude.com/docs/en/models/sonnet-5-5/whats-new-sonnet-5-5',
    '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" instead.',
    { facts: { thinkingOff: 'between_tools' } },
  ],
  [
    'DeepSeek Messages, https://github.com/openclaw/openclaw/issues, every address /anthropic',
    'The `content[].thinking` in the thinking mode must be passed back to the API.',
    { facts: { reasoningReplay: 'calls', anySignature: true, thinkingDefault: 'on' } },
  ],
  ['Google, gemini-2.5-flash', 'Thinking level is not supported for this model.', NO_REASONING],
  // Output caps.
  [
    'DeepSeek, https://github.com/deepseek-ai/DeepSeek-V3/issues/69',
    'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]',
    cap(8192),
  ],
  [
    'DashScope, https://github.com/open-webui/open-webui/issues/10507',
    '<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]',
    cap(8192),
  ],
  [
    'OpenAI Chat, https://github.com/enoch3712/ExtractThinker/issues/346',
    'max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.',
    cap(16_384),
    { param: 'max_tokens' },
  ],
  [
    'OpenAI Responses',
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 32000 instead.",
    cap(16_384),
    { param: 'max_output_tokens', code: 'integer_above_max_value' },
  ],
  [
    'Groq, https://github.com/khoj-ai/khoj/issues/1236',
    '`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model',
    cap(8192),
    { param: 'max_completion_tokens' },
  ],
  [
    'Groq, https://github.com/skapadia3214/groq-moa/issues/8',
    'max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000',
    cap(8000),
  ],
  [
    'Anthropic, https://github.com/Effect-TS/effect/pull/7129',
    'max_tokens: 9999999 > 128000, which is the maximum allowed number of output tokens for claude-opus-4-8',
    cap(128_000),
  ],
  [
    'Bedrock, https://github.com/vercel/ai/issues/2772',
    'The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.',
    cap(4096),
  ],
  [
    'Bedrock, https://github.com/charmbracelet/crush/issues/946',
    'The maximum tokens you requested exceeds the model limit of 32768',
    cap(32_768),
  ],
  [
    'Bedrock, https://github.com/RooCodeInc/Roo-Code/issues/248',
    'The maximum tokens you requested exceed the model limit of 4096. Try again with a maximum tokens value lower than 4096.',
    cap(4096),
  ],
  [
    'BytePlus, https://github.com/yiliqi78/TOKENICODE/issues/3',
    'The parameter max_tokens specified in the request is not valid: integer above maximum value, expected a value <= 32768, but got 64000 instead. Request id: 0217724325966514087c9e55f8b322b82cd17f72450d06e16ef7b',
    cap(32_768),
    { param: 'max_tokens', code: 'InvalidParameter' },
  ],
  [
    'Volcengine, https://github.com/xuanyustudio/LocalMiniDrama/issues/39',
    'The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 16384 instead. Request id: 021787281042180b566464da517b102b4cb09cdfd60e7ee3d23dd',
    cap(12_288),
  ],
  [
    "JSON Schema's words, as Bedrock has them for other fields",
    'Malformed input request: #/inferenceConfig/maxTokens: 32000 is not less or equal to 5120, please reformat your input and try again.',
    cap(5120),
  ],
  [
    'Vertex, https://github.com/BerriAI/litellm/pull/10548',
    'Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.',
    cap(65_536),
  ],
  [
    'Cohere, https://docs.cohere.com/v1/reference/errors.md',
    'too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.',
    cap(4096),
  ],
  [
    'Zhipu names no limit, https://github.com/lobehub/lobehub/issues/1398',
    'max_tokens参数非法。请检查文档。',
    undefined,
    { code: '1214' },
  ],
  ['in Chinese', 'max_tokens 参数非法，取值范围[1,98304]', cap(98_304)],
  ['pydantic', 'body.max_tokens: Input should be less than or equal to 8192', cap(8192)],
  ['in other words', 'max_tokens (32000) exceeds the maximum of 12288 for this model', cap(12_288)],
  ['in other words', 'max_tokens is limited to 8192', cap(8192)],
  [
    'Fireworks, https://github.com/nullclaw/nullclaw/pull/231',
    'Requests with max_tokens > 4096 must have stream=true',
    { facts: { streams: 'always' }, once: true },
  ],
  [
    'OpenRouter, https://github.com/can1357/oh-my-pi/issues/9569',
    'This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 12345. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account',
    { facts: { maxOutput: 12_345, defaultMaxTokens: 12_345 }, once: true },
    { status: 402 },
  ],
  ['too small to be a cap', 'max_tokens must be less than or equal to 0', undefined],
  [
    'a window is no cap',
    "This model's maximum context length is 8192 tokens. Please reduce max_tokens.",
    undefined,
  ],
  // The window less the prompt.
  [
    'vLLM, https://github.com/farion1231/cc-switch/issues/1022',
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 17459 input tokens (32000 > 32768 - 17459). (parameter=max_tokens, value=32000)",
    room(15_309),
    { param: 'max_tokens' },
  ],
  [
    'DeepSeek',
    "This model's maximum context length is 102400 tokens. However, you requested 102772 tokens (70772 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.",
    room(31_628),
    overflow,
  ],
  [
    'OpenRouter',
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (100000 of text input, 8000 of tool input, 32000 in the output). Please reduce the length of either one.",
    room(23_072),
    overflow,
  ],
  [
    'SGLang',
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens for the completion.",
    room(7192),
    overflow,
  ],
  [
    'TGI, text-generation-inference router/src/validation.rs',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 4120 `inputs` tokens and 5000 `max_new_tokens`',
    room(4073),
  ],
  [
    'Anthropic',
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    room(11_760),
    overflow,
  ],
  [
    'no room for an answer',
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7500 in the messages, 1500 in the completion).",
    undefined,
    overflow,
  ],
  ['the prompt alone', 'prompt is too long: 205351 tokens > 200000 maximum', undefined, overflow],
  // Reasoning.
  [
    'OpenAI',
    "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    NO_REASONING,
    { param: 'reasoning.effort', code: 'unsupported_parameter' },
  ],
  ['by the param alone', 'This is not supported.', NO_REASONING, { param: 'reasoning_effort' }],
  ['Groq', '`reasoning_effort` is not supported with this model', NO_REASONING],
  [
    'xAI, https://github.com/chenyme/grok2api/issues/814',
    'Model grok-4.20-0309-reasoning does not support parameter reasoningEffort.',
    NO_REASONING,
  ],
  [
    'Ollama',
    '"llama3.2" does not support thinking',
    { facts: { reasoningParam: 'none', thinkingDefault: 'off' } },
  ],
  [
    'Google',
    'Thinking is not enabled for models/gemini-2.0-flash',
    { facts: { reasoningParam: 'none', thinkingDefault: 'off' } },
  ],
  [
    'OpenAI, https://github.com/Kilo-Org/cloud/pull/3807',
    "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
    efforts('minimal', 'low', 'medium', 'high'),
  ],
  [
    'OpenAI Responses',
    "Invalid value: 'max'. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.",
    efforts('none', 'low', 'medium', 'high', 'xhigh'),
    { param: 'reasoning.effort', code: 'invalid_value' },
  ],
  ['Groq', '`reasoning_effort` must be one of `none` or `default`', efforts('none')],
  [
    'Groq',
    '`reasoning_effort` must be one of `low`, `medium`, or `high`',
    efforts('low', 'medium', 'high'),
  ],
  [
    'Anthropic',
    "output_config.effort: Input should be 'low', 'medium', 'high' or 'max'",
    efforts('low', 'medium', 'high', 'max'),
  ],
  [
    'Ollama',
    `invalid reasoning value: 'xhigh' (must be "high", "medium", "low", "max", or "none")`,
    efforts('none', 'low', 'medium', 'high', 'max'),
  ],
  [
    'Google',
    'The thinking budget 0 is invalid. Budget 0 is invalid. This model only works in thinking mode.',
    { facts: { thinkingDefault: 'always' } },
  ],
  [
    'OpenRouter',
    'Reasoning is mandatory for this endpoint and cannot be disabled.',
    { facts: { thinkingDefault: 'always' } },
  ],
  [
    'Anthropic',
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    { facts: { budgetThinking: false, adaptiveThinking: true } },
  ],
  [
    'Anthropic',
    'adaptive thinking is not supported on this model',
    { facts: { adaptiveThinking: false } },
  ],
  [
    'Anthropic',
    'This model does not support the effort parameter.',
    { paths: 'output_config.effort' },
  ],
  [
    'OpenAI',
    'Your organization must be verified to generate reasoning summaries.',
    { paths: 'reasoning.summary' },
    { param: 'reasoning.summary', code: 'unsupported_value' },
  ],
  // Sampling.
  [
    'OpenAI',
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    { paths: 'temperature' },
    { param: 'temperature', code: 'unsupported_value' },
  ],
  [
    'OpenAI',
    "Unsupported parameter: 'top_p' is not supported with this model.",
    { paths: 'top_p' },
  ],
  ['Moonshot', 'invalid temperature: only 1 is allowed for this model', { paths: 'temperature' }],
  ['Anthropic', '`temperature` is deprecated for this model.', { paths: 'temperature' }],
  [
    'xAI',
    'Model grok-4-0709 does not support parameter presencePenalty.',
    { paths: 'presence_penalty' },
  ],
  [
    'OpenAI',
    "Unsupported parameter: 'logprobs' is not supported with this model.",
    { paths: 'logprobs' },
  ],
  [
    'Anthropic',
    '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    { facts: { temperatureWithTopP: false }, paths: 'top_p' },
  ],
  [
    'OpenAI',
    "Invalid 'temperature': decimal above maximum value. Expected a value <= 1.5, but got 2 instead.",
    { facts: { temperature: { min: 0, max: 1.5 } } },
  ],
  [
    'Mistral',
    'temperature: Input should be less than or equal to 1.5',
    { facts: { temperature: { min: 0, max: 1.5 } } },
  ],
  // Stops.
  [
    'OpenAI',
    "Unsupported parameter: 'stop' is not supported with this model.",
    { facts: { maxStops: 0 } },
  ],
  ['xAI', 'Argument not supported on this model: stop', { facts: { maxStops: 0 } }],
  [
    'OpenAI',
    "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
    { facts: { maxStops: 4 } },
  ],
  // Tool choices.
  [
    'Anthropic',
    'Thinking may not be enabled when tool_choice forces tool use.',
    { facts: { thinkingToolChoices: ['auto', 'none'] } },
  ],
  [
    'DashScope',
    'The tool_choice parameter does not support being set to required or object in thinking mode',
    { facts: { thinkingToolChoices: ['auto', 'none'] } },
  ],
  [
    'Moonshot',
    "tool_choice 'required' is incompatible with thinking enabled",
    { facts: { thinkingToolChoices: ['auto', 'none'] } },
  ],
  [
    'DeepSeek',
    'deepseek-reasoner does not support this tool_choice',
    { facts: { toolChoices: ['auto', 'none'] } },
  ],
  // Formats and names.
  ['DeepSeek', 'This response_format type is unavailable now', { facts: { jsonSchema: false } }],
  [
    'LM Studio, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189',
    "'response_format.type' must be 'json_schema' or 'text'",
    { facts: { jsonObject: false } },
  ],
  [
    'Groq',
    'This model does not support response format `json_schema`.',
    { facts: { jsonSchema: false } },
  ],
  [
    'OpenAI',
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    { facts: { maxTokensParam: 'max_completion_tokens' } },
    { param: 'max_tokens', code: 'unsupported_parameter' },
  ],
  // Schemas, roles and items.
  [
    'Anthropic, https://github.com/hyperdxio/hyperdx/pull/2925',
    'tools.14.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12',
    SCHEMAS,
  ],
  [
    'Anthropic, https://github.com/aliargun/mcp-server-gemini/issues/8',
    'tools.80.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level',
    SCHEMAS,
  ],
  [
    'OpenAI, https://github.com/ruvnet/ruflo/issues/1294',
    "Invalid schema for function 'ruflo_hooks_intelligence_learn': In context=('properties', 'trajectoryIds'), array schema missing items.",
    SCHEMAS,
    { param: 'tools[7].function.parameters', code: 'invalid_function_parameters' },
  ],
  [
    'DeepSeek, https://github.com/farion1231/cc-switch/issues/5490',
    "Invalid schema for function 'codex_app__automation_update': schema must be a JSON Schema of 'type: \"object\"', got 'type: null'.",
    SCHEMAS,
  ],
  [
    'an output format is no tool',
    "Invalid schema for response_format 'x': In context=(), 'additionalProperties' is required to be supplied and to be false.",
    undefined,
    { param: 'response_format' },
  ],
  [
    'DeepSeek',
    'Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`',
    { facts: { developerRole: false } },
  ],
  [
    "JSON Schema's words",
    "'developer' is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.0.role'",
    { facts: { developerRole: false } },
  ],
  [
    'OpenAI',
    "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
    { facts: { developerRole: false } },
    { param: 'messages[0].role' },
  ],
  [
    'Kimi Code, https://github.com/MoonshotAI/kimi-code/issues/2852; DeepSeek',
    'Invalid assistant message: content or tool_calls must be set',
    { facts: { emptyReplies: false } },
  ],
  [
    'Mistral, https://github.com/OpenHands/OpenHands/issues/10869',
    "At least one content or tool_calls should be non-empty. Got content='' and tool_calls=[]",
    { facts: { emptyReplies: false } },
  ],
  [
    'Vertex AI, https://github.com/QuantumNous/new-api/issues/2975',
    'Unexpected value(s) `prompt-caching-scope-2026-01-05`, `structured-outputs-2025-12-15` for the `anthropic-beta` header. Please consult our documentation at docs.anthropic.com or try again without the header.',
    {
      facts: { refusedBetas: ['prompt-caching-scope-2026-01-05', 'structured-outputs-2025-12-15'] },
    },
  ],
  [
    'Anthropic, https://github.com/anthropics/claude-code/issues/27944',
    'The long context beta is not yet available for this subscription.',
    { facts: { refusedBetas: ['context-1m-*'] } },
  ],
  [
    'Anthropic',
    'This authentication style is incompatible with the long context beta header.',
    { facts: { refusedBetas: ['context-1m-*'] } },
  ],
  [
    'Bedrock, https://github.com/anthropics/claude-code/issues/49370',
    'invalid beta flag',
    { facts: { betas: ['interleaved-thinking-*'] } },
  ],
  [
    'Moonshot, https://github.com/AstrBotDevs/AstrBot/issues/7200',
    "Invalid request: the message at position 8 with role 'assistant' must not be empty",
    { facts: { emptyReplies: false } },
  ],
  [
    'Mistral',
    'Assistant message must have either content or tool_calls, but not none.',
    { facts: { emptyReplies: false } },
  ],
  [
    'OpenAI, https://github.com/openai/codex/issues/33011',
    "[ApiIdParam] [input[13].id] [invalid_id_prefix] Invalid 'input[13].id': 'review_rollout_user'. Expected an ID that begins with 'msg'.",
    { paths: 'input.*.id', once: true },
  ],
  [
    'OpenAI, https://github.com/openai/codex/issues/39133',
    "Invalid 'input[1943].id': string too long. Expected a string with maximum length 64, but got a string with length 74 instead.",
    { paths: 'input.*.id', once: true },
    { param: 'input[1943].id', code: 'string_above_max_length' },
  ],
  [
    'Anthropic, https://github.com/farion1231/cc-switch/issues/991',
    "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'enabled', 'disabled'",
    { facts: { adaptiveThinking: false } },
  ],
  // What holds only while the model reasons.
  [
    'Anthropic',
    '`temperature` may only be set to 1 when thinking is enabled.',
    { paths: 'temperature', once: true },
  ],
  [
    'Anthropic',
    '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.',
    { paths: 'top_p', once: true },
  ],
  ['Google', 'Penalty is not enabled for models/gemini-2.5-flash', { paths: 'presence_penalty' }],
  ['Google', 'Logprobs is not enabled for models/gemini-2.5-flash', { paths: 'logprobs' }],
  // One client's mistake, which must teach nothing about the target.
  [
    'OpenAI',
    "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    undefined,
    { param: 'tool_choice' },
  ],
  ['vLLM', "Invalid tool_choice: the tool 'f' is not among the tools.", undefined],
  // Not about a setting that can go.
  ['a word of prose', 'Your request was not supported. Please stop.', undefined],
  [
    'a message',
    "Invalid value: 'foo'. Supported values are: 'system', 'user'.",
    undefined,
    { param: 'messages[0].role' },
  ],
  ['the model', 'The model `gpt-9` is not supported.', undefined, { param: 'model' }],
  ['tools', 'tools is not supported in this model. Reasoning does not matter.', undefined],
  [
    'not a refusal of the request',
    'Unsupported parameter: temperature',
    undefined,
    { status: 401 },
  ],
];

test.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'a server that cannot make a grammar of the tools gets them without patterns, from then on: %s',
  async (client) => {
    const parameters = {
      type: 'object',
      properties: { to: { type: 'string', pattern: '^\\\\d+' } },
    };
    const tools = {
      'openai-chat': [{ type: 'function', function: { name: 'send', parameters } }],
      'openai-responses': [{ type: 'function', name: 'send', parameters }],
      'anthropic-messages': [{ name: 'send', input_schema: parameters }],
    }[client];
    const asked =
      client === 'openai-responses'
        ? { input: 'x' }
        : { messages: [{ role: 'user', content: 'x' }] };
    const body = { model: 'm', max_tokens: 99, tools, ...asked };
    const message = 'Failed to initialize samplers: failed to parse grammar';
    const json = { error: { code: 400, message, type: 'invalid_request_error' } };
    const fine = {
      json: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          { index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' },
        ],
      },
    };
    const gateway = scriptedGateway(
      'openai-chat',
      [{ status: 400, json }, fine, fine],
      [refusalRetry(), vendorFit()],
    );
    for (let i = 0; i < 2; i++) expect((await gateway.ask(client, body)).status).toBe(200);
    expect(gateway.sent.map((sent) => JSON.stringify(sent).includes('pattern'))).toEqual([
      true,
      false,
      false,
    ]);
    expect(JSON.stringify(gateway.sent[2])).toContain('"to"');
  },
);

describe('the words of vendors', () => {
  test.each(ROWS)('%s: %s', (_source, message, learnt, { kind, status = 400, ...more } = {}) => {
    const type = kind ?? (status === 401 ? 'authentication' : 'invalid_request');
    const refusal = historyRefusal(
      new GatewayError(type, message, { status, fromUpstream: true, ...more }),
    );
    if (learnt === undefined) return expect(refusal).toBeUndefined();
    expect(refusal?.kind).toBe('setting');
    if (refusal?.kind !== 'setting') return;
    expect(refusal.facts).toEqual(learnt.facts as never);
    expect(refusal.paths?.[0]?.join('.')).toBe(learnt.paths as never);
    expect(refusal.once ?? false).toBe(learnt.once ?? false);
  });
});

const fine: Scripted = {
  json: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  },
};
const refuse = (message: string, more: JsonObject = {}): Scripted => ({
  status: 400,
  json: { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } },
});
const asked: Readonly<Record<ProtocolName, JsonObject>> = {
  'anthropic-messages': {
    model: 'm',
    max_tokens: 32_000,
    thinking: { type: 'enabled', budget_tokens: 10_000 },
    messages: [{ role: 'user', content: 'x' }],
  },
  'openai-chat': {
    model: 'm',
    max_tokens: 32_000,
    reasoning_effort: 'high',
    messages: [{ role: 'user', content: 'x' }],
  },
  'openai-responses': {
    model: 'm',
    max_output_tokens: 32_000,
    reasoning: { effort: 'high' },
    input: 'x',
  },
};
const CLIENTS = Object.keys(asked) as ProtocolName[];
const FEATURES = [refusalRetry(), vendorFit()];

describe('a strict vendor', () => {
  test.each(CLIENTS)(
    '%s: refuses, gets what it takes, and the next request does not fail first',
    async (client) => {
      const gateway = scriptedGateway(
        'openai-chat',
        [
          refuse('Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'),
          fine,
          fine,
        ],
        FEATURES,
      );
      expect((await gateway.ask(client, asked[client])).status).toBe(200);
      expect((await gateway.ask(client, asked[client])).status).toBe(200);
      const caps = (gateway.sent as JsonObject[]).map((body) => body.max_tokens as number);
      expect(caps).toEqual([32_000, 8192, 8192]);
      for (const { notes } of gateway.summaries) {
        expect(notes.map(({ name, what }) => `${name} ${what}`)).toContain(
          'parameter_mapped 32000 as 8192',
        );
      }
    },
  );

  test.each(CLIENTS)(
    '%s: faults of several kinds are mended one after the other',
    async (client) => {
      const gateway = scriptedGateway(
        'openai-chat',
        [
          refuse("Unsupported parameter: 'reasoning_effort' is not supported with this model."),
          refuse(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            { param: 'max_tokens' },
          ),
          refuse(
            'max_completion_tokens is too large: 32000. This model supports at most 16384 completion tokens',
          ),
          fine,
          fine,
        ],
        FEATURES,
      );
      expect((await gateway.ask(client, asked[client])).status).toBe(200);
      expect((await gateway.ask(client, asked[client])).status).toBe(200);
      expect(gateway.sent).toHaveLength(5);
      for (const body of gateway.sent.slice(3) as JsonObject[]) {
        expect(body).not.toHaveProperty('reasoning_effort');
        expect(body).not.toHaveProperty('max_tokens');
        expect(body.max_completion_tokens).toBe(16_384);
      }
    },
  );

  test('what is left of a window is asked for once, and not remembered', async () => {
    const words =
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 tokens and your request has 12000 input tokens (32000 > 40960 - 12000).";
    const gateway = scriptedGateway('openai-chat', [refuse(words), fine, fine], FEATURES);
    await gateway.ask('anthropic-messages', asked['anthropic-messages']);
    await gateway.ask('anthropic-messages', asked['anthropic-messages']);
    const caps = (gateway.sent as JsonObject[]).map((body) => body.max_tokens as number);
    expect(caps).toEqual([32_000, 28_960, 32_000]);
  });

  test.each(CLIENTS)(
    '%s: credits that do not last for the largest answer last for a shorter one',
    async (client) => {
      const words =
        'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account';
      const broke: Scripted = { status: 402, json: { error: { message: words, code: 402 } } };
      const { max_tokens: _, max_output_tokens: __, thinking: ___, ...uncapped } = asked[client];
      for (const body of [
        asked[client],
        { ...uncapped, ...(client === 'anthropic-messages' && { max_tokens: 64_000 }) },
      ]) {
        const gateway = scriptedGateway('openai-chat', [broke, fine], FEATURES);
        expect((await gateway.ask(client, body)).status).toBe(200);
        expect((gateway.sent[1] as JsonObject).max_tokens).toBe(30_104);
      }
      const none = words.replace('30104', '0');
      const gateway = scriptedGateway(
        'openai-chat',
        [{ status: 402, json: { error: { message: none, code: 402 } } }],
        FEATURES,
      );
      expect((await gateway.ask(client, asked[client])).status).toBe(402);
    },
  );

  test('the same fault twice is the client’s to hear, and no vendor is asked without end', async () => {
    const words = "Unsupported parameter: 'temperature' is not supported with this model.";
    const body = { ...asked['openai-chat'], temperature: 0.2 };
    const twice = scriptedGateway('openai-chat', [refuse(words), refuse(words)], FEATURES);
    expect((await twice.ask('openai-chat', body)).status).toBe(400);
    const names = ['temperature', 'top_p', 'seed', 'logit_bias', 'verbosity', 'service_tier'];
    const gateway = scriptedGateway(
      'openai-chat',
      names.map((name) => refuse(`Unsupported parameter: '${name}' is not supported.`)),
      FEATURES,
    );
    expect((await gateway.ask('openai-chat', body)).status).toBe(400);
    expect(gateway.sent).toHaveLength(5);
  });

  test('a refused field goes from later requests, and nothing inside tools or arguments with it', async () => {
    const tool = {
      type: 'function',
      function: {
        name: 'f',
        parameters: { type: 'object', properties: { seed: { type: 'string' } } },
      },
    };
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"seed":"s"}' } };
    const body = {
      model: 'm',
      seed: 7,
      tools: [tool],
      messages: [
        { role: 'user', content: '"seed"' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'ok' },
      ],
    };
    const gateway = scriptedGateway(
      'openai-chat',
      [refuse("Unsupported parameter: 'seed' is not supported with this model."), fine, fine],
      FEATURES,
    );
    await gateway.ask('openai-chat', body);
    await gateway.ask('openai-chat', body);
    const { seed: _, ...rest } = body;
    expect(gateway.sent).toEqual([body, rest, rest]);
    expect(gateway.summaries[1]!.notes.map(({ name }) => name)).toEqual(['stripped_after_refusal']);
  });

  // Without them the answer is one to another question.
  test.each([
    ['openai-chat', 'tools', 'Unrecognized request argument supplied: tools'],
    ['openai-chat', 'tools', 'body.tools: Extra inputs are not permitted'],
    [
      'openai-chat',
      'functions',
      "Additional properties are not allowed ('functions' was unexpected)",
    ],
    ['openai-chat', 'image_url', 'messages.0.content.0.image_url: Extra inputs are not permitted'],
    ['openai-responses', 'instructions', "Unknown parameter: 'instructions'."],
    ['openai-responses', 'tools', "Unknown parameter: 'tools'."],
    ['anthropic-messages', 'system', 'system: Extra inputs are not permitted'],
    ['anthropic-messages', 'tools', 'unknown field `tools`, expected one of `model`, `messages`'],
  ] as const)('%s: %s are never left out', async (protocol, _, message) => {
    const body: JsonObject = {
      'openai-chat': {
        model: 'm',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }],
        tools: [{ type: 'function', function: { name: 'f' } }],
        functions: [{ name: 'f' }],
      },
      'openai-responses': {
        model: 'm',
        instructions: 'Be brief.',
        input: 'hi',
        tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }],
      },
      'anthropic-messages': {
        model: 'm',
        max_tokens: 9,
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'hi' }],
        tools: [{ name: 'f', input_schema: { type: 'object' } }],
      },
    }[protocol];
    const gateway = scriptedGateway(protocol, [refuse(message), fine, fine], FEATURES);
    expect((await gateway.ask(protocol, body)).status).toBe(400);
    expect(gateway.sent).toEqual([body]);
  });

  test.each([
    'Unrecognized request argument supplied: response_format',
    'response_format: Extra inputs are not permitted',
    "Unknown parameter: 'response_format'.",
  ])('%s: the schema is said in the prompt', async (message) => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'Where?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'place', schema } },
    };
    const gateway = scriptedGateway('openai-chat', [refuse(message), fine, fine], FEATURES);
    for (const _ of [1, 2]) expect((await gateway.ask('openai-chat', body)).status).toBe(200);
    for (const sent of gateway.sent.slice(1) as JsonObject[]) {
      expect(sent.response_format).toBeUndefined();
      expect(JSON.stringify(sent.messages)).toContain('city');
    }
    expect(gateway.sent).toHaveLength(3);
  });

  test('what was learnt is told by the target, as facts and fields', async () => {
    const provider = { name: 'up' } as ProviderConfig;
    const profile = { name: 'none' };
    const target = { provider: 'up', model: 'm', protocol: 'openai-chat', profile } as const;
    const refusal = (message: string) =>
      new GatewayError('invalid_request', message, { status: 400, fromUpstream: true });
    canLearnFrom(
      refusal('max_tokens is too large: 9. This model supports at most 4096 completion tokens'),
      { provider, target },
      'ann',
    );
    canLearnFrom(
      refusal("Unsupported parameter: 'seed' is not supported with this model."),
      { provider, target },
      'bob',
    );
    expect(learntFacts([provider])).toEqual([
      { target: 'up/m', facts: expect.arrayContaining(['maxOutput: 4096', 'without seed']) },
    ]);
    const explained = restsIn({
      targets: [{ target: 'up/m', state: 'serving' }],
      rests: [],
      learnt: learntFacts([provider]) as never,
    });
    expect(explained).toEqual([
      {
        target: 'up/m',
        passedOver: false,
        rests: [],
        learnt: expect.arrayContaining(['maxOutput: 4096']),
      },
    ]);
  });

  test('what was learnt of one model is not held against another', async () => {
    const words = "Unsupported parameter: 'temperature' is not supported with this model.";
    const gateway = scriptedGateway('openai-chat', [refuse(words), fine, fine], FEATURES);
    const body = { model: 'm', temperature: 0.2, messages: [{ role: 'user', content: 'x' }] };
    await gateway.ask('openai-chat', body);
    await gateway.ask('openai-chat', { ...body, model: 'other' });
    expect((gateway.sent[2] as JsonObject).temperature).toBe(0.2);
  });

  test('efforts that the message lists: the nearest is sent', async () => {
    const gateway = scriptedGateway(
      'openai-responses',
      [
        refuse("Invalid value: 'max'. Supported values are: 'low', 'medium', and 'high'.", {
          param: 'reasoning.effort',
          code: 'invalid_value',
        }),
        { json: { id: 'r', object: 'response', status: 'completed', model: 'm', output: [] } },
      ],
      FEATURES,
    );
    await gateway.ask('openai-responses', { model: 'm', input: 'x', reasoning: { effort: 'max' } });
    expect((gateway.sent[1] as JsonObject).reasoning).toEqual({ effort: 'high' });
  });
});

describe('facts that are known beforehand', () => {
  const known = (models: string) =>
    scriptedGateway('openai-chat', [fine], FEATURES, '', { profile: 'none', models });
  test.each(CLIENTS)('%s: `output` of a model lowers the cap', async (client) => {
    const gateway = known('[{ name: m, output: 8192 }]');
    await gateway.ask(client, asked[client]);
    expect((gateway.sent[0] as JsonObject).max_tokens).toBe(8192);
  });
  test.each(CLIENTS)('%s: `reasoning: false` of a model drops the setting', async (client) => {
    const gateway = known('[{ name: m, reasoning: false }]');
    await gateway.ask(client, asked[client]);
    expect(gateway.sent[0]).not.toHaveProperty('reasoning_effort');
    expect(gateway.summaries[0]!.notes.map(({ name }) => name)).toContain('parameter_dropped');
  });
});

test.each<[string, JsonObject, JsonObject]>([
  [
    "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    { tools: [], tool_choice: 'auto', parallel_tool_calls: true },
    {},
  ],
  [
    "'parallel_tool_calls' is only allowed when 'tools' are specified.",
    { parallel_tool_calls: false },
    {},
  ],
  [
    'invalid params, function parameters is empty (2013)',
    {
      tools: [
        { type: 'function', function: { name: 'cron_list', description: 'd' } },
        { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
      ],
    },
    {
      tools: [
        {
          type: 'function',
          function: {
            name: 'cron_list',
            description: 'd',
            parameters: { type: 'object', properties: {} },
          },
        },
        { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
      ],
    },
  ],
  [
    "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 69 instead.",
    { prompt_cache_key: 'k'.repeat(69), seed: 7 },
    { seed: 7 },
  ],
])('%s: what goes out behind it', async (message, more, left) => {
  const gateway = scriptedGateway('openai-chat', [refuse(message), fine], FEATURES);
  const body = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
  expect((await gateway.ask('openai-chat', { ...body, ...more })).status).toBe(200);
  expect(gateway.sent).toEqual([
    { ...body, ...more },
    { ...body, ...left },
  ]);
});

/** A vendor of Responses that does not know the types of an agent's tools is known by its words. */

import { expect, test } from 'bun:test';
import { CODECS } from '../../../src/app/codecs.ts';
import { historyRefusal } from '../../../src/conversation/refusal/refusal.ts';
import { FlatHeaders } from '../../../src/lib/http/headers.ts';

const e = (message: string, more: object = {}) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null, ...more },
});

const FUNCTIONS = ['function'];
const ALL = [
  ...['function', 'custom', 'namespace', 'tool_search', 'web_search', 'file_search', 'mcp'],
  ...['image_generation', 'code_interpreter', 'computer', 'computer_use_preview'],
  ...['shell', 'local_shell', 'apply_patch'],
];
const without = (type: string) => ALL.filter((each) => each !== type);

const ROWS: readonly (readonly [
  source: string,
  status: number,
  body: unknown,
  types: readonly string[] | undefined,
])[] = [
  [
    'LM Studio, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1810',
    400,
    e('Invalid', { param: 'tools.8.type', code: 'invalid_string' }),
    FUNCTIONS,
  ],
  [
    'llama.cpp, https://github.com/ggml-org/llama.cpp/issues/20156',
    400,
    e("'type' of tool must be 'function'", { code: 400 }),
    FUNCTIONS,
  ],
  [
    'Ollama, https://github.com/ollama/ollama/issues/17618',
    500,
    e(
      'Failed to parse tools: Unsupported tool type: {"type":"namespace","function":{"name":"multi_agent_v1"}}',
      { type: 'server_error', code: 500 },
    ),
    FUNCTIONS,
  ],
  [
    'xAI, of an item, https://github.com/router-for-me/CLIProxyAPI/issues/4434',
    422,
    {
      error:
        'Failed to deserialize the JSON body into the target type: data did not match any variant of untagged enum ModelInput',
    },
    FUNCTIONS,
  ],
  [
    'servers in Rust, with a list',
    422,
    {
      error:
        'Failed to deserialize the JSON body into the target type: tools[3]: unknown variant `namespace`, expected one of `function`, `web_search`, `x_search`, `mcp` at line 1 column 1234',
    },
    ['function', 'web_search', 'x_search'],
  ],
  [
    'servers in Rust, of a tool that the client runs',
    422,
    {
      error:
        'Failed to deserialize the JSON body into the target type: tools[0]: unknown variant `local_shell`, expected one of `function`, `web_search` at line 1 column 1234',
    },
    ['function', 'web_search'],
  ],
  [
    'OpenAI of another version, with a list',
    400,
    e(
      "Invalid value: 'namespace'. Supported values are: 'function', 'file_search', 'web_search', and 'custom'.",
      { param: 'tools[8].type', code: 'invalid_value' },
    ),
    ['function', 'file_search', 'web_search', 'custom'],
  ],
  [
    'CommandCode, https://github.com/CommandCodeAI/command-code/issues/885',
    400,
    e(
      'Only `type:"function"` tools are supported on this endpoint. Built-in tools (web_search, file_search, code_interpreter, computer_use, mcp) are not executed here.',
      { param: 'tools.8.type' },
    ),
    FUNCTIONS,
  ],
  [
    'Envoy, https://github.com/envoyproxy/ai-gateway/issues/2586',
    400,
    {
      type: 'error',
      error: {
        type: 'BadRequest',
        code: '400',
        message:
          'malformed request: failed to parse JSON for /v1/responses: cannot unmarshal unknown input type: additional_tools',
      },
    },
    FUNCTIONS,
  ],
  [
    'codex2api, https://github.com/james-6-23/codex2api/issues/341',
    400,
    e("Invalid input type 'agent_message' at index 17", { code: 'invalid_parameter' }),
    FUNCTIONS,
  ],
  [
    "OpenCode's gateway, https://github.com/diegosouzapw/OmniRoute/pull/14041",
    400,
    e('input[3] did not match any supported type'),
    FUNCTIONS,
  ],
  [
    'token_proxy, https://github.com/mxyhi/token_proxy/issues/307',
    400,
    e("Unsupported Responses API input item type: 'additional_tools' None"),
    FUNCTIONS,
  ],
  [
    'Bedrock, https://github.com/BerriAI/litellm/issues/36182',
    400,
    e(
      "Invalid Value: 'tools.namespace'. User-defined namespace 'functions' collides with an existing tool namespace.",
      { code: 'validation_error' },
    ),
    ['function', 'custom'],
  ],
  [
    'OpenRouter, https://github.com/openai/codex/issues/32318',
    400,
    {
      error: {
        message:
          'No endpoints found that support the native `namespace` tool type. To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection',
        code: 400,
      },
    },
    FUNCTIONS,
  ],
  [
    'vLLM, https://github.com/vllm-project/vllm/issues/42475',
    400,
    e(
      "1 validation error: {'type': 'literal_error', 'loc': ('body', 'tools', 11, 'CodeInterpreter', 'type'), 'msg': \"Input should be 'code_interpreter'\", 'input': 'namespace', 'ctx': {'expected': \"'code_interpreter'\"}}",
    ),
    FUNCTIONS,
  ],
  [
    'OpenAI, https://github.com/diegosouzapw/OmniRoute/issues/5251',
    400,
    e('The local_shell tool is no longer supported.', { param: 'tools' }),
    without('local_shell'),
  ],
  [
    'Copilot, https://github.com/microsoft/vscode/issues/323904',
    400,
    e('The requested tool image_generation is not supported.', { code: 'unsupported_value' }),
    without('image_generation'),
  ],
  [
    'OpenAI, https://github.com/openai/codex/issues/22637',
    400,
    e("Tool 'image_generation' is not supported with gpt-5.3-codex-spark.", { param: 'tools' }),
    without('image_generation'),
  ],
  [
    'Azure, https://github.com/openai/codex/issues/4881',
    400,
    e("Hosted tool 'web_search_preview' is not supported with gpt-5-2025-08-07."),
    without('web_search'),
  ],
  [
    'Meta, https://github.com/duolahypercho/codex-router/issues/78',
    400,
    e('`custom` tools are not supported on this endpoint', { param: 'tools' }),
    without('custom'),
  ],
  [
    'opencode2api, https://github.com/jasonxu114514/opencode2api/issues/5',
    400,
    e('tools[8] must be a function tool'),
    FUNCTIONS,
  ],
  [
    'free-claude-code, https://github.com/Alishahryar1/free-claude-code/issues/859',
    400,
    e("Unsupported Responses tool type: 'custom'"),
    FUNCTIONS,
  ],
  [
    'Every Code, https://github.com/just-every/code/issues/149',
    400,
    e("Unsupported tool type 'web_search_preview'"),
    FUNCTIONS,
  ],
  [
    'ninfer, https://github.com/Neroued/ninfer/pull/45',
    400,
    e('unsupported tool type: image_generation', { code: 'tool_type_not_supported' }),
    FUNCTIONS,
  ],
  [
    'zod, https://github.com/tashfeenahmed/freellmapi/pull/187',
    400,
    e('tools.4.type: Invalid literal value, expected "function"'),
    FUNCTIONS,
  ],
  [
    'xAI, of a call, https://github.com/lidge-jun/opencodex/pull/2270',
    422,
    { error: 'invalid "custom_tool_call" item: missing field `id`' },
    FUNCTIONS,
  ],
  ['a tool of the client that is not there', 400, e("Tool 'read' is not supported."), undefined],
  ['tools that are supported', 400, e('custom tools are supported with grammar alone'), undefined],
  ['a model that is not there', 404, e('No endpoints found for openai/gpt-99.'), undefined],
  [
    'a value of another parameter',
    400,
    e("Invalid value: 'max'. Supported values are: 'low'."),
    undefined,
  ],
  ['a missing member', 400, e("Missing required parameter: 'tools[0].name'."), undefined],
];

test.each(ROWS)('%s', (_source, status, body, types) => {
  const error = CODECS['openai-responses'].decodeError(
    status,
    JSON.stringify(body),
    FlatHeaders.of({}),
  );
  const refusal = historyRefusal(error);
  expect(refusal?.kind === 'setting' ? refusal.facts?.toolTypes : undefined).toEqual(types!);
});

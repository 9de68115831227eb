/** Checks a Responses request as strictly as api.openai.com does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type Finding, findings, OWN_FIELD, type Report, warnOfUnknown } from '../../lint.ts';
import { lintItems } from './lint-items.ts';

/** https://platform.openai.com/docs/api-reference/responses/create */
const OPENAI =
  'model input background context_management conversation include instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user';

/** Fields that Codex sends with each request, and in the frames of a WebSocket. */
const CODEX = 'client_metadata type generate';

/** Fields that vendors added, each under the vendor that documents it; many of them are accepted by others too. */
const VENDORS = [
  // Sampling, in servers of open models.
  'top_k min_p top_a seed stop presence_penalty frequency_penalty repetition_penalty logit_bias min_tokens stop_token_ids ignore_eos',
  // Qwen, DeepSeek, GLM.
  'enable_thinking thinking_budget thinking',
  // OpenRouter and Vercel's gateway.
  'models provider providerOptions preset transforms route usage plugins session_id trace image_config modalities debug cache_control',
  // xAI, Perplexity, Azure.
  'search_parameters deferred max_steps language_preference data_sources',
  // vLLM, LM Studio.
  'chat_template chat_template_kwargs mm_processor_kwargs media_io_kwargs structured_outputs priority request_id cache_salt skip_special_tokens spaces_between_special_tokens include_stop_str_in_output enable_response_messages previous_input_messages logits_processors kv_transfer_params vllm_xargs ttl draft_model',
]
  .join(' ')
  .split(' ');

/** Fields of Chat, and where Responses has them. */
const MOVED = {
  messages: 'input',
  response_format: 'text.format',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  reasoning_effort: 'reasoning.effort',
} as const;

/** Those of Chat are known, too: they have a rule of their own. */
export const FIELDS: ReadonlySet<string> = new Set([
  ...[OPENAI, CODEX].flatMap((names) => names.split(' ')),
  ...VENDORS,
  ...Object.keys(MOVED),
  OWN_FIELD,
]);

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MIN_OUTPUT = 16;

/** Everything in the body that the API refuses, and warnings of fields that no vendor is known to take. */
export function lintRequest(body: Json): readonly Finding[] {
  const { list, report, warn } = findings();
  if (!isObject(body)) {
    report(
      '',
      'body-object',
      'We could not parse the JSON body of your request: expected an object.',
    );
    return list;
  }
  // A stored prompt may contain the model and the input.
  const stored = isObject(body.prompt);
  if (typeof body.model !== 'string' && !stored) {
    report('/model', 'model', "Missing required parameter: 'model'.");
  }
  warnOfUnknown(body, FIELDS, warn);
  lintParameters(body, report);
  lintTools(body, report);
  const { input } = body;
  const continues =
    typeof body.previous_response_id === 'string' ||
    (body.conversation !== undefined && body.conversation !== null);
  if (input === undefined || input === null) {
    if (!stored && !continues) report('/input', 'input', "Missing required parameter: 'input'.");
  } else if (Array.isArray(input)) {
    if (input.length === 0 && !continues) {
      const words =
        "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.";
      report('/input', 'input', words);
    }
    lintItems(input as readonly Json[], continues, report);
  } else if (typeof input !== 'string') {
    const words = "Invalid type for 'input': expected one of a string or array of objects.";
    report('/input', 'input', words);
  }
  return list;
}

function lintParameters(body: JsonObject, report: Report): void {
  const cap = body.max_output_tokens;
  if (typeof cap === 'number' && cap < MIN_OUTPUT) {
    const words = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${MIN_OUTPUT}, but got ${cap} instead.`;
    report('/max_output_tokens', 'max-output-tokens', words);
  }
  for (const [key, most] of [
    ['temperature', 2],
    ['top_p', 1],
  ] as const) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && value >= 0 && value <= most) continue;
    const words = `Invalid '${key}': expected a number from 0 to ${most}, but got ${JSON.stringify(value)} instead.`;
    report(`/${key}`, 'range', words);
  }
  for (const [chat, own] of Object.entries(MOVED)) {
    if (body[chat] === undefined) continue;
    const words = `Unsupported parameter: '${chat}'. In the Responses API, this parameter has moved to '${own}'.`;
    report(`/${chat}`, 'moved-parameter', words);
  }
}

function lintTools(body: JsonObject, report: Report): void {
  const tools = Array.isArray(body.tools) ? (body.tools as readonly Json[]) : [];
  tools.forEach((tool, i) => {
    lintTool(tool, `/tools/${i}`, `tools[${i}]`, report);
  });
  const choice = body.tool_choice;
  const some = tools.length > 0 || isObject(body.prompt);
  if (!some && isObject(choice) && choice.type === 'function') {
    const words = `Tool choice '${String(choice.name)}' not found in 'tools' parameter.`;
    report('/tool_choice', 'tool-choice', words);
  }
  if (!some && choice === 'required') {
    const words = "Tool choice 'required' must be specified with 'tools' parameter.";
    report('/tool_choice', 'tool-choice', words);
  }
}

function lintTool(tool: Json, at: string, path: string, report: Report): void {
  if (!isObject(tool) || typeof tool.type !== 'string') {
    report(`${at}/type`, 'tool-type', `Missing required parameter: '${path}.type'.`);
    return;
  }
  if (tool.type !== 'function' && tool.type !== 'custom') return;
  if (typeof tool.name !== 'string') {
    // Chat's declaration is nested, that of Responses is flat.
    report(`${at}/name`, 'tool-name', `Missing required parameter: '${path}.name'.`);
  } else if (!NAME.test(tool.name)) {
    const words = `Invalid '${path}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
    report(`${at}/name`, 'tool-name', words);
  }
}

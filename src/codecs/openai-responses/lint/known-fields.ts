/** The fields of a Responses request, as OpenAI and the vendors that follow it take them. */

import { OWN_FIELD } from '../../lint.ts';

/** https://platform.openai.com/docs/api-reference/responses/create */
const OPENAI =
  'model input background context_management conversation include instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user';

/** What Codex sends: with each request, and in the frames of a WebSocket. */
const CODEX = 'client_metadata type generate';

/** What vendors added, each under the vendor that documents it. Many have more than one. */
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
export const MOVED = {
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

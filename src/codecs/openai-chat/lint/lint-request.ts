/** Checks a Chat Completions request as strictly as api.openai.com does, with its error messages. */

import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import { type Finding, findings, OWN_FIELD, type Report, warnOfUnknown } from '../../lint.ts';
import { lintMessages } from './lint-messages.ts';

/** https://platform.openai.com/docs/api-reference/chat/create, with what it once had. */
const OPENAI =
  'model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options';

/** Fields that vendors added, each under the vendor that documents it; many of them are accepted by others too. */
const VENDORS = [
  // Sampling, in most servers of open models.
  'top_k min_p typical_p top_a repetition_penalty length_penalty best_of use_beam_search stop_token_ids min_tokens ignore_eos',
  // Reasoning, by GLM, DeepSeek, Kimi, Qwen, MiniMax, OpenRouter, Groq, Cerebras, vLLM, SGLang.
  'thinking enable_thinking thinking_budget preserve_thinking clear_thinking reasoning reasoning_format include_reasoning reasoning_split separate_reasoning stream_reasoning thinking_token_budget disable_reasoning',
  // OpenRouter and Vercel's gateway.
  'models provider providerOptions preset transforms route usage plugins session_id trace image_config debug cache_control',
  // Azure.
  'data_sources',
  // Gemini's form of Chat.
  'extra_body cached_content',
  // GLM.
  'do_sample request_id user_id tool_stream sensitive_word_check watermark_enabled',
  // Qwen.
  'enable_search search_options enable_code_interpreter translation_options vl_high_resolution_images incremental_output result_format asr_options skills',
  // MiniMax.
  'mask_sensitive_info tokens_to_generate bot_setting reply_constraints',
  // Mistral.
  'random_seed safe_prompt prompt_mode',
  // xAI, Perplexity.
  'search_parameters deferred search_mode search_domain_filter search_recency_filter search_after_date_filter search_before_date_filter last_updated_after_filter last_updated_before_filter return_images return_related_questions enable_search_classifier disable_search image_domain_filter image_format_filter search_language_filter language_preference stream_mode media_response',
  // Groq, Together, Fireworks, Cohere, Snowflake.
  'documents citation_options compound_custom exclude_domains include_domains search_settings disable_tool_validation safety_model echo compliance context_length_exceeded_behavior prompt_truncate_len raw_output prompt_cache_isolation_key perf_metrics_in_response speculation mirostat_target mirostat_lr safety_mode strict_tools guardrails',
  // vLLM.
  'add_generation_prompt continue_final_message add_special_tokens chat_template chat_template_kwargs mm_processor_kwargs media_io_kwargs guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern structural_tag structured_outputs structured_outputs_config priority request_id logits_processors return_tokens_as_token_ids return_token_ids cache_salt kv_transfer_params vllm_xargs allowed_token_ids bad_words prompt_logprobs truncate_prompt_tokens skip_special_tokens spaces_between_special_tokens include_stop_str_in_output repetition_detection',
  // SGLang.
  'regex ebnf json_schema no_stop_trim stop_regex lora_path session_params return_hidden_states return_routed_experts custom_logit_processor custom_params rid extra_key bootstrap_host bootstrap_port bootstrap_room data_parallel_rank return_cached_tokens_details',
  // llama.cpp and LM Studio.
  'id_slot cache_prompt n_predict n_keep n_discard n_probs min_keep samplers grammar grammar_lazy grammar_triggers dynatemp_range dynatemp_exponent dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers xtc_probability xtc_threshold mirostat mirostat_tau mirostat_eta repeat_penalty repeat_last_n top_n_sigma t_max_predict_ms timings_per_token return_progress post_sampling_probs response_fields lora parse_tool_calls chat_format thinking_forced_open ttl draft_model',
  // Ollama.
  'options keep_alive format think',
]
  .join(' ')
  .split(' ');

export const FIELDS: ReadonlySet<string> = new Set([...OPENAI.split(' '), ...VENDORS, OWN_FIELD]);

const MAX_TOOLS = 128;
const MAX_STOPS = 4;
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
};

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
  if (typeof body.model !== 'string' || body.model === '') {
    report('/model', 'model', 'you must provide a model parameter');
  }
  warnOfUnknown(body, FIELDS, warn);
  lintParameters(body, report);
  lintTools(body, report);
  const { messages } = body;
  if (messages === undefined || messages === null) {
    report('/messages', 'messages', "Missing required parameter: 'messages'.");
  } else if (!Array.isArray(messages)) {
    report('/messages', 'messages', "Invalid type for 'messages': expected an array of objects.");
  } else if (messages.length === 0) {
    const words =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    report('/messages', 'messages', words);
  } else lintMessages(messages as readonly Json[], report);
  return list;
}

function lintParameters(body: JsonObject, report: Report): void {
  if (body.stream !== undefined && body.stream !== null && typeof body.stream !== 'boolean') {
    report('/stream', 'stream', "Invalid type for 'stream': expected a boolean.");
  }
  if (isObject(body.stream_options) && body.stream !== true) {
    const words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    report('/stream_options', 'stream-options', words);
  }
  for (const [key, [least, most]] of Object.entries(RANGES)) {
    const value = body[key];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && value >= least && value <= most) continue;
    const words = `Invalid '${key}': expected a number from ${least} to ${most}, but got ${JSON.stringify(value)} instead.`;
    report(`/${key}`, 'range', words);
  }
  const { stop } = body;
  if (Array.isArray(stop) && stop.length > MAX_STOPS) {
    const words = `Invalid 'stop': array too long. Expected an array with maximum length ${MAX_STOPS}, but got an array with length ${stop.length} instead.`;
    report('/stop', 'stop', words);
  }
  if (isObject(body.response_format) && body.response_format.type === 'json_object') {
    if (!/json/i.test(JSON.stringify(body.messages ?? ''))) {
      const words =
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
      report('/messages', 'json-word', words);
    }
  }
}

function lintTools(body: JsonObject, report: Report): void {
  const { tools } = body;
  const declared = Array.isArray(tools) ? (tools as readonly Json[]) : [];
  if (Array.isArray(tools) && tools.length === 0) {
    const words =
      "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    report('/tools', 'tools-empty', words);
  }
  if (declared.length > MAX_TOOLS) {
    const words = `Invalid 'tools': array too long. Expected an array with maximum length ${MAX_TOOLS}, but got an array with length ${declared.length} instead.`;
    report('/tools', 'tools-many', words);
  }
  const names = new Set<string>();
  declared.forEach((tool, i) => {
    const at = `tools[${i}]`;
    if (!isObject(tool) || typeof tool.type !== 'string') {
      report(`/tools/${i}/type`, 'tool-type', `Missing required parameter: '${at}.type'.`);
      return;
    }
    const inner = tool[tool.type];
    if (tool.type !== 'function' && tool.type !== 'custom') {
      const words = `Invalid value: '${tool.type}'. Supported values are: 'function' and 'custom'.`;
      report(`/tools/${i}/type`, 'tool-type', words);
      return;
    }
    const name = isObject(inner) ? inner.name : undefined;
    if (typeof name !== 'string') {
      const words = `Missing required parameter: '${at}.${tool.type}.name'.`;
      report(`/tools/${i}/${tool.type}/name`, 'tool-name', words);
      return;
    }
    names.add(name);
    if (!NAME.test(name)) {
      const words = `Invalid '${at}.${tool.type}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
      report(`/tools/${i}/${tool.type}/name`, 'tool-name', words);
    }
  });
  lintChoice(body, declared.length > 0, names, report);
}

function lintChoice(
  body: JsonObject,
  some: boolean,
  names: ReadonlySet<string>,
  report: Report,
): void {
  const { tool_choice: choice } = body;
  if (!some) {
    if (choice !== undefined && choice !== null && choice !== 'none') {
      const words =
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
      report('/tool_choice', 'tool-choice-without-tools', words);
    }
    if (body.parallel_tool_calls !== undefined && body.parallel_tool_calls !== null) {
      const words =
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.";
      report('/parallel_tool_calls', 'parallel-without-tools', words);
    }
    return;
  }
  if (typeof choice === 'string' && !['none', 'auto', 'required'].includes(choice)) {
    const words = `Invalid value: '${choice}'. Supported values are: 'none', 'auto', and 'required'.`;
    report('/tool_choice', 'tool-choice', words);
  }
  const forced = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined;
  if (typeof forced === 'string' && !names.has(forced)) {
    const words = `Tool choice '${forced}' not found in 'tools' parameter`;
    report('/tool_choice/function/name', 'tool-choice', words);
  }
}

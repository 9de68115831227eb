/** The fields of a Chat request, as OpenAI and the vendors that follow it take them. */

import { OWN_FIELD } from '../../lint.ts';

/** https://platform.openai.com/docs/api-reference/chat/create, with what it once had. */
const OPENAI =
  'model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options';

/** What vendors added, each under the vendor that documents it. Many have more than one. */
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

/** Words of errors that several vendors share, or that come from servers and relays without a file of their own. */

import type { Words } from '../vendor.ts';

export const SHARED_WORDS: readonly (Words & { readonly by: string })[] = [
  {
    by: 'OpenAI, Groq',
    source: 'https://console.groq.com/docs/errors',
    too_large: [/request too large for (?:model|gpt|o\d|\S{1,90} (?:in|on) )/i],
    context_overflow: [/reduce the length of (?:the |your )?(?:messages|prompt|input)/i],
  },
  {
    by: 'Messages, GLM',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/model_context_window_exceeded/i],
  },
  {
    by: 'OpenAI, DeepSeek, vLLM, OpenRouter, Mistral',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/maximum context length/i],
  },
  {
    by: 'Ollama, Together',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/max(?:imum)? context (?:length|size|window)/i],
  },
  {
    by: 'Anthropic, Ollama, Fireworks',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/prompt (?:is )?too long/i],
  },
  {
    by: 'TGI',
    source: 'github.com/huggingface/text-generation-inference router/src/validation.rs',
    context_overflow: [
      /`?inputs`? tokens \+ `?max_new_tokens`? must be/i,
      /`?inputs`? must have less than \d{1,9} tokens/i,
    ],
  },
  {
    by: 'TabbyAPI',
    source: 'github.com/SillyTavern/SillyTavern/issues/3543',
    context_overflow: [
      /(?:greater|longer) than (?:the )?max_seq_len/i,
      /exceeds (?:the )?max(?:imum)? sequence length/i,
    ],
  },
  {
    by: 'Copilot',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/prompt token count of \d{1,9} exceeds the limit/i],
  },
  {
    by: 'LiteLLM',
    source: 'github.com/BerriAI/litellm litellm/exceptions.py',
    quota: [/\bbudget has been exceeded\b/i],
    content_filter: [/contentpolicyviolationerror/i],
    context_overflow: [/contextwindowexceedederror/i],
  },
  {
    by: 'LiteLLM',
    source:
      'github.com/BerriAI/litellm litellm/proxy/_types.py, litellm/proxy/route_llm_request.py',
    not_found: [
      /\b(?:key|team|user|org|project)_model_access_denied\b|invalid model name passed in model/i,
    ],
  },
  {
    by: 'GitHub Models',
    source: 'github.com/github/gh-models, https://docs.github.com/github-models',
    context_overflow: [/\btokens_limit_reached\b/i],
  },
  {
    by: 'Qianfan (ERNIE)',
    source: 'https://cloud.baidu.com/doc/qianfan-api/s/7m7wqq361',
    context_overflow: [
      /\b(?:characters|tokens)_too_long\b|max input characters is|prompt tokens too long/i,
    ],
  },
  {
    by: 'Vertex AI',
    source: 'https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors',
    context_overflow: [/token count is \d{1,9} but (?:the )?model only supports up to/i],
  },
  {
    by: 'relays',
    source: 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts',
    context_overflow: [/(?<!per.minute )(?<!per-minute )token limit exceeded(?! for this minute)/i],
  },
  {
    by: 'OpenAI, xAI, DashScope',
    source: 'https://docs.x.ai/docs/key-information/debugging',
    authentication: [/incorrect api.?key/i, /\binvalid_api_key\b|\binvalidapikey\b/i],
  },
  {
    by: 'Together, Groq',
    source: 'https://console.groq.com/docs/errors',
    authentication: [
      /invalid api.?key|api key (?:has been )?(?:revoked|disabled|deleted|deactivated|suspended)/i,
    ],
  },
  {
    by: 'local servers',
    source: 'github.com/vllm-project/vllm vllm/entrypoints/openai/serving_engine.py',
    authentication: [/\binvalid (?:or missing )?api.?key\b|\bmissing api.?key\b/i],
  },
  {
    by: 'LocalAI',
    source: 'github.com/mudler/LocalAI/issues/1664',
    not_found: [/could not load model/i],
  },
  {
    by: 'TabbyAPI',
    source: 'github.com/theroyallab/tabbyAPI',
    not_found: [/no models are (?:currently )?loaded/i],
  },
  {
    by: 'Cerebras, Kimi, OpenRouter',
    source: 'https://inference-docs.cerebras.ai/support/rate-limits',
    quota: [
      /\bper day limit exceeded\b|\btoken_quota_exceeded\b|\bTPD rate limit\b|-models-per-day\b/i,
    ],
  },
  {
    by: 'StepFun, Portkey',
    source: 'https://platform.stepfun.com/docs/zh/api-reference/error-codes',
    content_filter: [/\bcensorship_blocked\b|\bhooks_failed\b/i],
  },
  {
    by: 'relays',
    source: 'github.com/getkimchi/kimchi/pull/1176',
    not_found: [/\bmodel_gone\b|model \S{0,90} has been (?:retired|removed|discontinued)/i],
  },
  {
    by: 'relays',
    source: 'https://openrouter.ai/docs/api-reference/errors',
    quota: [/quota (?:has been )?(?:exceeded|exhausted)|out of quota/i],
  },
  {
    by: 'GLM and others',
    source: 'github.com/anomalyco/opencode/issues/27519',
    context_overflow: [/tokens in request more than max tokens allowed/i],
  },
  {
    by: 'ds4-server',
    source: 'github.com/earendil-works/pi/issues/6262',
    context_overflow: [/prompt has [\d,]{1,15} tokens?, but the configured context size is/i],
  },
  {
    by: 'Bedrock, Cohere',
    source: 'github.com/openclaw/openclaw/issues/58839',
    context_overflow: [
      /exceeds? the max(?:imum)? input token limit|total tokens exceeds? the model.s max\b/i,
    ],
  },
  {
    by: 'subscriptions',
    source: 'github.com/rynfar/meridian/issues/909',
    quota: [
      /\byou(?:.ve| have) (?:hit|reached|exceeded) your (?!.{0,40}\b(?:rate|minute|second|concurrent|requests?|tokens?)\b)(?:[\w.-]{1,20} ){0,4}limit\b/i,
    ],
    billing: [/usage limit is set to \$0/i],
  },
  {
    by: 'LiteLLM',
    source: 'github.com/NousResearch/hermes-agent/pull/106427',
    quota: [/\bterminal_quota_exhausted\b|hard billing limit/i],
  },
  {
    by: 'relays',
    source: 'github.com/screenpipe/screenpipe/pull/4594',
    quota: [/\bdaily_cost_limit_exceeded\b/i],
    billing: [/\bcredits_exhausted\b/i],
  },
  {
    by: 'Novita',
    source: 'https://novita.ai/docs/api-reference/basic-error-code',
    billing: [/\bnot_enough_balance\b|not enough balance/i],
  },
  {
    by: 'Cloudflare Workers AI',
    source: 'https://developers.cloudflare.com/workers-ai/platform/errors/',
    quota: [/used up your daily free allocation/i],
  },
  {
    by: 'Hunyuan',
    source: 'https://cloud.tencent.com/document/product/1729/101838',
    billing: [/\b(?:Free)?ResourcePackExhausted\b|\bServiceStopArrears\b|资源包余量已用尽/],
  },
  {
    by: 'New API, One API',
    source: 'github.com/QuantumNous/new-api service/error.go, model/token.go',
    not_found: [/模型\s{0,3}\S{0,90}\s{0,3}无可用渠道/],
    quota: [
      /\binsufficient_user_quota\b|\bpre_consume_token_quota_failed\b|(?:user|token) quota is not enough/i,
      /额度(?:已用尽|不足)/,
    ],
    capacity: [/负载已经?达到上限|负载已饱和/],
    content_filter: [/\bsensitive_words_detected\b/i],
  },
  {
    by: 'DeepSeek, MiniMax, Kimi',
    source: 'https://api-docs.deepseek.com/quick_start/error_codes',
    billing: [
      /insufficient[ _](?:balance|credits?|funds|account balance)|\bbalance is insufficient\b/i,
    ],
  },
  {
    by: 'DeepSeek, xAI',
    source: 'https://api-docs.deepseek.com/quick_start/error_codes',
    overloaded: [/server_is_busy|server is (?:currently )?busy|at capacity/i],
  },
  {
    by: 'OpenAI, Groq, Mistral',
    source: 'https://platform.openai.com/docs/guides/error-codes',
    rate_limit: [
      /\brate.?limit(?:ed|s)?[ _](?:reached|exceeded|error)|requests? rate limit exceeded/i,
    ],
  },
];

/** The words that vendors and servers have for each kind of error, with who says them and where that is written. */

import type { ErrorKind } from '../errors.ts';

export interface Wording {
  readonly words: RegExp;
  /** Who says it. */
  readonly by: string;
  readonly source: string;
}

export interface KindOfWords {
  readonly kind: ErrorKind;
  readonly retryable?: boolean;
  /** Statuses at which these words decide; 0: inside a stream. Left out: at every status. */
  readonly at?: (status: number) => boolean;
  readonly wordings: readonly Wording[];
}

const PI = 'github.com/badlogic/pi-mono packages/ai/src/utils/overflow.ts';
const VLLM = 'github.com/vllm-project/vllm vllm/entrypoints/openai/serving_engine.py';
const VLLM_PROCESSOR = 'github.com/vllm-project/vllm vllm/v1/engine/processor.py';
const SGLANG = 'github.com/sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py';
const TGI = 'github.com/huggingface/text-generation-inference router/src/validation.rs';
const QWEN = 'https://www.alibabacloud.com/help/en/model-studio/error-code';
const OPENAI = 'https://platform.openai.com/docs/guides/error-codes';
const ANTHROPIC = 'https://docs.claude.com/en/api/errors';
const GOOGLE = 'https://ai.google.dev/gemini-api/docs/troubleshooting';
const OPENROUTER = 'https://openrouter.ai/docs/api-reference/errors';
const GROQ = 'https://console.groq.com/docs/errors';
const GLM = 'https://docs.bigmodel.cn/cn/api/api-code';
const KIMI = 'https://platform.moonshot.ai/docs/api/chat#error-codes';
const KIMI_CODE = 'https://www.kimi.com/code/docs/en/kimi-code/error-reference.html';
const MINIMAX = 'https://platform.minimax.io/docs/api-reference/errorcode';
const DEEPSEEK = 'https://api-docs.deepseek.com/quick_start/error_codes';
const XAI = 'https://docs.x.ai/docs/key-information/debugging';
/** The names of exceptions; their sentences stand in no list, and are quoted from reports. */
const AWS = 'https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html';
const COHERE = 'https://docs.cohere.com/v1/reference/errors.md';

const said = (by: string, source: string, ...all: readonly RegExp[]): readonly Wording[] =>
  all.map((words) => ({ words, by, source }));

/** One request uses more tokens than a minute allows: it can never succeed there, and says nothing of other requests. */
const TOO_LARGE: readonly Wording[] = [
  ...said('OpenAI, Groq', GROQ, /request too large for (?:model|gpt|o\d|\S{1,90} (?:in|on) )/i),
];

const FLAGGED: readonly Wording[] = [
  ...said('OpenRouter', OPENROUTER, /input was flagged|requires moderation/i),
  ...said('xAI', XAI, /content violates usage guidelines|safety_check/i),
  ...said(
    'Azure',
    'github.com/microsoft/azurechat/issues/351',
    /content_filter|responsibleai|content management policy/i,
  ),
  ...said('OpenAI', OPENAI, /content_policy|rejected (?:as a result of|by) our safety system/i),
  ...said('OpenAI', OPENAI, /prompt was flagged as potentially violating/i),
  ...said('DashScope', QWEN, /data_?inspection_?failed|inappropriate content/i),
  ...said('Anthropic', ANTHROPIC, /output blocked by content filtering policy/i),
  ...said('MiniMax', MINIMAX, /(?:input|output) new_sensitive/i),
  ...said('Zhipu', GLM, /输入或生成内容中?可能包含不安全或敏感内容|敏感内容/),
  ...said('DeepSeek', DEEPSEEK, /content exists risk/i),
  ...said(
    'Kimi',
    'github.com/MoonshotAI/kimi-cli/issues/1002',
    /rejected because it was considered high risk/i,
  ),
  ...said(
    'Bedrock',
    'https://docs.aws.amazon.com/nova/latest/userguide, errors of Nova Reel',
    /blocked by (?:our |the )?content filter/i,
  ),
];

const OVERFLOW: readonly Wording[] = [
  ...said('OpenAI', OPENAI, /context_length_exceeded/i, /exceeds the context window/i),
  ...said('Messages, GLM', PI, /model_context_window_exceeded/i),
  ...said('OpenAI, DeepSeek, vLLM, OpenRouter, Mistral', PI, /maximum context length/i),
  ...said('Ollama, Together', PI, /max(?:imum)? context (?:length|size|window)/i),
  ...said('xAI', PI, /maximum prompt length/i),
  ...said('Anthropic, Ollama, Fireworks', PI, /prompt (?:is )?too long/i),
  ...said('Anthropic', ANTHROPIC, /exceed context limit/i),
  ...said('Zhipu', GLM, /prompt exceeds max length|prompt 超长|输入.{0,20}超长/i),
  ...said('Bedrock', 'github.com/aws-samples/bedrock-chat/issues/95', /input (?:is )?too long/i),
  ...said('Bedrock Titan', 'github.com/pkdone/paul-genai-test-tools-ts', /too many input tokens/i),
  ...said(
    'Cohere',
    COHERE,
    /too many tokens: (?:the )?(?:total number of tokens|size limit exceeded)/i,
  ),
  ...said(
    'Gemini',
    GOOGLE,
    /input (?:length|token count)[^.]{0,60}exceed/i,
    /exceeds the maximum number of tokens allowed/i,
  ),
  ...said('DashScope', QWEN, /range of input length should be/i, /input length exceeds/i),
  ...said('OpenAI, Groq', GROQ, /reduce the length of (?:the |your )?(?:messages|prompt|input)/i),
  ...said('Mistral', PI, /too large for model with \d+ maximum/i),
  ...said(
    'Kimi',
    'github.com/MoonshotAI/kimi-cli/issues/2011',
    /exceed(?:s|ed|ing)? (?:the |your |its |this )?(?:available |model.s |maximum |max ){0,3}(?:context|model token limit)/i,
  ),
  ...said('MiniMax', PI, /context (?:window|length|size)[^.]{0,40}(?:exceed|limit|overflow|too)/i),
  ...said('llama.cpp', PI, /exceed_context_size/i, /exceeds the available context size/i),
  ...said(
    'llama.cpp',
    'github.com/ggml-org/llama.cpp tools/server',
    /input is too large to process/i,
  ),
  ...said(
    'LM Studio',
    'github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546',
    /context the overflows/i,
  ),
  ...said('LM Studio', PI, /greater than (?:the )?(?:model.s )?context length/i),
  ...said(
    'Ollama',
    'github.com/ollama/ollama',
    /input length exceeds (?:the )?(?:maximum )?context length/i,
  ),
  ...said('SGLang', SGLANG, /longer than the model.s (?:maximum )?context length/i),
  ...said(
    'vLLM',
    VLLM_PROCESSOR,
    /longer than the maximum model length/i,
    /prompt \(length \d{1,9}\)/i,
    /max_model_len/,
  ),
  ...said(
    'TGI',
    TGI,
    /`?inputs`? tokens \+ `?max_new_tokens`? must be/i,
    /`?inputs`? must have less than \d{1,9} tokens/i,
  ),
  ...said(
    'TabbyAPI',
    'github.com/SillyTavern/SillyTavern/issues/3543',
    /(?:greater|longer) than (?:the )?max_seq_len/i,
    /exceeds (?:the )?max(?:imum)? sequence length/i,
  ),
  ...said('Copilot', PI, /prompt token count of \d{1,9} exceeds the limit/i),
  ...said(
    'Anthropic',
    'github.com/openclaw/openclaw',
    /request size exceeds model context window/i,
  ),
  ...said(
    'LiteLLM',
    'github.com/BerriAI/litellm litellm/exceptions.py',
    /contextwindowexceedederror/i,
  ),
  ...said(
    'relays',
    PI,
    /(?<!per.minute )(?<!per-minute )token limit exceeded(?! for this minute)/i,
  ),
];

const KEY: readonly Wording[] = [
  ...said(
    'Google',
    GOOGLE,
    /\bAPI_KEY_(?:INVALID|EXPIRED|SERVICE_BLOCKED)\b|\bACCESS_TOKEN_EXPIRED\b/,
  ),
  ...said('Google', GOOGLE, /api key (?:expired|not found|not valid)|pass a valid api key/i),
  ...said('Google', GOOGLE, /api key was reported as leaked|invalid authentication credentials/i),
  ...said(
    'OpenAI, xAI, DashScope',
    XAI,
    /incorrect api.?key/i,
    /\binvalid_api_key\b|\binvalidapikey\b/i,
  ),
  ...said('xAI', XAI, /(?:the )?api key is (?:currently )?(?:blocked|disabled)/i),
  ...said(
    'OpenAI',
    OPENAI,
    /you didn.t provide an api key|organization has been (?:disabled|deactivated)|account_deactivated/i,
  ),
  ...said(
    'Anthropic',
    ANTHROPIC,
    /invalid (?:x-)?api.?key|this organization has been disabled|oauth token has (?:expired|been revoked)/i,
  ),
  ...said(
    'Zhipu',
    GLM,
    /(?:api ?key|令牌|身份验证).{0,20}(?:过期|无效|不正确|失败)|身份验证失败|token expired or incorrect/i,
  ),
  ...said('DeepSeek', DEEPSEEK, /authentication fails|api ?key:? .{0,60} is invalid/i),
  ...said(
    'Kimi',
    KIMI,
    /incorrect_api_key_error|invalid_authentication_error|invalid authentication/i,
  ),
  ...said('MiniMax', MINIMAX, /login fail|token not match group/i),
  ...said(
    'DashScope',
    QWEN,
    /invalid api-key provided|no api-key provided|invalid access token or token expired/i,
  ),
  ...said('OpenRouter', OPENROUTER, /no auth credentials found|no cookie auth credentials/i),
  ...said(
    'Together, Groq',
    GROQ,
    /invalid api.?key|api key (?:has been )?(?:revoked|disabled|deleted|deactivated|suspended)/i,
  ),
  ...said(
    'Bedrock',
    AWS,
    /unrecognizedclientexception|expiredtokenexception|invalidsignatureexception|security token included in the request is (?:invalid|expired)/i,
  ),
  ...said('Azure', 'github.com/SciSharp/BotSharp/issues/386', /invalid subscription key/i),
  ...said('local servers', VLLM, /\binvalid (?:or missing )?api.?key\b|\bmissing api.?key\b/i),
];

const BILLING: readonly Wording[] = [
  ...said(
    'DeepSeek, MiniMax, Kimi',
    DEEPSEEK,
    /insufficient[ _](?:balance|credits?|funds|account balance)/i,
  ),
  ...said('Anthropic', ANTHROPIC, /credit balance is too low/i),
  ...said(
    'OpenRouter',
    OPENROUTER,
    /requires more credits|insufficient credits|never purchased credits/i,
  ),
  ...said('DashScope', QWEN, /\barrearage\b|account is in good standing|overdue payment/i),
  ...said('Zhipu', GLM, /余额不足|欠费|套餐已到期/),
  ...said(
    'Google',
    GOOGLE,
    /billing account|prepayment credits|enable billing|requires billing to be enabled/i,
  ),
  ...said('OpenAI', OPENAI, /billing_hard_limit_reached|billing_not_active|billing hard limit/i),
  ...said('xAI', XAI, /used all available credits|run out of credits|doesn.t have any credits/i),
  ...said(
    'Together',
    'https://docs.together.ai/docs/error-codes',
    /credit limit exceeded|payment required/i,
  ),
  ...said(
    'Mistral',
    'https://docs.mistral.ai',
    /subscription (?:is )?(?:inactive|required)|payment method/i,
  ),
];

const QUOTA: readonly Wording[] = [
  ...said('OpenAI', OPENAI, /insufficient_quota|exceeded your current quota/i),
  ...said(
    'Anthropic',
    'github.com/diegosouzapw/OmniRoute/issues/4986',
    /specified (?:\w{1,12} ){0,2}api usage limits|reached your specified|workspace api usage limits/i,
  ),
  ...said(
    'Anthropic',
    ANTHROPIC,
    /(?:usage|spend|spending) limit (?:has been |was )?(?:reached|exceeded)|usage_limit_reached/i,
  ),
  ...said(
    'xAI',
    XAI,
    /monthly spending limit|reached (?:its|your|the) (?:\w{1,12} )?(?:spending|spend|usage) limit/i,
  ),
  ...said(
    'Kimi',
    'github.com/MoonshotAI/Kimi-K2/issues/5',
    /exceeded_current_quota|exceeded current quota/i,
  ),
  ...said('OpenRouter', OPENROUTER, /key limit exceeded|(?:daily|weekly|monthly) (?:limit|quota)/i),
  ...said(
    'DashScope',
    QWEN,
    /allocated quota exceeded|free (?:tier|allocated quota)[^.]{0,40}exhausted|allocationquota\.freetieronly/i,
  ),
  ...said('relays', OPENROUTER, /quota (?:has been )?(?:exceeded|exhausted)|out of quota/i),
  ...said('Zhipu', GLM, /(?:使用|调用)(?:上限|次数已达上限)|已达到.{0,20}使用上限/),
  ...said('Zhipu', GLM, /usage limit reached for/i),
  ...said('MiniMax', MINIMAX, /usage limit exceeded/i),
  ...said('Kimi Code', KIMI_CODE, /reached your usage limit for this/i),
  ...said('Bedrock', AWS, /servicequotaexceededexception/i),
  ...said('Bedrock', 'github.com/minorun365/agent-book/issues/29', /too many tokens per day/i),
];

/** The model and not the account is refused: other models of the same key work. */
const MODEL: readonly Wording[] = [
  ...said(
    'OpenAI',
    OPENAI,
    /\bmodel_not_found\b|\bmodel ['"`]?\S{0,90} (?:does not|doesn.t) exist/i,
  ),
  ...said(
    'OpenAI',
    'https://platform.openai.com/docs/deprecations',
    /model ['"`]?\S{0,90} (?:has been|is|was) (?:deprecated|retired|shut ?down|decommissioned)/i,
  ),
  ...said('OpenAI', OPENAI, /does not have access to (?:the )?model/i),
  ...said('Anthropic', ANTHROPIC, /^\s{0,9}model: ?\S{1,90}|not_found_error model:/i),
  ...said(
    'Groq',
    GROQ,
    /model_decommissioned|model_permission_blocked|model_terms_required|model_not_active/i,
  ),
  ...said('DeepSeek', 'github.com/deepwn/addi/issues/13', /model not exist/i),
  ...said('DeepSeek', DEEPSEEK, /supported api model names are/i),
  ...said('Mistral', 'github.com/tmc/langchaingo/issues/1233', /\binvalid_model\b|invalid model:/i),
  ...said(
    'Together',
    'github.com/HeyPuter/puter/issues/3168',
    /model_not_available|dedicated_endpoint_not_running|unable to access (?:non-serverless )?model/i,
  ),
  ...said(
    'OpenRouter',
    'github.com/maxnowack/anthropic-proxy/issues/4',
    /is not a valid model id|no endpoints (?:found|available)|no allowed providers are available/i,
  ),
  ...said('xAI', XAI, /the model \S{1,90} (?:does not exist|is not available)|model not found/i),
  ...said('Kimi', 'github.com/langgenius/dify/issues/39778', /not found the model/i),
  ...said(
    'MiniMax',
    'github.com/jlcodes99/cockpit-tools/issues/1431',
    /unknown model|model [^\n]{0,60}not support(?:ed)? (?:by|in) (?:your|the|this)[^\n]{0,20}plan|your current [^\n]{0,30}plan not support model/i,
  ),
  ...said(
    'Zhipu',
    GLM,
    /模型不存在|模型[^\n]{0,40}(?:已下线|已下架|不可用)|unknown model, please check the model code/i,
  ),
  ...said(
    'DashScope',
    QWEN,
    /model not exist|\bmodelnotfound\b|model\.accessdenied|model \S{0,90} is not supported\b(?! (?:parameter|in|with|for))/i,
  ),
  ...said(
    'Gemini',
    GOOGLE,
    /models\/\S{1,90} is not found|is not (?:found|supported) for api version|is no longer available|access tunedmodels/i,
  ),
  ...said(
    'Vertex AI',
    'https://cloud.google.com/vertex-ai/generative-ai/docs/error-codes',
    /publisher model [^\n]{0,90}(?:was|is) not (?:found|servable)|publisher model [^\n]{0,90} not found/i,
  ),
  ...said(
    'Bedrock',
    'github.com/RooCodeInc/Roo-Code/issues/9182',
    /provided model identifier is invalid/i,
  ),
  ...said(
    'Bedrock',
    'github.com/dirkpetersen/our-chat/issues/3',
    /access to the model with the specified model id/i,
  ),
  ...said(
    'Bedrock',
    'github.com/gsd-build/gsd-2/issues/5425',
    /model version has reached the end of its life|marked by provider as legacy/i,
  ),
  ...said(
    'Bedrock',
    'github.com/anthropics/claude-code/issues/1466',
    /on-demand throughput isn.t supported/i,
  ),
  ...said(
    'Azure',
    'github.com/chatboxai/chatbox/issues/646',
    /deploymentnotfound|api deployment for this resource does not exist/i,
  ),
  ...said(
    'Azure',
    'github.com/langchain-ai/langmem/issues/13',
    /operationnotsupported|operation does not work with the specified model/i,
  ),
  ...said(
    'NVIDIA',
    'github.com/NVIDIA/NemoClaw/issues/11902',
    /reached its end of life|end-of-life/i,
  ),
  ...said('Ollama', 'github.com/ollama/ollama', /model \S{0,90} not found|try pulling it first/i),
  ...said(
    'LM Studio',
    'github.com/trvon/agent',
    /failed to load model|model is unloaded|no models loaded|model \S{0,90} is not loaded/i,
  ),
  ...said('LocalAI', 'github.com/mudler/LocalAI/issues/1664', /could not load model/i),
  ...said('TabbyAPI', 'github.com/theroyallab/tabbyAPI', /no models are (?:currently )?loaded/i),
  ...said(
    'relays',
    'github.com/getkimchi/kimchi/pull/1176',
    /\bmodel_gone\b|model \S{0,90} has been (?:retired|removed|discontinued)/i,
  ),
  ...said('OpenRouter', OPENROUTER, /model [^.\n]{0,60}not available in your (?:region|country)/i),
  ...said(
    'Hugging Face',
    'https://huggingface.co/docs/inference-providers',
    /gated (?:repo|model)|not allowed to access model/i,
  ),
];

/** The place that the gateway asks from, or that the account belongs to. */
const REGION: readonly Wording[] = [
  ...said('Google', GOOGLE, /user location is not supported/i),
  ...said(
    'OpenAI',
    OPENAI,
    /unsupported_country_region_territory|country, region, or territory not supported/i,
  ),
  ...said(
    'Anthropic',
    ANTHROPIC,
    /not available in your (?:country|region)|unsupported (?:country|region|location)/i,
  ),
  ...said(
    'Bedrock',
    'github.com/anthropics/claude-code/issues/2656',
    /not (?:supported|allowed|available) (?:from|in) (?:unsupported |this |your )?(?:countries|country|region|location)/i,
  ),
  ...said(
    'Google',
    GOOGLE,
    /\bSERVICE_DISABLED\b|\bAPI_KEY_(?:HTTP_REFERRER|IP_ADDRESS|ANDROID_APP|IOS_APP)_BLOCKED\b/,
  ),
];

/** The client's own request names what its sender may not use: no fault of the key. */
const NOT_THE_KEY: readonly Wording[] = [
  ...said(
    'OpenAI',
    OPENAI,
    /mismatched_(?:organization|project)|openai-(?:organization|project) header/i,
  ),
  ...said('OpenAI', OPENAI, /no such (?:organization|project)|invalid_(?:organization|project)/i),
  ...said(
    'Google',
    'https://cloud.google.com/apis/docs/system-parameters',
    /\bUSER_PROJECT_DENIED\b|x-goog-user-project|permission to use project/i,
  ),
  ...said(
    'Gemini',
    GOOGLE,
    /permission to access the file\b|cachedcontent not found|access the cached ?content/i,
  ),
];

const RATE: readonly Wording[] = [
  ...said(
    'OpenAI, Groq, Mistral',
    OPENAI,
    /\brate.?limit(?:ed|s)?[ _](?:reached|exceeded|error)|requests? rate limit exceeded/i,
  ),
  ...said('Bedrock', AWS, /\bthrottl(?:ing|ed)(?:exception)?\b|too many requests/i),
  ...said('Google', GOOGLE, /\bRATE_LIMIT_EXCEEDED\b|\bRESOURCE_EXHAUSTED\b|ratelimitexceeded/i),
  ...said('Kimi', KIMI, /rate_limit_reached_error|max (?:organization )?concurrency/i),
  ...said('MiniMax', MINIMAX, /rate limit triggered/i),
  ...said('Zhipu', GLM, /并发数过高|请求频率|速率限制/),
];

/** Names of an overload that some vendors send with a 429. */
const BUSY_BY_NAME: readonly Wording[] = [
  ...said('Kimi', KIMI, /engine_overloaded/i),
  ...said(
    'Mistral',
    'https://docs.mistral.ai',
    /service_tier_capacity_exceeded|service tier capacity exceeded/i,
  ),
];

const BUSY: readonly Wording[] = [
  ...said('Anthropic', ANTHROPIC, /overloaded/i),
  ...said('DeepSeek, xAI', DEEPSEEK, /server_is_busy|server is (?:currently )?busy|at capacity/i),
  ...said('Zhipu', GLM, /访问量过大/),
  ...said('Groq', GROQ, /over capacity|no available (?:workers|capacity)/i),
  ...said('Bedrock', AWS, /modelnotreadyexception|serviceunavailableexception/i),
  ...said('Gemini', GOOGLE, /model is overloaded|experiencing high demand/i),
  ...said(
    'llama.cpp',
    'github.com/ggml-org/llama.cpp tools/server',
    /loading model|slot unavailable/i,
  ),
];

const refused = (status: number) => status === 401 || status === 403;
const limited = (status: number) => status === 429;
const failed = (status: number) => status >= 500;

/** In the order in which they are asked: what is about this request alone stands before what is about an account. */
export const WORDS_OF_KINDS: readonly KindOfWords[] = [
  { kind: 'too_large', retryable: false, at: (s) => s === 429 || s === 413, wordings: TOO_LARGE },
  { kind: 'content_filter', at: (s) => s !== 401 && !limited(s) && !failed(s), wordings: FLAGGED },
  {
    kind: 'context_overflow',
    retryable: false,
    at: (s) => !refused(s) && !limited(s),
    wordings: OVERFLOW,
  },
  { kind: 'invalid_request', retryable: false, at: refused, wordings: NOT_THE_KEY },
  { kind: 'authentication', at: (s) => s !== 429 && !failed(s), wordings: KEY },
  { kind: 'not_found', at: (s) => !limited(s) && s !== 401, wordings: MODEL },
  { kind: 'permission', at: (s) => !limited(s) && !failed(s), wordings: REGION },
  { kind: 'quota', retryable: false, at: (s) => s !== 401, wordings: QUOTA },
  { kind: 'billing', retryable: false, wordings: BILLING },
  { kind: 'overloaded', retryable: true, at: (s) => !refused(s), wordings: BUSY_BY_NAME },
  { kind: 'overloaded', at: (s) => failed(s) || s === 0 || s === 400, wordings: BUSY },
  { kind: 'rate_limit', at: (s) => s !== 401 && !failed(s) && s !== 413, wordings: RATE },
];

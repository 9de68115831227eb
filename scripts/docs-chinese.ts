/** The Chinese texts of docs/configuration.zh-CN.md. `bun scripts/docs.ts` fails if a text of the English page is missing here, or if one here is not used. */

/** Meanings of keys: English, as the schema has them, and Chinese. */
export const MEANINGS: Readonly<Record<string, string>> = {
  'The version of this file\'s format; the newest is 1. Older formats are still read, and "hopgate migrate" rewrites them; a newer one is refused.':
    '本文件的格式版本，最新为 1。旧格式仍可读取，可用 "hopgate migrate" 改写成新格式；比程序还新的格式会被拒绝。',
  'Address and port, such as "127.0.0.1:5520"; a port alone means loopback. Use a mapping to add TLS or trusted proxies.':
    '地址和端口，例如 "127.0.0.1:5520"；只写端口时监听回环地址。要设置 TLS 或受信任的代理，请写成映射。',
  'Address and port; a port alone means loopback.': '地址和端口；只写端口时监听回环地址。',
  'Serve HTTPS and WSS. Both files are watched, and read again on SIGHUP; open connections keep their certificate.':
    '提供 HTTPS 和 WSS。两个文件有变化时会自动重新读取，收到 SIGHUP 时也会；已建立的连接继续使用原来的证书。',
  'PEM file with the certificate, followed by any intermediate certificates.':
    'PEM 文件：先是证书，后面是中间证书（如果有）。',
  "PEM file with the certificate's key, without a passphrase.": 'PEM 文件：证书的私钥，不带口令。',
  "Addresses and blocks of the reverse proxies in front of this server, such as 10.0.0.0/8. Only their Forwarded and X-Forwarded-* headers are believed: the client's address, protocol and host.":
    '本服务前面各反向代理的地址和网段，例如 10.0.0.0/8。只采信它们发来的 Forwarded 和 X-Forwarded-* 头部，从中得知客户端的地址、协议和主机名。',
  'Origins whose web pages may use the API with a key, such as https://chat.example.com; "*" is every origin, where every request needs a key. Never for the page at /ui and the admin API.':
    '可以用密钥使用 API 的网页来源，例如 https://chat.example.com；"*" 表示所有来源，仅限每个请求都需要密钥的网关。/ui 的页面和管理 API 永远不在其列。',
  'Upstreams by name.': '上游，按名称列出。',
  'A vendor that hopgate knows; fills in whatever is left out below.':
    'hopgate 已知的厂商；下面没有写的各项由它补全。',
  'The protocol that the upstream speaks.': '上游使用的协议。',
  'The cloud that serves the models. vertex: Google Vertex AI, for anthropic-messages and google-gemini; bedrock: Amazon Bedrock, for anthropic-messages; azure: Azure OpenAI, for openai-responses and openai-chat.':
    '提供模型的云平台。vertex：Google Vertex AI，用于 anthropic-messages 和 google-gemini；bedrock：Amazon Bedrock，用于 anthropic-messages；azure：Azure OpenAI，用于 openai-responses 和 openai-chat。',
  'azure: the name of the resource, from which its address follows.':
    'azure：资源的名称，地址由它得出。',
  'azure: the tenant of Entra ID, where there are no keys.': 'azure：没有密钥时，Entra ID 的租户。',
  'azure: the application, or the managed identity of the machine, where there are no keys.':
    'azure：没有密钥时，使用的应用，或机器的托管身份。',
  'azure: what tokens of Entra ID are for, where there are no keys.':
    'azure：没有密钥时，Entra ID 令牌的用途。',
  'vertex: the Google Cloud project.': 'vertex：Google Cloud 项目。',
  'vertex: global, a region like europe-west1, or us or eu.':
    'vertex：global、europe-west1 之类的区域，或者 us、eu。',
  'vertex: a JSON file with the key of a service account, the login of a user, or the configuration of a federated identity.':
    'vertex：JSON 文件，内容是服务账号的密钥、用户的登录信息，或联合身份的配置。',
  'bedrock: the AWS region.': 'bedrock：AWS 区域。',
  'bedrock: the profile in the AWS configuration files.': 'bedrock：AWS 配置文件中的 profile。',
  "The base URL as the vendor's own SDK takes it: the part before /chat/completions, /responses, /v1/messages or /models/ (google-gemini; without a path, /v1beta is added). For a platform: the part before /projects/ (vertex), /model/ (bedrock) or /responses (azure; without a path, /openai/v1 is added).":
    '基础地址，写法与厂商自己的 SDK 相同：/chat/completions、/responses、/v1/messages 或 /models/ 之前的部分（/models/ 用于 google-gemini；没有路径时补上 /v1beta）。使用云平台时：/projects/（vertex）、/model/（bedrock）或 /responses（azure；没有路径时补上 /openai/v1）之前的部分。',
  'Keys, used in turn.': '密钥，轮流使用。',
  'The header that carries the key.': '携带密钥的头部。',
  'Vendor quirks by name; none = an unknown vendor.': '厂商特性的名称；none 表示厂商未知。',
  'Models that this provider serves, as the vendor spells them; with their facts if necessary.':
    '这个提供方的模型，名称按厂商的写法；必要时附上模型的信息。',
  'A model name.': '模型名称。',
  'Size of its context window in tokens.': '上下文窗口的 token 数。',
  'The most tokens that an answer can have.': '一个回答的最大 token 数。',
  'Whether it can call tools.': '能否调用工具。',
  'Whether it can reason.': '能否推理。',
  'Kinds of input that it accepts.': '接受的输入类型。',
  'As prompt_cache of the provider, for this model.': '同提供方的 prompt_cache，用于这个模型。',
  'Whether the gateway has the vendor keep the prompt for the next turn, where the client cannot ask for that; 1h: for an hour, where the vendor offers that, else for its usual time.':
    '客户端自己无法要求时，网关是否让厂商为下一轮保留提示词；1h：在厂商支持时保留一小时，否则保留其通常的时间。',
  "Takes Anthropic's cache marks (cache_control): on blocks of Messages, on parts of Chat.":
    '接受 Anthropic 的缓存标记（cache_control）：Messages 的块上，Chat 的部分上。',
  'Messages: takes a cache mark at the top of the body.': 'Messages：接受请求体顶层的缓存标记。',
  'Chat, Responses: takes prompt_cache_key and explicit cache breakpoints at addresses of this host.':
    'Chat、Responses：在这个主机的地址上接受 prompt_cache_key 和显式的缓存断点。',
  'Prices by model name or glob. An exact name takes precedence over globs; globs are tried in the order of the file. They override the prices that hopgate knows.':
    '价格，按模型名称或通配符列出。完整的名称优先于通配符，通配符按文件中的顺序匹配。这里的价格优先于 hopgate 自带的价格。',
  'USD per million prompt tokens.': '提示词价格，美元/百万 token。',
  'USD per million generated tokens, reasoning included.':
    '生成内容的价格，美元/百万 token，包括推理。',
  "USD per million prompt tokens read from the vendor's cache.":
    '从厂商缓存读取的提示词的价格，美元/百万 token。',
  'USD per million prompt tokens written to the cache.':
    '写入缓存的提示词的价格，美元/百万 token。',
  'USD per million prompt tokens written to the cache for one hour.':
    '写入缓存并保留一小时的提示词的价格，美元/百万 token。',
  'USD per million tokens of reasoning.': '推理价格，美元/百万 token。',
  "USD per thousand searches that the vendor's own tool made.":
    '厂商自己的工具的搜索价格，美元/千次。',
  'USD per thousand requests that were answered.': '得到回答的请求的价格，美元/千个。',
  'Other prices for some requests. The last tier that applies is used.':
    '某些请求的另外价格。有几档符合时，以最后一档为准。',
  'Only for requests with more prompt tokens than this, cached ones included.':
    '仅用于提示词 token 数（包括缓存的）超过此值的请求。',
  'Only for requests that were served in this tier, as the answer names it; if it names none, for requests that ask for this `service_tier`.':
    '仅用于按这个档位处理的请求，以应答中写明的为准；应答未写明时，用于指定了这个 `service_tier` 的请求。',
  'USD per million generated tokens.': '生成内容的价格，美元/百万 token。',
  'The day (UTC) from which this price applies.': '价格开始生效的日期（UTC）。',
  'Header name → value, sent with every request.': '头部名称 → 值，随每个请求发送。',
  'Parameter → value, appended to the URL.': '参数 → 值，附加在 URL 之后。',
  'What else of a client goes on to this upstream where it speaks its protocol, such as x-team or x-team-*. What the protocols and agents need goes on without being named.':
    '上游与客户端使用同一协议时，还要转发给这个上游的客户端请求头，例如 x-team 或 x-team-*。协议本身的和智能体的请求头不必列出，总会转发。',
  'Send traceparent, tracestate and baggage to this upstream, so that its spans join the trace of the exchange.':
    '向这个上游发送 traceparent、tracestate 和 baggage，使它的 span 归入这个请求的追踪。',
  'How long this upstream may take.': '这个上游的各项时限。',
  'Seconds until a new connection is established, TLS included; 0 = no limit. Does not apply through a proxy or over HTTP/2.':
    '建立新连接的时限（秒），包括 TLS 握手；0 表示不限。经过代理或使用 HTTP/2 时不适用。',
  'Seconds until the response begins; 0 = no limit.': '等待响应开始的时限（秒）；0 表示不限。',
  'Seconds between two chunks of a stream; 0 = no limit.':
    '流中两个数据块之间的时限（秒）；0 表示不限。',
  'Seconds without content once a response has begun, even if comments, pings or empty frames keep the connection alive; 0 = no limit.':
    '响应开始之后允许没有内容的时限（秒），即使有注释、ping 或空帧维持连接；0 表示不限。',
  'Seconds for the whole exchange with the upstream; 0 = no limit.':
    '对上游的整个请求的时限（秒）；0 表示不限。',
  'Retries of this upstream.': '对这个上游的重试。',
  'Tries on one target before the next target is used, including the first try.':
    '在一个目标上尝试多少次才换下一个目标，包括第一次。',
  'Seconds before the second try; doubles with each further one, with jitter.':
    '第二次尝试之前等待的秒数；之后每次加倍，并有随机浮动。',
  'The longest pause between two tries, in seconds.': '两次尝试之间的最长间隔，单位为秒。',
  'The longest time in seconds that a key or a target rests after refusals or failures, whatever Retry-After says.':
    '密钥或目标在被拒绝或失败之后最多暂停多少秒，无论 Retry-After 是多少。',
  'Send a second request, to another key or target, when a stream takes longer to begin than 95 of 100 others; the faster one answers. This happens for at most 5 of 100 requests, and the vendor charges for both.':
    '某个流迟迟不开始，比 100 个流中的 95 个都慢时，用另一个密钥或向另一个目标再发一个请求，采用先到的回答。100 个请求中最多 5 个这样做；厂商对两个请求都会计费。',
  'An HTTP proxy for this upstream. The no_proxy of the environment applies to it, too.':
    '连接这个上游所用的 HTTP 代理。环境变量 no_proxy 对它同样有效。',
  'Speak HTTP/2 to this upstream.': '对这个上游使用 HTTP/2。',
  "Use the upstream's WebSocket for streams; only with openai-responses. If its handshake fails, HTTP is used, with a note.":
    '流式请求使用上游的 WebSocket；仅用于 openai-responses。握手失败时改用 HTTP，并带有标记。',
  'Requests at the same time; 0 = no limit. Further requests go to another target of their route that has room, or else wait.':
    '同时进行的请求数；0 表示不限。超出的请求改发给路由中另一个有空余的目标；没有这样的目标时等待。',
  'TLS towards this upstream.': '与这个上游之间的 TLS。',
  "Check the upstream's certificate.": '检查上游的证书。',
  'PEM file with further certificate authorities.': 'PEM 文件：额外的证书颁发机构。',
  'PEM file with a client certificate.': 'PEM 文件：客户端证书。',
  "PEM file with the client certificate's key.": 'PEM 文件：客户端证书的私钥。',
  'Rules; the first one that matches decides.': '路由规则；第一条匹配的规则生效。',
  'A name for logs and explanations.': '名称，用于日志和路由的解释。',
  'Conditions; all that are given must hold.': '条件；写出的必须全部满足。',
  'The model name that the client asked for, after aliases.':
    '客户端请求的模型名称，已按别名替换。',
  'The protocol that the client speaks.': '客户端使用的协议。',
  'The category that the classifier finds.': '分类器得出的类别。',
  'Size of the prompt, estimated: ">60000", "<=1000", "1k..5k" or a number; "<80%": less than this share of the context window of the first target in `to`.':
    '提示词的大小（估算值）：">60000"、"<=1000"、"1k..5k" 或一个数字；"<80%" 表示不到 `to` 中第一个目标的上下文窗口的 80%。',
  'Whether the client asked for a stream.': '客户端是否要求流式回答。',
  'Images in the last user turn: true = some, false = none, or a range such as ">10".':
    '最后一轮用户消息中的图片：true 表示有，false 表示没有，也可以写 ">10" 之类的范围。',
  'PDFs and other files in the prompt: true = some, false = none, or a range such as ">10".':
    '提示词中的 PDF 和其他文件：true 表示有，false 表示没有，也可以写 ">10" 之类的范围。',
  'Tools of any kind: true = some, false = none, or a range such as ">10".':
    '任何类型的工具：true 表示有，false 表示没有，也可以写 ">10" 之类的范围。',
  "Names of the client's own tools; one match is enough.":
    '客户端自己的工具的名称；有一个匹配即可。',
  'Names of hosted tools such as web_search; one match is enough.':
    'web_search 等托管工具的名称；有一个匹配即可。',
  'Whether the client wants reasoning.': '客户端是否要求推理。',
  'The reasoning effort that the client asked for.': '客户端要求的推理强度。',
  'Whether this looks like a side job (a title, a summary).': '是否像辅助任务（标题、摘要）。',
  'Header name → globs; true = present, false = absent.':
    '头部名称 → 通配符；true 表示存在，false 表示不存在。',
  'The text of the last user turn ("*urgent*").': '最后一轮用户消息的文本（"*urgent*"）。',
  'A time of day such as "22:00-06:00", or a mapping with hours, days and zone.':
    '一天中的时间段，例如 "22:00-06:00"；也可以分别写出时间段、星期和时区。',
  'Start and end, such as "22:00-06:00"; the end is excluded.':
    '起止时间，例如 "22:00-06:00"；不含结束时刻。',
  'Days on which the window begins.': '时间段在星期几开始。',
  'IANA time zone, such as "Europe/Berlin".': 'IANA 时区，例如 "Europe/Berlin"。',
  'Targets in fallback order.': '目标，按备用的顺序。',
  'provider/model; provider/* keeps the name that was requested.':
    'provider/model；provider/* 保留请求中的名称。',
  'Share of the requests that try this target first; the other targets are fallbacks.':
    '有多大份额的请求首先尝试这个目标；其他目标作为备用。',
  "Which of the route's exchanges are kept on disk.": '这条路由的哪些请求保留在磁盘上。',
  'Other names for models.': '模型的其他名称。',
  'The model that answers name: as the vendor calls it, or as the client asked for it. Some agents keep the name of an answer and ask for it again, or know the names of their own vendor only; for them: requested.':
    '回答中写的模型名：厂商的叫法（vendor），或客户端请求时的名称（requested）。有些智能体会记住回答中的名称并再次请求它，或者只认识自家厂商的名称，请为它们选择 requested。',
  'What GET /v1/models shows.': 'GET /v1/models 显示什么。',
  'Also list every model as claude-<provider>/<model>, for clients that show only names that begin with claude.':
    '每个模型再以 claude-<provider>/<model> 列出一次，供只显示 claude 开头的名称的客户端使用。',
  'Settings of the classifier behind `when: { category: … }`.':
    '`when: { category: … }` 所用分类器的设置。',
  'Tokens above which a prompt is longcontext.': '提示词超过这么多 token 时，类别为 longcontext。',
  'Model names that agents use for small side jobs.': '编程智能体在小型辅助任务中使用的模型名称。',
  'Names of tools that only an agent that edits code has; case does not matter.':
    '只有编辑代码的智能体才有的工具的名称；不区分大小写。',
  'Vendor quirks by name; they override the built-in ones.':
    '厂商特性，按名称列出；优先于内置的特性。',
  'The profile that this one starts from.': '以哪个特性为基础。',
  'Top-level body keys that the vendor refuses.': '请求体中厂商会拒绝的顶层字段。',
  'Top-level body keys that have another name at this vendor.':
    '请求体中在这家厂商另有名称的顶层字段。',
  'Messages: beta flags (globs) that the vendor takes; others are dropped, with the fields that belong to them.':
    'Messages：厂商接受的 beta 标志（通配符）；其他标志连同属于它们的字段一起去掉。',
  'Messages: fields of betas that the vendor takes without the flag, by path.':
    'Messages：没有标志时厂商也接受的 beta 字段，按路径列出。',
  'Messages: beta flags that have another name at this vendor.':
    'Messages：在这家厂商另有名称的 beta 标志。',
  'Chat: the name of the output cap.': 'Chat：输出上限的字段名称。',
  'Messages: the output cap when the client sets none.': 'Messages：客户端没有设置时的输出上限。',
  'Responses: the smallest output cap that the vendor accepts.':
    'Responses：厂商接受的最小输出上限。',
  'The largest output cap that the vendor accepts; larger ones are lowered to it. `output` of a model sets it, too.':
    '厂商接受的最大输出上限；更大的会降到它。模型的 `output` 也会设置它。',
  'Tool choices that the vendor accepts.': '厂商接受的工具选择方式。',
  'Tool choices that the vendor accepts while the model reasons.':
    '模型推理时，厂商接受的工具选择方式。',
  'Temperatures that the vendor accepts.': '厂商接受的温度。',
  'The minimum, included.': '最小值，包含在内。',
  'The maximum, included.': '最大值，包含在内。',
  'Values of top_p that the vendor accepts.': '厂商接受的 top_p 值。',
  'Messages: accepts temperature and top_p in one request.':
    'Messages：一个请求中可以同时有 temperature 和 top_p。',
  'How many stop sequences the vendor accepts.': '厂商接受的停止序列的数量。',
  'Accepts temperature, top_p, penalties and log-probabilities while the model reasons.':
    '模型推理时，接受 temperature、top_p、惩罚项和对数概率。',
  'Chat: usage in streams is requested with stream_options.include_usage.':
    'Chat：要在流中得到用量，须设置 stream_options.include_usage。',
  'Accepts parallel_tool_calls / disable_parallel_tool_use.':
    '接受 parallel_tool_calls / disable_parallel_tool_use。',
  'Accepts `strict` on function tools.': '函数工具上可以有 `strict`。',
  "Accepts anyOf, oneOf, allOf, enum and not at the root of a tool's schema.":
    '工具的模式在根上可以有 anyOf、oneOf、allOf、enum 和 not。',
  'Chat: accepts the file ids that a Responses client sends.':
    'Chat：接受 Responses 客户端发送的文件 id。',
  'Accepts json_schema output formats.': '接受输出格式 json_schema。',
  'Chat: accepts the role developer.': 'Chat：接受 developer 角色。',
  'Accepts role system (Chat: developer, too) after the first message.':
    '第一条消息之后可以有 system 角色（Chat：还有 developer）。',
  'Images can be sent.': '可以发送图片。',
  'Images can be sent inside tool results.': '工具结果中可以有图片。',
  'PDF and other files can be sent.': '可以发送 PDF 和其他文件。',
  'Messages: accepts a conversation that ends with an assistant message.':
    'Messages：接受以助手消息结尾的对话。',
  'Messages: refuses a conversation that begins with an assistant message.':
    'Messages：拒绝以助手消息开头的对话。',
  'Refuses a conversation without any user message.': '拒绝没有用户消息的对话。',
  'Chat, Messages: accepts consecutive messages of the user, or of the assistant.':
    'Chat、Messages：可以有连续的用户消息或连续的助手消息。',
  'Chat: accepts several tool calls in one assistant message of the history.':
    'Chat：历史中的一条助手消息可以有多个工具调用。',
  'A user message may follow tool messages directly.': '用户消息可以紧跟在工具消息之后。',
  'The only form of tool call ids that the vendor accepts; short: at most 40 letters, digits, _ and -.':
    '厂商只接受这种形式的工具调用 id；short：最多 40 个字母、数字、_ 和 -。',
  "The last round's tool results are sent as short text.": '最后一轮的工具结果以较短的文本发送。',
  'Chat: the field in which reasoning is sent back.': 'Chat：发回推理内容所用的字段。',
  'Chat: how reasoning is asked for. none, in every protocol: reasoning settings are dropped.':
    'Chat：要求推理的方式。none（所有协议）：去掉推理设置。',
  'Messages: accepts thinking.type adaptive with output_config.effort.':
    'Messages：接受 thinking.type 为 adaptive，并用 output_config.effort 指定强度。',
  'Messages: accepts thinking.type enabled with a budget.':
    'Messages：接受 thinking.type 为 enabled，并带有预算。',
  'Messages: the thinking.type that switches reasoning off.':
    'Messages：关闭推理的 thinking.type。',
  'Messages: the vendor refuses thinking behind another prefix. It is asked to drop it (thinking.block_binding) where the gateway changed the request, or always.':
    'Messages：厂商拒绝前文已变的思考内容。在网关改动过请求时（changed）或始终（always），通过 thinking.block_binding 请厂商丢弃它。',
  'Chat: accepts function tools while the model reasons.': 'Chat：模型推理时接受函数工具。',
  'Messages: accepts thinking blocks with any signature.': 'Messages：接受带任意签名的思考块。',
  'Gemini: controls reasoning by thinkingLevel, not by thinkingBudget.':
    'Gemini：用 thinkingLevel 控制推理，而不是 thinkingBudget。',
  'Gemini: refuses calls of the history without a thought signature.':
    'Gemini：历史中的调用没有思考签名时会拒绝。',
  'Gemini: accepts parametersJsonSchema.': 'Gemini：接受 parametersJsonSchema。',
  'Runs hosted tools beside functions; `false`: the gateway runs them instead, if it can.':
    '除函数外还能同时执行托管工具；`false`：由网关代为执行（如果网关能执行）。',
  'Gemini: accepts a JSON output format beside functions.':
    'Gemini：除函数外还可以同时有 JSON 输出格式。',
  'Whether the model reasons when the request does not say; always: it cannot be switched off.':
    '请求没有写明时，模型是否推理；always：不能关闭。',
  'Reasoning efforts that are accepted; others become the nearest one.':
    '接受的推理强度；其他强度换成最接近的一个。',
  'Chat: assistant messages that must carry reasoning while the model reasons.':
    'Chat：模型推理时，哪些助手消息必须带有推理内容。',
  "The vendor's own error codes.": '厂商自己的错误代码。',
  'What the code means.': '这个代码的含义。',
  'Whether the same request can succeed a moment later.': '同样的请求片刻之后是否可能成功。',
  "The same by a part of the error's message, for errors without a code of their own.":
    '同上，按错误信息中的一段文字判断，用于没有代码的错误。',
  'What the message means.': '这段文字的含义。',
  'Families of leaked tool calls to look for; empty: none.':
    '要查找哪几类泄漏的工具调用；空表示不查找。',
  'Hosted tools that the vendor serves itself.': '厂商自己提供的托管工具。',
  'Responses: keeps responses for previous_response_id.':
    'Responses：保存响应，供 previous_response_id 使用。',
  'Responses: compacts conversations itself (input item compaction_trigger).':
    'Responses：自己会压缩对话（输入项 compaction_trigger）。',
  'Messages: has /v1/messages/count_tokens.': 'Messages：提供 /v1/messages/count_tokens。',
  'Facts about single models, by glob of their names. Later entries override earlier ones.':
    '个别模型的特性，按模型名称的通配符列出；后面的优先于前面的。',
  'Who may use the gateway.': '谁可以使用网关。',
  'Keys that clients may use; none = every client that reaches the port is served.':
    '客户端可以使用的密钥；没有时，能连到端口的客户端都可以使用。',
  'Who reads /metrics, /health/targets and /health/engines where keys are needed: admin keys and keys that see all, every key, or everybody who reaches the port.':
    '需要密钥时谁可以读取 /metrics、/health/targets 和 /health/engines：管理密钥和能看到全部的密钥、每个密钥，或能连到端口的任何人。',
  'A name for logs.': '用于日志的名称。',
  'The key.': '密钥。',
  'Which recorded exchanges the key shows in the browser: those made with it, or all.':
    '这个密钥在浏览器中能看到哪些记录下来的请求：用它发送的，或者全部。',
  'Names and values of your choice; budgets select keys by them.':
    '自定义的名称和值；预算按它们选择密钥。',
  'Models that the key may use: names as clients ask for them, or provider/model for targets.':
    '密钥可以使用的模型：写客户端请求的名称，或者写 provider/model 表示目标。',
  'Server tools that the key may use, by name: web_search, or that of an HTTP or MCP tool.':
    '密钥可以使用的服务端工具的名称：web_search，或者某个 HTTP 或 MCP 工具的名称。',
  'Routes that may serve the key.': '可以为这个密钥服务的路由。',
  'Memory spaces that the key may use.': '密钥可以使用的记忆空间。',
  'A date (its first moment in UTC) or a time with its zone, such as "2027-01-01T00:00:00Z".':
    '日期（UTC 当天零点）或带时区的时间，例如 "2027-01-01T00:00:00Z"。',
  'How much the key may use.': '密钥可以用多少。',
  'Requests per minute, spread evenly.': '每分钟的请求数，匀速恢复。',
  'Tokens per minute, spread evenly.': '每分钟的 token 数，匀速恢复。',
  'Requests at the same time, streams included.': '同时进行的请求数，包括流。',
  'Budgets in USD; all of them apply.': '美元预算；全部同时有效。',
  'A name for messages. Spend is counted under it.':
    '消息中使用的名称。已花费的金额记在这个名称之下。',
  'The amount in USD.': '金额，单位为美元。',
  'The calendar period of the amount; each period starts at zero. `total` never ends.':
    '金额所对应的日历周期；每个周期从零开始。`total` 永不结束。',
  'The IANA time zone in which periods begin, such as "Europe/Berlin".':
    '周期起点所用的 IANA 时区，例如 "Europe/Berlin"。',
  'Shares of the amount at which a warning is sent, each once per period.':
    '花费达到金额的这些比例时发出警告，每个周期各一次。',
  'What happens when the amount is spent: `refuse`, `warn`, or the name of a route.':
    '金额用完之后怎么办：`refuse`、`warn`，或者一条路由的名称。',
  'An address that gets a POST for each warning, and when the amount is spent.':
    '每次警告时，以及金额用完时，向这个地址发送 POST。',
  'Keys for the admin API (/admin/v1), never for model requests; none = it is switched off. With one, clients need a key: one of auth.keys, or one made at run time.':
    '管理 API（/admin/v1）的密钥，绝不能用于模型请求；没有时，管理 API 关闭。设置之后，客户端也需要密钥：auth.keys 中的一个，或者运行时新建的一个。',
  'People with a token from an identity provider. The settings of a key given here apply to each of them.':
    '持有身份提供方令牌的人。写在这里的密钥设置适用于他们每个人。',
  'The `iss` that a token must have.': '令牌的 `iss` 必须是这个值。',
  'The `aud` that a token must have; of a list, one is enough.':
    '令牌的 `aud` 必须是这个值；写成列表时，符合其中一个即可。',
  'The key set (JWKS) of the issuer: an https:// URL or a file.':
    '签发方的公钥集（JWKS）：https:// 地址或文件。',
  'Algorithms that are accepted; those with shared secrets never are.':
    '接受的算法；使用共享密钥的算法一概不接受。',
  "Seconds by which the issuer's clock may differ.": '签发方的时钟允许相差的秒数。',
  'Settings that are taken from the claims of a token.': '从令牌的声明（claim）中取得的设置。',
  'The claim that holds the name for logs: its name, or a JSON pointer ("/org/team").':
    '含有日志所用名称的声明：它的名称，或 JSON 指针（"/org/team"）。',
  'Labels, and the claims that give them.': '标签，以及给出标签的声明。',
  'The claim that holds a list of models, as `models` of a key: its name, or a JSON pointer ("/org/team").':
    '含有模型列表的声明，与密钥的 `models` 相同：它的名称，或 JSON 指针（"/org/team"）。',
  'The claim that holds a list of server tools: its name, or a JSON pointer ("/org/team").':
    '含有服务端工具列表的声明：它的名称，或 JSON 指针（"/org/team"）。',
  'The claim that holds a list of routes: its name, or a JSON pointer ("/org/team").':
    '含有路由列表的声明：它的名称，或 JSON 指针（"/org/team"）。',
  'The claim that holds a list of memory spaces: its name, or a JSON pointer ("/org/team").':
    '含有记忆空间列表的声明：它的名称，或 JSON 指针（"/org/team"）。',
  'Budgets that keys share. A budget without `keys` is shared by all requests.':
    '多个密钥共用的预算。没有 `keys` 的预算由所有请求共用。',
  'The keys that share the budget: those that have each of these labels.':
    '共用这个预算的密钥：带有这里每一个标签的密钥。',
  'How long an upstream may take.': '上游的各项时限。',
  'What happens when a try fails before the client has received anything.':
    '一次尝试在客户端收到任何内容之前失败时怎么办。',
  'Limits on sizes, concurrency and waiting times.': '对大小、并发和等待时间的限制。',
  'The largest number of follow-up hops of server tools; the last one is sent without them.':
    '服务端工具最多引起多少个后续跳；最后一跳发送时不带这些工具。',
  'The largest request body.': '请求体的大小上限。',
  'The largest form (multipart/form-data), for audio and images.':
    '表单（multipart/form-data）的大小上限，用于音频和图片。',
  'Bytes of a form that are kept until the request is over, in a temporary file if necessary. A form up to this size is read and checked before anything is sent, and can be sent again; in a larger form, the field model must be within these bytes.':
    '表单中保留到请求结束的字节数，必要时放在临时文件中。不超过此大小的表单先读入并检查，然后才发送，也可以再次发送；更大的表单中，model 字段必须位于这些字节之内。',
  'The largest number of messages, content blocks and tools in a request that the gateway has to decode. A request with more gets a 400; 0 = no limit.':
    '需要网关解码的请求中，消息、内容块和工具的数量上限。超出时返回 400；0 表示不限。',
  'The largest upstream response that is read as a whole, and the most text of a stream that is translated. Counted after decompression. A larger one is cut off, and the client gets an error.':
    '整体读取的上游响应的大小上限，也是转换的流的文本量上限。按解压后计算。超出时切断，客户端得到一个错误。',
  "The largest single event of an upstream's stream, and the most bytes of a stream without content (comments, pings, empty frames).":
    '上游的流中单个事件的大小上限，也是流中没有内容的数据（注释、ping、空帧）的字节数上限。',
  "The largest size of an upstream's headers in bytes.": '上游响应头的字节数上限。',
  "The largest number of header lines in an upstream's response.": '上游响应头的行数上限。',
  "Characters of a tool result's text, for vendors that need it short; 0 = no limit.":
    '工具结果文本的字符数，用于只能处理短结果的厂商；0 表示不限。',
  'Requests at the same time over all providers; 0 = no limit.':
    '所有提供方合计同时进行的请求数；0 表示不限。',
  'Seconds after which an idle connection of a client is closed; it can take up to eight seconds longer. 0 = never.':
    '客户端的连接连续多少秒没有请求时关闭，最多再晚八秒；0 表示不关闭。',
  'Seconds within which the next 64 KB of a request body (or its end) must arrive. Otherwise the connection is closed, up to eight seconds later; 0 = no limit.':
    '请求体的下一个 64 KB（或结尾）必须在多少秒之内到达。否则关闭连接，最多再晚八秒；0 表示不限。',
  'Bytes of request bodies that have come in part or are being decompressed, of all clients together. One key, or without keys one address, may hold three times what is free for others. A request beyond that gets a 503; 0 = no limit.':
    '所有客户端合计，正在接收或解压的请求体的字节数。一个密钥（没有密钥时是一个地址）最多占用留给其他客户端的空闲量的三倍。超出的请求得到 503；0 表示不限。',
  'Bytes of request bodies of 256 KB or more whose requests are in progress, of all clients together. One key, or without keys one address, may hold three times what is free for others. A request beyond that gets a 503; 0 = no limit.':
    '所有客户端合计，正在处理的请求中 256 KB 及以上的请求体的字节数。一个密钥（没有密钥时是一个地址）最多占用留给其他客户端的空闲量的三倍。超出的请求得到 503；0 表示不限。',
  'Memory for the last turn of each session whose requests have 64 KB or more, so that only what the next turn adds has to be processed. The oldest are removed first. A body larger than an eighth of this is not kept; 0 = nothing is kept.':
    '用于保留各会话最近一轮的内存，仅限请求达到 64 KB 的会话；这样，下一轮只需处理新增的内容。最早的先删除。超过这个内存八分之一的请求体不保留；0 表示什么都不保留。',
  'Minutes after which a WebSocket of the Responses API is closed, after an error frame; 0 = never.':
    'Responses API 的 WebSocket 在多少分钟后关闭，关闭前发送一个错误帧；0 表示不关闭。',
  'Seconds for which a stopping server still takes requests while /readyz answers 503, so that a load balancer notices it.':
    '停止服务时，/readyz 返回 503 而仍然接收请求的秒数，让负载均衡器有时间察觉。',
  'Seconds that a stopping server waits for open streams.': '停止服务时，等待未结束的流的秒数。',
  "Seconds of silence on a client's stream after which a ping is sent; 0 = never.":
    '客户端的流连续多少秒没有数据时发送 ping；0 表示不发送。',
  'Processes that share the port.': '共用端口的进程数。',
  'Which streams to clients are checked against their protocol: none, one in twenty, or all. A violation is logged and counted, never repaired.':
    '发给客户端的流，哪些要按协议检查：都不检查、二十个中检查一个，或者全部检查。违反之处记入日志并计数，但绝不修复。',
  'Models without a price: count = they are used, but their cost is unknown and no budget counts it; refuse = they are not used.':
    '没有价格的模型：count = 可以使用，但费用未知，不计入任何预算；refuse = 不使用。',
  'What requests cost: one row for each try at an upstream, in `$HOPGATE_HOME/state/spend.db`, and in `engines.database` where there is one.':
    '请求的费用：对上游的每次尝试有一条记录，写入 `$HOPGATE_HOME/state/spend.db`；配置了 `engines.database` 时也写入那里。',
  'Days after which the rows of single tries are deleted; 0 = never. In a shared database they are deleted by whole months. Totals stay.':
    '单次尝试的记录在多少天后删除；0 表示不删除。共享数据库中按整月删除。合计保留。',
  'Days after which totals by hour, day and month are deleted; 0 = never.':
    '按小时、天和月的合计在多少天后删除；0 表示不删除。',
  'Engines that several gateways share. Each is optional and independent; state without an engine stays on each machine.':
    '多个网关共享的引擎。每个引擎都是可选的，彼此独立；没有对应引擎的状态留在各自的机器上。',
  'Valkey or Redis, for rates and concurrent requests of keys, the state of turns, and the health of vendors: `redis://user:password@host:6379/0`, `rediss://…` for TLS, `redis+sentinel://host1:26379,host2:26379/primary-name/0`, `redis+cluster://host1:6379,host2:6379`. `?ca_file=PATH` trusts your own certificate authority, `?sentinel_password=…` is the password of the sentinels, if they have one.':
    'Valkey 或 Redis，用于密钥的速率和并发数、轮次的状态和厂商的健康状态：`redis://user:password@host:6379/0`；`rediss://…` 使用 TLS；`redis+sentinel://host1:26379,host2:26379/primary-name/0`；`redis+cluster://host1:6379,host2:6379`。`?ca_file=PATH` 表示信任你自己的证书颁发机构；哨兵有密码时用 `?sentinel_password=…` 给出。',
  'Postgres, for keys made at run time, budgets, spend, stored responses, memory, and the list of recorded exchanges: `postgres://user:password@host:5432/database`. The usual parameters apply, e.g. `?sslmode=verify-full&sslrootcert=PATH`.':
    'Postgres，用于运行时新建的密钥、预算、费用、保存的响应、记忆，以及所记录请求的列表：`postgres://user:password@host:5432/database`。常用的参数都可以写，例如 `?sslmode=verify-full&sslrootcert=PATH`。',
  'A store with the S3 API, for bodies of recorded exchanges; it also needs `database`: `s3://bucket/prefix?region=eu-central-1`, with `&endpoint=https://host` for your own store. Its key is in `s3://KEY:SECRET@bucket/…` or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.':
    '兼容 S3 的存储，用于所记录请求的内容；同时需要 `database`：`s3://bucket/prefix?region=eu-central-1`，使用自己的存储时加上 `&endpoint=https://host`。密钥写在 `s3://KEY:SECRET@bucket/…` 中，或者取自 AWS_ACCESS_KEY_ID 和 AWS_SECRET_ACCESS_KEY。',
  'Secrets with which texts (conversations, tool results, memory, recorded exchanges) are encrypted before they are stored in an engine. The first one encrypts, all of them decrypt: to change it, put the new one first, and remove the old one when what it encrypted has expired. Empty: texts are stored as they are.':
    '文本（对话、工具结果、记忆、记录的请求）写入引擎之前用来加密的密钥。第一个用于加密，全部都可用于解密：更换时把新密钥放在最前面，等旧密钥加密的内容过期后再删去旧密钥。留空表示文本按原样存储。',
  'Rates and concurrent requests while the cache is away: local = each replica applies its share of each limit, open = no limit applies, closed = keys with such limits are refused.':
    '缓存不可用时如何处理速率和并发数：local = 每个副本按自己的份额执行各项限额，open = 不限制，closed = 拒绝有此类限额的密钥。',
  'Recording of exchanges.': '请求的记录。',
  'Which exchanges are kept on disk, credentials masked.': '哪些请求保留在磁盘上，凭据已屏蔽。',
  'The folder.': '目录。',
  'Days after which a sample is deleted; 0 = never.': '样本在多少天后删除；0 表示不删除。',
  'The same for exchanges in which something failed; 0 = never.':
    '同上，用于有失败的请求；0 表示不删除。',
  'Above this size the oldest are deleted, failed ones last. When very many arrive at once, the size may be exceeded by a tenth and by what is being written. 0 = no limit.':
    '超过此大小时删除最早的样本，失败的最后删除。短时间内样本极多时，可能超出十分之一，外加正在写入的部分。0 表示不限。',
  'Above this number the oldest of the key that has most are deleted; failed ones are counted separately. When very many arrive at once, the number may be exceeded by a tenth and a few hundred. 0 = no limit.':
    '超过此数量时，从样本最多的密钥开始删除其最早的样本，失败的另行计数。短时间内样本极多时，可能超出十分之一再加几百个。0 表示不限。',
  'Content that is blanked in recorded bodies; structure and lengths stay.':
    '记录的内容中要清空的部分；结构和长度不变。',
  'Tools that the gateway runs itself.': '网关自己执行的工具。',
  'Web search for models that have none.': '为没有网页搜索的模型提供网页搜索。',
  'When the tool is offered: always, if the request seems to need it, or if the client declared it.':
    '何时提供这个工具：总是提供、请求看来需要时提供，或者客户端声明了它时提供。',
  'Engines in fallback order.': '搜索引擎，按备用的顺序。',
  'What kind of engine; docs = this manual.': '引擎的类型；docs 表示本手册。',
  'Its address.': '引擎的地址。',
  'For the type model: the provider/model that searches with its own hosted tool.':
    '类型为 model 时：由哪个 provider/model 用自己的托管工具搜索。',
  "Further parameters of the engine's API.": '引擎 API 的其他参数。',
  'Results handed to the model.': '交给模型的结果数。',
  'Seconds for one search.': '一次搜索的秒数。',
  'Descriptions of images for models that read text only.': '为只读文本的模型描述图片。',
  'The provider/model that describes images for a text model.':
    '由哪个 provider/model 为文本模型描述图片。',
  'The instruction for it.': '给它的指令。',
  'Seconds for one image.': '一张图片的秒数。',
  'Reading web pages for models that cannot do it themselves.': '为不能读取网页的模型读取网页。',
  'When the tool is offered: always, if the user wrote a URL, or if the client declared it.':
    '何时提供这个工具：总是提供、用户写了 URL 时提供，或者客户端声明了它时提供。',
  'Seconds for one page, redirects included.': '一个网页的秒数，包括重定向。',
  'Bytes read of one page.': '一个网页读取的字节数。',
  'Characters handed to the model at a time.': '一次交给模型的字符数。',
  'Redirects followed.': '最多跟随的重定向次数。',
  'Pages for one request.': '一个请求可以读取的网页数。',
  'Addresses that may be fetched although they are not on the public internet.':
    '不在公网上、但允许读取的地址。',
  'Tools that are HTTP requests, by name.': '以 HTTP 请求实现的工具，按名称列出。',
  'The description that the model gets: what the tool does.': '模型得到的说明：工具做什么。',
  'Its address; {name} after the host is replaced by that argument.':
    '工具的地址；主机名之后的 {name} 替换为同名的参数。',
  'The HTTP method.': 'HTTP 方法。',
  'JSON Schema of the arguments. Those not in the URL go into the query (GET, DELETE) or the JSON body; x-in: query or body on a property decides otherwise, x-name renames it.':
    '参数的 JSON Schema。不在 URL 中的参数放入查询字符串（GET、DELETE）或 JSON 请求体；在属性上写 x-in: query 或 body 可以另行指定，写 x-name 可以改名。',
  'Headers; may hold keys.': '头部；可以含有密钥。',
  'Query parameters of every call; may hold keys.': '每次调用的查询参数；可以含有密钥。',
  'Offered only if the latest message of the user contains one of these.':
    '只在用户最近的消息含有其中之一时提供。',
  'Seconds for one call.': '一次调用的秒数。',
  'Bytes of the response that the model gets.': '响应中交给模型的字节数。',
  'MCP servers by name; their tools are mcp__NAME__TOOL.':
    'MCP 服务器，按名称列出；它们的工具名为 mcp__NAME__TOOL。',
  'The program that speaks MCP over stdin and stdout.': '通过 stdin 和 stdout 提供 MCP 的程序。',
  'Its arguments.': '程序的参数。',
  'Its environment, in addition to PATH, HOME and the like.':
    '程序的环境变量，PATH、HOME 等之外的。',
  'Its working directory.': '程序的工作目录。',
  'Its address (streamable HTTP).': '服务器的地址（流式 HTTP）。',
  'Headers sent to its address; may hold keys.': '发送到该地址的头部；可以含有密钥。',
  'Tools that are offered.': '提供的工具。',
  'Seconds for one call, and for the start of the server.': '一次调用的秒数，也用于服务器的启动。',
  'The memory, which stores events that conversations recall.': '记忆：保存事件，供对话检索。',
  'Whether the memory is on: its API, and recalls in conversations.':
    '是否启用记忆：它的 API，以及对话中的检索。',
  'The database file.': '数据库文件。',
  'Seconds within which the same text from the same source is stored once.':
    '在多少秒之内，同一来源的相同文本只存一次。',
  'Search by vectors in addition to words.': '除了按词，还按向量搜索。',
  'A provider of this file with an OpenAI-style /embeddings endpoint; its address, keys and limits are used.':
    '本文件中的一个提供方，须有 OpenAI 式的 /embeddings 端点；使用它的地址、密钥和限制。',
  'The embedding model, as the vendor spells it.': '向量模型，按厂商的写法。',
  'Dimensions of the vectors that the model is asked for.': '要求模型返回的向量维数。',
  'Tokens, estimated, of all events together that a conversation gets from one recall: long texts are cut to passages around what is asked for. 0 = no limit.':
    '对话一次检索得到的所有事件的 token 总数（估算）：长文本截取为与所问内容相关的片段。0 = 不限。',
  'Put before each question, for models that want it: "query: " (e5).':
    '加在每个问题之前，用于需要它的模型："query: "（e5）。',
  'Put before each text that is stored: "passage: " (e5). Another prefix makes all vectors anew, in the background.':
    '加在每条存入的文本之前："passage: "（e5）。改变前缀会在后台重新生成所有向量。',
  'Seconds that a recall waits for the vector of its query; after that it searches by words alone.':
    '检索时等待查询向量的秒数；超过后只按词搜索。',
  'How much may be stored.': '可以存储多少。',
  "Characters of an event's text.": '一个事件的文本的字符数。',
  'Tags of an event.': '一个事件的标签数。',
  'Events of a space.': '一个空间的事件数。',
  'Bytes of all texts of all spaces together.': '所有空间的全部文本合计的字节数。',
  'An external store instead of the database. It gets POST {space, query, limit} and answers {events: […]}.':
    '用外部存储代替数据库。它接收 POST {space, query, limit}，返回 {events: […]}。',
  'The address at which the external store takes POST {space, events: […]}.':
    '外部存储接收 POST {space, events: […]} 的地址。',
  "The external store's key, sent as a bearer token.": '外部存储的密钥，作为 bearer 令牌发送。',
  'Seconds that the external store may take.': '外部存储的时限，单位为秒。',
  'Conversation tools of chat apps.': '聊天应用的对话工具。',
  'The language of the texts of tools that models read; auto: that of the conversation.':
    '对话工具给模型看的文字用哪种语言；auto 表示与对话相同。',
  'Your own texts in place of the built-in ones.': '用你自己的文字代替内置的文字。',
  'What is_mentioned answers when the model was mentioned.': '模型被提及时，is_mentioned 的回答。',
  'What is_mentioned answers when it was not.': '模型未被提及时，is_mentioned 的回答。',
  'What get_other_members_messages answers when there are none.':
    '没有消息时，get_other_members_messages 的回答。',
  'The description of recall_memory.': 'recall_memory 的说明。',
  'The description of its query.': '它的 query 参数的说明。',
  'The description of its beginning.': '其开始时间的说明。',
  'The description of its end.': '其结束时间的说明。',
  'The description of forget_memory.': 'forget_memory 的说明。',
  'The description of its ids.': '其 id 列表的说明。',
  'The description of get_other_members_messages.': 'get_other_members_messages 的说明。',
  'The description of is_mentioned.': 'is_mentioned 的说明。',
  'The sentence about the limit of recalls; {max} is the number.':
    '说明检索次数上限的那句话；{max} 是次数。',
  'Traces and metrics for an OpenTelemetry collector.': '发给 OpenTelemetry 采集器的追踪和指标。',
  'OpenTelemetry.': 'OpenTelemetry。',
  'The base URL of a collector that takes OTLP over HTTP (protobuf), e.g. http://127.0.0.1:4318; /v1/traces and /v1/metrics are appended.':
    '采集器的基础地址，接收基于 HTTP 的 OTLP（protobuf），例如 http://127.0.0.1:4318；自动补上 /v1/traces 和 /v1/metrics。',
  'Header name → value, sent to the collector. Added to those of $OTEL_EXPORTER_OTLP_HEADERS.':
    '头部名称 → 值，发送给采集器，与 $OTEL_EXPORTER_OTLP_HEADERS 中的合并。',
  'The share of exchanges whose trace is sent: 1 = all, 0.1 = every tenth.':
    '有多大比例的请求发送追踪：1 = 全部，0.1 = 每十个取一个。',
  "The sampled flag of a caller's traceparent decides. Otherwise the caller's trace id is used, and `traces` decides.":
    '由调用方 traceparent 的采样标志决定是否发送。设为 false 时只采用调用方的追踪 id，由 `traces` 决定。',
  'Send metrics too: the same numbers as GET /metrics.':
    '同时发送指标：与 GET /metrics 相同的数字。',
  'Names of gen_ai attributes and metrics: the current ones, or those of semantic conventions 1.36 (gen_ai.system, gen_ai.client.token.usage).':
    'gen_ai 属性和指标的名称：现行的名称，或者语义约定 1.36 的名称（gen_ai.system、gen_ai.client.token.usage）。',
  'Logs, on stderr.': '日志，写到 stderr。',
  'The lowest level that is logged.': '记录的最低级别。',
  'auto = pretty on a terminal, else JSON lines.':
    'auto = 在终端上用便于阅读的形式，否则用 JSON 行。',
};

/** Defaults in words (`x-default`). */
export const DEFAULTS: Readonly<Record<string, string>> = {
  'plain HTTP': '普通的 HTTP',
  none: '无',
  'the preset with the name of the provider, where base_url is left out':
    '没有写 base_url 时，是与提供方同名的预设',
  "the preset's; needed without one": '预设的值；没有预设时必填',
  "the preset's, else the vendor itself": '预设的平台，没有时为厂商自己',
  'GOOGLE_CLOUD_PROJECT, ANTHROPIC_VERTEX_PROJECT_ID, or the project of the credentials file':
    'GOOGLE_CLOUD_PROJECT、ANTHROPIC_VERTEX_PROJECT_ID，或凭据文件中的项目',
  'GOOGLE_CLOUD_LOCATION or CLOUD_ML_REGION': 'GOOGLE_CLOUD_LOCATION 或 CLOUD_ML_REGION',
  "GOOGLE_APPLICATION_CREDENTIALS, else the file that gcloud auth application-default login writes, else Google's metadata server":
    'GOOGLE_APPLICATION_CREDENTIALS，没有时用 gcloud auth application-default login 写入的文件，再没有时用 Google 的元数据服务器',
  'AZURE_OPENAI_ENDPOINT or AZURE_RESOURCE_NAME; not needed with base_url':
    'AZURE_OPENAI_ENDPOINT 或 AZURE_RESOURCE_NAME；有 base_url 时不需要',
  AZURE_TENANT_ID: 'AZURE_TENANT_ID',
  AZURE_CLIENT_ID: 'AZURE_CLIENT_ID',
  'https://cognitiveservices.azure.com/.default': 'https://cognitiveservices.azure.com/.default',
  'AWS_REGION or AWS_DEFAULT_REGION': 'AWS_REGION 或 AWS_DEFAULT_REGION',
  'AWS_PROFILE, else the usual order of the AWS tools': 'AWS_PROFILE，没有时按 AWS 工具的通常顺序',
  "the preset's environment variables": '预设的环境变量',
  'x-api-key for anthropic-messages, x-goog-api-key for google-gemini, else bearer':
    'anthropic-messages 为 x-api-key，google-gemini 为 x-goog-api-key，其他为 bearer',
  "the preset's, else none": '预设的特性，没有时为 none',
  "the preset's, else none (reachable through routes and as provider/model)":
    '预设的模型，没有预设时为空（仍可通过路由和 provider/model 使用）',
  "the provider's": '提供方的值',
  "the vendor's list, or the model catalogue": '厂商的列表，或模型目录',
  'as input': '同 input',
  'as cache_write': '同 cache_write',
  'as output': '同 output',
  nothing: '不收费',
  'any length': '任意长度',
  any: '任意',
  "the model's": '同该模型',
  always: '始终',
  'true for a server on this machine or in its network, else false':
    '本机或内网的服务为 true，其他为 false',
  'that of the top level': '同顶层设置',
  'a direct connection': '直接连接',
  "the system's": '系统的证书颁发机构',
  '"route N"': '"route N"',
  'every day': '每天',
  "the machine's": '本机的时区',
  '1 where another target of the route has a weight': '路由中有其他目标设了权重时为 1',
  'as samples.mode says': '由 samples.mode 决定',
  'the built-in one of the same name, if any': '同名的内置特性（如果有）',
  'the same facts for all models': '所有模型的特性相同',
  'all of them': '全部',
  never: '永不过期',
  'no limit': '不限',
  'its period': '它的周期',
  'warnings are logged only': '警告只写入日志',
  'no tokens of people': '不接受人员的令牌',
  sub: 'sub',
  'no such limit': '不作此限制',
  'that of first_byte': '同 first_byte',
  '300, and 3600 for a key that is refused': '300；被拒绝的密钥为 3600',
  '$HOPGATE_TOOL_TEXT_LIMIT (or its older name $RCC_TOOL_TEXT_LIMIT), else 8192':
    '$HOPGATE_TOOL_TEXT_LIMIT（旧名称为 $RCC_TOOL_TEXT_LIMIT），没有时为 8192',
  'none: this state stays on each machine': '无（这部分状态留在各自的机器上）',
  '$HOPGATE_HOME/samples': '$HOPGATE_HOME/samples',
  off: '关闭',
  'its type': '它的类型',
  "the vendor's address; searxng needs one": '厂商的地址；searxng 必须写明',
  'the usual environment variable of the engine': '该引擎常用的环境变量',
  'asks for a description of the image': '要求描述图片',
  'limited by the tool rounds only': '只受工具轮数限制',
  'no arguments': '没有参数',
  'offered always': '总是提供',
  url: 'url',
  "the user's home": '用户的主目录',
  command: 'command',
  '$HOPGATE_HOME/memory.db': '$HOPGATE_HOME/memory.db',
  'words alone': '只按词搜索',
  "the model's own": '模型自己的维数',
  'the database': '数据库',
  'the same as url': '同 url',
  "the locale's text": '对应语言的文字',
  '$OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent':
    '$OTEL_EXPORTER_OTLP_ENDPOINT，没有时什么也不发送',
  '$OTEL_TRACES_SAMPLER and $OTEL_TRACES_SAMPLER_ARG, else 1':
    '$OTEL_TRACES_SAMPLER 和 $OTEL_TRACES_SAMPLER_ARG，没有时为 1',
  'true for the samplers of $OTEL_TRACES_SAMPLER that begin with parentbased_, else false':
    '$OTEL_TRACES_SAMPLER 的采样器以 parentbased_ 开头时为 true，否则为 false',
  'false for OTEL_METRICS_EXPORTER=none, else true':
    'OTEL_METRICS_EXPORTER=none 时为 false，否则为 true',
};

/** Comments of the examples. */
export const COMMENTS: Readonly<Record<string, string>> = {
  '64 MB': '64 MB',
  'no limit': '不限',
  'a preset: address, profile and models are known': '预设：地址、特性和模型都是已知的',
  'USD per thousand searches': '美元/千次搜索',
  'tokens of the prompt': '提示词的 token 数',
  'the first rule that matches decides': '第一条匹配的规则生效',
  'not recorded': '不记录',
  '* keeps the requested name': '* 保留请求中的名称',
};

export const HEAD = `# 配置

<!-- 由 scripts/docs.ts 根据模式生成；在这里所做的修改会丢失。 -->

配置文件为 YAML 格式。下列文件中，使用第一个存在的：\`--config FILE\`、\`$HOPGATE_CONFIG\`、\`$XDG_CONFIG_HOME/hopgate/hopgate.yaml\`（通常在 \`~/.config\` 下）、\`/etc/hopgate/hopgate.yaml\`。当前目录中的文件不会被读取。没有配置文件，或者文件中没有提供方时，hopgate 使用环境变量中有密钥的厂商，以及在常用端口上应答的模型服务；都没有时使用内置的演示模型。

\`hopgate check\` 列出所有问题及其行号和列号。未知的键会报告为问题，绝不忽略。超过 1 MB 或嵌套超过 100 层的文件会被拒绝。\`hopgate check --schema\` 输出供编辑器使用的 JSON Schema。

文本值可以引用环境变量：\`\${NAME}\`、\`\${NAME:-default}\`；\`\${file:/path}\` 表示文件的内容。时间以秒为单位，可以是小数。文件修改后，正在运行的网关会自动重新加载，通常立即生效；如果文件是指向其他目录的链接，则在几秒之内生效。修改 \`listen\` 中的地址或 \`workers\` 之后需要重启，日志 \`config.reloaded\` 会指出这一点。

每一节的开头是一个包含全部键的示例；你只需写出与默认值不同的键。表格中，\`NAME\` 表示自己取的名称，\`[]\` 表示列表中的一项。`;

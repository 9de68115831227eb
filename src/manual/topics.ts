/** The index of the manual, as at the end of a book: what people look for, in their words, and where it stands. */

import { VENDORS } from '../vendors/index.ts';

/**
 * Paths of English sections, and topics separated by commas. A topic in any language leads to the section in the
 * language of the reader. A query that holds all words of a topic finds its section first.
 */
const PAGES: Readonly<Record<string, string>> = {
  '/getting-started': 'quick start, quickstart, tutorial, first steps, 快速开始, 入门, 命令行',
  '/getting-started#the-sdks-and-curl':
    'python, javascript, typescript, sdk, curl, base url, cursor, openai compatible, 接口地址',
  '/getting-started#claude-code': 'claude code, anthropic_base_url, anthropic_auth_token',
  '/getting-started#when-something-is-wrong': 'replay, bisect, debugging, debug, 调试, 重放, 回放',
  '/install': 'install, installation, download, binary, macos, windows, mac, 安装, 下载, 部署',
  '/install#debian-and-ubuntu': 'apt, deb, debian, ubuntu, linux package, 软件包',
  '/install#homebrew': 'homebrew, brew',
  '/install#as-a-service':
    'systemd, daemon, service, run in background, background, autostart, boot, launchd, 后台运行, 开机启动, 守护进程, 服务',
  '/install#upgrade': 'upgrade, update, new version, graceful restart, zero downtime, 升级, 更新',
  '/install#uninstall': 'uninstall, remove, delete hopgate, purge, 卸载, 删除',
  '/install#state': 'database version, sqlite, downgrade, 数据库版本',
  '/install#back-up-and-restore': 'backup, restore, sqlite, 备份, 恢复',
  '/install#shell-completions-and-manual-page': 'completion, man page, bash, zsh, fish, tab, 补全',
  '/docker': 'docker, container, compose, docker compose, podman, dockerfile, 容器, 部署',
  '/troubleshooting':
    'troubleshooting, problem, does not work, not working, broken, help, faq, error message, 故障排查, 报错, 排错, 常见问题, 不能用',
  '/troubleshooting#the-gateway-does-not-start':
    'port in use, address in use, eaddrinuse, does not start, refusing to listen, 端口被占用, 启动失败, 无法启动',
  '/troubleshooting#the-client-cannot-connect':
    'connection refused, econnrefused, connection error, unable to connect, cannot connect, fetch failed, lan, host not allowed, cors, 连接被拒绝, 无法连接, 连不上, 局域网',
  '/troubleshooting#the-gateway-refuses-the-request':
    '401, 403, unauthorized, forbidden, access denied, permission denied, invalid api key, api key rejected, key rejected, key refused, key denied, wrong key, missing api key, model not found, 404, model does not exist, unknown path, 未授权, 模型不存在, request refused, 请求被拒绝',
  '/troubleshooting#the-vendor-fails':
    '429, 500, 502, 503, 504, 529, too many requests, bad gateway, overloaded, overload, timeout, timed out, rate limited, provider key refused, 超时, 过载, 限流',
  '/troubleshooting#the-answer-is-not-what-you-expect':
    'empty answer, slow, stuck, hangs, buffering, no streaming, tool call as text, truncated, 卡住, 变慢, 乱码',
  '/troubleshooting#report-a-problem':
    'bug report, report a bug, report a problem, export sample, import sample, 报告问题, 导出样本',
  '/claude-code-on-glm': 'glm coding plan, claude code',
  '/two-keys':
    'multiple keys, several keys, key rotation, load balancing, key pool, 多个密钥, 密钥池, 负载均衡',
  '/prompt-caches':
    'prompt cache, prompt caching, cache_control, prompt_cache_key, cached tokens, cache hit rate, 提示词缓存, 缓存命中',
  '/changed-requests':
    'changed request, response headers, modified, record requests, diff, 请求被修改',
  '/behind-nginx': 'nginx, reverse proxy, caddy, traefik, haproxy, alb, 反向代理',
  '/recipes#local-models':
    'local model, local models, ollama, vllm, lm studio, llama.cpp, offline, 本地模型',
  '/recipes#images-for-a-text-model': 'image, images, vision, picture, screenshot, 图片, 看图',
  '/recipes#a-team-server':
    'team, lan, public address, listen on all interfaces, 0.0.0.0, 团队, 局域网',
  '/recipes#https-with-your-own-certificate':
    'https, tls, ssl, certificate, letsencrypt, certbot, wss, 证书',
  '/recipes#browser-apps': 'cors, cross origin, browser app, preflight, 跨域',
  '/recipes#behind-a-reverse-proxy': 'reverse proxy, x-forwarded-for, client ip, 反向代理',
  '/configuration':
    'config, configuration, config file, yaml, hopgate.yaml, settings, environment variables, 配置, 配置文件, 环境变量, hot reload, reload, reload config, 热加载, 重新加载',
  '/configuration#listen': 'port, change port, listen, bind, address, host, 端口, 监听',
  '/configuration#routes': 'route, routes, routing, routing rules, router, 路由',
  '/configuration#aliases':
    'alias, model alias, rename model, model mapping, model name, 别名, 模型映射',
  '/configuration#timeouts': 'timeout, timeouts, 超时',
  '/configuration#retry': 'retry, retries, backoff, 重试',
  '/configuration#limits': 'body size, max body, graceful shutdown, drain, 优雅退出',
  '/configuration#samples': 'turn off recording, retention, disable recording, 关闭记录',
  '/configuration#presets':
    'presets, supported vendors, supported providers, 支持的厂商, 预设, supported models, 支持哪些模型, 支持的模型',
  '/endpoints':
    'embeddings, embedding, rerank, whisper, speech, audio, tts, transcription, image generation, moderation, 向量, 语音',
  '/endpoints#the-model-list': 'model list, list models, context window, 模型列表',
  '/agents': 'agents, coding agents, vscode, vs code, ide, editor, cursor, 编程助手',
  '/agents#claude-code': 'claude code',
  '/server-tools': 'function calling, tools, tool use, plugins, 工具',
  '/server-tools#web-search':
    'web search, websearch, search engine, searxng, tavily, 联网搜索, 搜索',
  '/server-tools#mcp-servers': 'mcp, mcp server',
  '/chat-apps':
    'chat app, telegram, discord, wechat, bot, role play, group chat, 聊天应用, 聊天机器人, 微信',
  '/memory': 'memory, remember, long term memory, rag, 记忆',
  '/keys':
    'api key, key, gateway key, virtual key, users, 密钥, 权限, multi tenant, multi user, 多租户, 多用户',
  '/keys#keys-at-run-time': 'create key, revoke, rotate, 密钥轮换, 吊销',
  '/keys#the-admin-api': 'admin api, admin, 管理接口',
  '/keys#the-audit': 'audit, audit log, 审计',
  '/keys#people-with-a-token':
    'jwt, oidc, sso, oauth, okta, keycloak, login, token, 单点登录, 令牌',
  '/limits':
    'rate limit, rate limiting, quota, budget, throttling, rpm, tpm, spending limit, 限流, 限额, 预算, 配额',
  '/limits#refusals-and-headers': '429, retry-after, insufficient_quota, x-ratelimit',
  '/money':
    'cost, price, pricing, billing, spend, spent, usage, invoice, 费用, 计费, 价格, 成本, 用量',
  '/scale-out':
    'high availability, cluster, load balancing, replicas, postgres, postgresql, redis, valkey, s3, 高可用, 集群, 负载均衡, 数据库, 部署',
  '/scale-out#run-it': 'kubernetes, k8s, helm, load balancer',
  '/scale-out#back-it-up': 'backup, pg_dump, 备份',
  '/scale-out#check-the-engines': 'health check, engine health, 健康检查',
  '/security': 'security, privacy, gdpr, data protection, secrets, 安全, 隐私',
  '/security#credentials':
    'redact, redaction, redacted, mask, masked, masking, hide secrets, hide keys, pii, anonymize, censor, 脱敏, 屏蔽',
  '/security#files-on-disk': 'data on disk, sqlite, encryption at rest, 数据存储',
  '/metrics': 'metrics, prometheus, monitoring, latency, 指标, 监控',
  '/metrics#health-checks': 'healthz, readyz, health check, liveness, readiness, probe, 健康检查',
  '/telemetry': 'opentelemetry, otel, otlp, tracing, traces, jaeger, datadog, 链路追踪',
  '/telemetry#dashboard-and-alerts': 'grafana, dashboard, alerts, alerting, alertmanager, 告警',
  '/log-events': 'log, logs, logging, log file, journald, stderr, 日志',
  '/errors': 'error code, error codes, status code, error, 429, 错误码, 错误',
  '/errors#retries': 'retry, retries, failover, 重试',
  '/errors#in-the-middle-of-a-stream':
    'streaming error, stream cut, stream error, 断流, streaming, stream, sse, server-sent events, 流式, 流式输出',
  '/how-it-works#which-target': 'fallback, failover, routing, 回退, 故障转移, 备用',
  '/how-it-works#sessions-keep-their-target-and-key':
    'session, sticky session, prompt cache, prompt caching, cache hit, 会话, 缓存命中',
  '/how-it-works#prompts-that-are-too-long':
    'prompt too long, context length, context length exceeded, context window, 上下文长度',
  '/how-it-works#compaction': 'compaction, compact, summary, 压缩',
  '/browser': 'ui, web ui, web interface, dashboard, exchanges, recording, 网页, 界面',
  '/browser#sessions': 'session, conversation, 会话',
  '/proof': 'performance, benchmark, throughput, speed, overhead, 性能, 基准测试',
  '/configuration#log': 'verbose, log level, debug logging, 日志级别',
  '/log-events#exchange': 'request id, trace id, access log, 访问日志',
  '/configuration#providers': 'custom headers, query parameters, provider, vendor, 自定义头部',
  '/browser#keys-and-links': 'keyboard shortcuts, shortcuts, hotkeys, 快捷键',
  '/notes#schema_simplified': 'json mode, structured output, json schema, 结构化输出',
  '/security#rights-of-a-model': 'prompt injection, 提示词注入',
  '/install#download-and-run': 'raspberry pi, arm64, alpine, musl, checksum, sha256',
  '/recipes#two-vendors-shares-and-an-office-hours-rule':
    'a/b test, weighted, weights, time of day, off-peak, 权重, 分时',
  '/limits#each-limit': 'requests per minute, tokens per minute, concurrency, 每分钟请求数, 并发',
  '/notes#tool_ids_rewritten': 'tool_use ids, tool call ids, call ids',
  '/notes': 'x-hopgate-notes, notes',
  '/how-it-works#health-of-targets':
    'vendor down, outage, circuit breaker, cooldown, vendor health, 熔断, 厂商故障, 冷却',
  '/scale-out#upgrade-it': 'rolling upgrade, rollback, downgrade replicas, 滚动升级, 回滚',
  '/scale-out#from-one-machine-to-many':
    'migrate state, state move, move to postgres, 数据迁移, 迁移',
  '/scale-out#solve-problems': 'engine away, limits_unavailable, database_away, 引擎不可用',
};

/** The same, and the vendors' own. */
export const TOPICS: Readonly<Record<string, string>> = withVendors();

function withVendors(): Record<string, string> {
  const topics: Record<string, string> = { ...PAGES };
  for (const { topic } of VENDORS) {
    if (topic === undefined) continue;
    const { section = '/configuration#presets', words } = topic;
    topics[section] = topics[section] === undefined ? words : `${topics[section]}, ${words}`;
  }
  return topics;
}

/** What people type into the search of the manual, and the pages that answer it: one of them is among the first three. */

import { describe, expect, test } from 'bun:test';
import { docsPage } from '../../src/manual/index.ts';
import { PAGES } from '../../src/manual/pages.ts';
import { searchManual, sectionPath } from '../../src/manual/search.ts';
import { sectionsOf } from '../../src/manual/sections.ts';
import { TOPICS } from '../../src/manual/topics.ts';

/** A query, and the pages or sections that answer it; one of them is enough. */
const QUERIES = `
streaming → how-it-works, glossary, errors#in-the-middle-of-a-stream
docker → docker
docker compose → docker
dockr → docker
logging → log-events
logs → log-events
log file → log-events, install#as-a-service
rate limit → limits
rate limiting → limits
ratelimit → limits
429 → errors, limits, two-keys
429 too many requests → errors, limits, two-keys
timeout → errors, configuration#timeouts
timeouts → configuration#timeouts, errors
request timed out → troubleshooting, configuration#timeouts, errors
会话 → browser.zh-CN#会话, how-it-works.zh-CN
限流 → limits.zh-CN
日志 → log-events.zh-CN
部署 → docker.zh-CN, install.zh-CN, scale-out.zh-CN
sqlite → security#files-on-disk, install#state, scale-out
backup → scale-out#back-it-up, install
restore backup → scale-out#back-it-up, install
postgres → scale-out
postgresql → scale-out
redis → scale-out
valkey → scale-out
claude code → agents#claude-code, getting-started#claude-code, claude-code-on-glm
claude-code → agents#claude-code, getting-started#claude-code, claude-code-on-glm
cursor → chat-apps, agents, getting-started#the-sdks-and-curl
GLM → claude-code-on-glm
glm-4.7 → claude-code-on-glm
zhipu → claude-code-on-glm, configuration#presets
智谱 → claude-code-on-glm.zh-CN, recipes.zh-CN
api key → keys, getting-started
api keys → keys
add api key → keys, two-keys
how do i add a key → keys
multiple keys → two-keys
load balancing → two-keys, scale-out, recipes
load balancer → scale-out
high availability → scale-out
kubernetes → scale-out#run-it
helm → scale-out#run-it
k8s → scale-out#run-it
systemd → install#as-a-service
service → install#as-a-service
daemon → install#as-a-service
run in background → install#as-a-service
homebrew → install#homebrew
brew → install#homebrew
apt install → install#debian-and-ubuntu
debian → install#debian-and-ubuntu
macos → install
windows → install
upgrade → install#upgrade
update to new version → install#upgrade
uninstall → install
remove hopgate → install
install → install
instal → install
nginx → behind-nginx
reverse proxy → recipes#behind-a-reverse-proxy, behind-nginx
caddy → behind-nginx
https → recipes#https-with-your-own-certificate
tls certificate → recipes#https-with-your-own-certificate
ssl → recipes#https-with-your-own-certificate
letsencrypt → recipes#https-with-your-own-certificate
prometheus → metrics, telemetry
metrics → metrics
grafana → telemetry#dashboard-and-alerts
dashboard → telemetry#dashboard-and-alerts, browser
opentelemetry → telemetry
tracing → telemetry
otel → telemetry
cost → money, browser#cost
pricing → money
how much did i spend → money
billing → money
budget → limits
quota exceeded → limits, errors
spending limit per user → limits
ollama → recipes#local-models, docker
vllm → recipes#local-models
local model → recipes#local-models
lm studio → getting-started, recipes#local-models
deepseek → recipes#deepseek-with-claude-code
deepseek claude code → recipes#deepseek-with-claude-code
kimi → recipes, configuration#presets, server-tools
qwen → agents#qwen-code, configuration#presets
gemini → recipes, how-it-works#gemini, agents#gemini-cli
bedrock → platforms#bedrock
aws → platforms#bedrock
vertex → platforms#vertex-ai
azure → configuration, platforms
openrouter → configuration#presets
codex → agents#codex
opencode → agents#opencode
cline → agents#cline
aider → agents#aider
zed → agents#zed
vscode → agents
fallback → recipes, two-keys, claude-code-on-glm#add-a-fallback, how-it-works#which-target
failover → recipes, two-keys, claude-code-on-glm#add-a-fallback, how-it-works
retry → errors#retries, configuration#retry
retries → errors#retries, configuration#retry
routing rules → configuration#routes, how-it-works#which-target
routes → configuration#routes
model alias → configuration#aliases
rename model → configuration#aliases
config file location → configuration
where is the config file → configuration
environment variables → configuration, getting-started
web search → server-tools#web-search
websearch → server-tools#web-search
mcp → server-tools#mcp-servers
function calling → server-tools, notes
vision → server-tools#vision
images → server-tools#vision, recipes#images-for-a-text-model
embeddings → endpoints
audio transcription → endpoints
whisper → endpoints
memory → memory
websocket → websocket
web socket → websocket
context length exceeded → errors, how-it-works#prompts-that-are-too-long
prompt too long → how-it-works#prompts-that-are-too-long
prompt caching → how-it-works#sessions-keep-their-target-and-key, browser
cache → prompt-caches, scale-out, how-it-works
record requests → browser, changed-requests, configuration#samples
turn off recording → security#files-on-disk, configuration#samples, browser
privacy → security
security → security
jwt → keys#people-with-a-token
sso → keys#people-with-a-token, platforms
oidc → keys#people-with-a-token
admin api → keys#the-admin-api
audit log → keys#the-audit
revoke key → keys#keys-at-run-time, keys#the-admin-api
replay → browser, getting-started#when-something-is-wrong
bisect → browser, getting-started#when-something-is-wrong, glossary#debugging
debug → getting-started#when-something-is-wrong, glossary#debugging, troubleshooting
troubleshooting → troubleshooting
it does not work → troubleshooting, getting-started#when-something-is-wrong
connection refused → troubleshooting
port already in use → troubleshooting
address already in use → troubleshooting
401 unauthorized → errors, troubleshooting
invalid api key → errors, troubleshooting
model not found → errors, troubleshooting
502 bad gateway → errors, troubleshooting
503 → errors, troubleshooting
shell completion → install#shell-completions-and-manual-page
man page → install#shell-completions-and-manual-page
licence → install#licences
license → install#licences
exit code → errors#exit-codes-of-the-commands
health check → docker, scale-out, how-it-works, endpoints
healthz → metrics, scale-out, docker, behind-nginx, endpoints
readyz → scale-out, behind-nginx, log-events
graceful shutdown → log-events, install#upgrade, configuration#limits
change port → configuration#listen
listen on all interfaces → configuration#listen, recipes#a-team-server, security
lan access → recipes#a-team-server, troubleshooting
change the port → configuration#listen
telegram → chat-apps
python → chat-apps#from-the-official-sdks, getting-started#the-sdks-and-curl
openai sdk → getting-started#the-sdks-and-curl, chat-apps#from-the-official-sdks
curl example → getting-started#the-sdks-and-curl
compaction → how-it-works#compaction
thinking → notes, how-it-works, glossary
reasoning effort → configuration, notes
tool call as text → notes#leaked_call_recovered, notes
max_tokens → notes#parameter_defaulted, configuration
performance → proof, scale-out#size-it
benchmark → proof, memory#how-well-and-how-fast
latency → metrics, browser, how-it-works
slow → metrics, how-it-works#a-second-request-beside-a-slow-one, websocket
密钥 → keys.zh-CN
密钥轮换 → keys.zh-CN
令牌 → keys.zh-CN
预算 → limits.zh-CN
费用 → money.zh-CN
价格 → money.zh-CN
计费 → money.zh-CN
安装 → install.zh-CN
卸载 → install.zh-CN
升级 → install.zh-CN#升级
容器 → docker.zh-CN
反向代理 → recipes.zh-CN, behind-nginx.zh-CN
证书 → recipes.zh-CN
监控 → metrics.zh-CN, telemetry.zh-CN
指标 → metrics.zh-CN
备份 → scale-out.zh-CN, install.zh-CN
集群 → scale-out.zh-CN
高可用 → scale-out.zh-CN
负载均衡 → scale-out.zh-CN, two-keys.zh-CN
数据库 → scale-out.zh-CN
超时 → configuration.zh-CN, errors.zh-CN
重试 → errors.zh-CN
流式 → how-it-works.zh-CN, errors.zh-CN, glossary.zh-CN
错误码 → errors.zh-CN
报错 → errors.zh-CN, troubleshooting.zh-CN
故障排查 → troubleshooting.zh-CN
连接被拒绝 → troubleshooting.zh-CN
端口被占用 → troubleshooting.zh-CN
端口 → configuration.zh-CN#listen, troubleshooting.zh-CN
模型映射 → configuration.zh-CN, claude-code-on-glm.zh-CN, recipes.zh-CN
路由 → configuration.zh-CN#routes, how-it-works.zh-CN
回退 → recipes.zh-CN, claude-code-on-glm.zh-CN, how-it-works.zh-CN, errors.zh-CN
联网搜索 → server-tools.zh-CN, recipes.zh-CN
本地模型 → recipes.zh-CN
图片 → server-tools.zh-CN, recipes.zh-CN
记忆 → memory.zh-CN
缓存 → prompt-caches.zh-CN, scale-out.zh-CN, how-it-works.zh-CN, browser.zh-CN
权限 → keys.zh-CN, errors.zh-CN, security.zh-CN
安全 → security.zh-CN
术语 → glossary.zh-CN
环境变量 → configuration.zh-CN, getting-started.zh-CN
快速开始 → getting-started.zh-CN
怎么配置 → configuration.zh-CN
命令行 → getting-started.zh-CN, errors.zh-CN, zh-CN
多个密钥 → two-keys.zh-CN
聊天应用 → chat-apps.zh-CN
回放 → browser.zh-CN, getting-started.zh-CN
how to use with claude code → agents, getting-started, claude-code-on-glm
claude code glm → claude-code-on-glm
claud code → agents, getting-started, claude-code-on-glm
open code → agents, getting-started
gemini-cli → agents#gemini-cli, recipes
kubernets → scale-out
ngnix → behind-nginx
promethus → metrics, telemetry
certificates → recipes#https-with-your-own-certificate
budgets → limits, configuration#budgets
monthly budget → limits
max tokens per minute → limits
tokens per minute → limits
retry-after → limits, errors, how-it-works
vendor down → how-it-works, troubleshooting, errors, log-events
openai api key → keys, configuration#presets, getting-started
where are logs → log-events, install
debug logging → log-events, configuration#log
verbose → configuration#log, log-events
log level → configuration#log, log-events
json logs → log-events, configuration#log
request id → log-events, zh-CN
headers → configuration, chat-apps, how-it-works, errors
response headers → limits, changed-requests, how-it-works, notes
custom headers → configuration#providers, server-tools
proxy settings → security#connections-to-vendors, configuration
http_proxy → security#connections-to-vendors
corporate proxy → security, configuration, behind-nginx
cors → recipes#browser-apps, troubleshooting
redact → security#credentials
redaction → security#credentials
hide secrets → security#credentials, security
mask api keys → security#credentials
脱敏 → security.zh-CN#凭据
api key rejected → troubleshooting#the-gateway-refuses-the-request
my key was rejected → troubleshooting#the-gateway-refuses-the-request
access denied → troubleshooting#the-gateway-refuses-the-request
request was denied → troubleshooting#the-gateway-refuses-the-request
dark mode → browser
keyboard shortcuts → browser#keys-and-links
export conversation → memory, browser
delete data → memory#erasing, install#uninstall, scale-out#erasing, security
gdpr delete user → memory#erasing, security, scale-out#erasing
encryption → scale-out, security
multi tenant → keys, limits
user quotas → limits, keys
team → recipes#a-team-server, keys, limits
environment variable → configuration, getting-started, telemetry
hot reload → configuration, log-events, troubleshooting
reload config → configuration, log-events, troubleshooting
validate config → configuration, getting-started, troubleshooting
schema → configuration, server-tools, notes
vs code extension → agents
anthropic base url → getting-started, agents, claude-code-on-glm
model routing by time → recipes, configuration#routes
weighted → recipes, configuration#routes, how-it-works
a/b test → recipes, configuration#routes, how-it-works
long context → how-it-works, recipes, configuration
image input → recipes#images-for-a-text-model, server-tools#vision
pdf → configuration, server-tools
json mode → notes, configuration
structured output → notes, configuration
tool calls → notes, server-tools, glossary
tool_use ids → notes
orphaned_tool_use_repaired → notes#orphaned_tool_use_repaired
x-hopgate-notes → notes, changed-requests
previous_response_id → scale-out#stored-responses, security#owners-of-stored-responses, websocket, notes
count tokens → notes, configuration, platforms, money
prompt injection → security
duckduckgo → server-tools#web-search
searxng → server-tools#web-search, recipes
raspberry pi → install
alpine → install
arm64 → install
checksum → install
migrate → install#the-configuration
sigusr2 → install#upgrade
memory leak → metrics, troubleshooting, memory, how-it-works
disk full → limits, money, log-events, keys
s3 → scale-out
sentinel → scale-out
pgbouncer → scale-out
怎么用 claude code → agents.zh-CN, getting-started.zh-CN, claude-code-on-glm.zh-CN
接入 codex → agents.zh-CN, getting-started.zh-CN
日志级别 → configuration.zh-CN#log, log-events.zh-CN
请求被拒绝 → troubleshooting.zh-CN, errors.zh-CN
每分钟请求数 → limits.zh-CN
上下文太长 → how-it-works.zh-CN, errors.zh-CN, troubleshooting.zh-CN
多机部署 → scale-out.zh-CN
单点登录 → keys.zh-CN
代理设置 → security.zh-CN, configuration.zh-CN, behind-nginx.zh-CN, recipes.zh-CN
告警 → telemetry.zh-CN
自定义工具 → server-tools.zh-CN
删除数据 → memory.zh-CN, install.zh-CN, scale-out.zh-CN
数据加密 → scale-out.zh-CN, security.zh-CN
深度思考 → notes.zh-CN, how-it-works.zh-CN, recipes.zh-CN, configuration.zh-CN
支持哪些模型 → configuration.zh-CN#预设, endpoints.zh-CN
余额不足 → errors.zh-CN, troubleshooting.zh-CN, how-it-works.zh-CN
离线 → recipes.zh-CN, server-tools.zh-CN
`;

const cases = QUERIES.trim()
  .split('\n')
  .map((line): [string, string[]] => {
    const [query = '', places = ''] = line.split(' → ');
    return [query, places.split(', ')];
  });

const places = new Set(PAGES.flatMap((page) => sectionsOf(page)).map(sectionPath));
const pages = new Set(PAGES.map(({ name }) => name));
/** `errors` stands for the page with all its sections. */
const answers = (hit: string, place: string) => hit === `/${place}` || hit.startsWith(`/${place}#`);

describe('the first three hits hold the page that answers', () => {
  test('every place of the table is there', () => {
    const gone = cases.flatMap(([, wanted]) =>
      wanted.filter((place) => !pages.has(place) && !places.has(`/${place}`)),
    );
    expect(gone).toEqual([]);
  });

  test.each(cases)('%s', (query, wanted) => {
    const hits = searchManual(query, 3).map(sectionPath);
    const right = hits.some((hit) => wanted.some((place) => answers(hit, place)));
    expect({ hits: right ? [] : hits, wanted }).toEqual({ hits: [], wanted });
  });
});

describe('topics', () => {
  test('every place is there', () => {
    expect(Object.keys(TOPICS).filter((place) => !places.has(place))).toEqual([]);
  });

  test.each(Object.entries(TOPICS))(
    'each topic leads to %s, in the language of the topic',
    (place, list) => {
      const english = PAGES.find(({ name }) => place.split('#')[0] === `/${name}`)!;
      const at = sectionsOf(english).findIndex((section) => sectionPath(section) === place);
      const chinese = PAGES.find(({ name }) => name === `${english.name}.zh-CN`)!;
      const inChinese = sectionPath(sectionsOf(chinese)[at]!);
      const wrong = list.split(', ').filter((topic) => {
        const expected = /\p{Script=Han}/u.test(topic) ? inChinese : place;
        return !searchManual(topic, 5).map(sectionPath).includes(expected);
      });
      expect(wrong).toEqual([]);
    },
  );
});

describe('the language of the hits', () => {
  const languages = (query: string, language?: 'en' | 'zh-CN') =>
    searchManual(query, 5, language).map(({ page }) => page.endsWith('zh-CN'));

  test('is that of the query, unless the reader is in a Chinese page', () => {
    expect(languages('docker')).toEqual([false, false, false, false, false]);
    expect(languages('密钥')).toEqual([true, true, true, true, true]);
    expect(languages('docker', 'zh-CN')).toEqual([true, true, true, true, true]);
    expect(sectionPath(searchManual('systemd', 1, 'zh-CN')[0]!)).toBe(
      '/install.zh-CN#作为服务运行',
    );
  });

  test('a Chinese page passes its language on, and gets its answer in it', async () => {
    const page = await docsPage('/docs/docker.zh-CN')!.text();
    expect(page).toContain('<input type="hidden" name="lang" value="zh-CN">');
    expect(await docsPage('/docs/docker')!.text()).not.toContain('name="lang"');
    const found = await docsPage('/docs', 'systemd', '', 'zh-CN')!.text();
    expect(found).toContain('<html lang="zh-CN">');
    expect(found).toContain('<h1>“systemd”的搜索结果</h1>');
    const nothing = await docsPage('/docs', 'xyzzyplugh', '', 'zh-CN')!.text();
    expect(nothing).toContain('<h1>没有找到</h1>');
  });

  test.each(['docker', '密钥', '50% & "more"?', '"><script>alert(1)</script>'])(
    'the results of %s link to those in the other language, and back',
    async (query) => {
      const link = /<a href="([^"]*)" lang="([^"]*)" hreflang="\2">/;
      const follow = async (html: string) => {
        const [, href = '', language] = link.exec(html)!;
        const { pathname, searchParams } = new URL(href.replaceAll('&amp;', '&'), 'http://h');
        expect(searchParams.get('q')).toBe(query);
        const [words, lang] = [searchParams.get('q')!, searchParams.get('lang')!];
        const found = await docsPage(pathname, words, '', lang)!.text();
        expect(found).toContain(`<html lang="${language}">`);
        return found;
      };
      const first = await docsPage('/docs', query)!.text();
      const other = await follow(first);
      expect(/<html lang="([^"]*)">/.exec(other)![1]).not.toBe(
        /<html lang="([^"]*)">/.exec(first)![1],
      );
      expect(await follow(other)).toBe(first);
    },
  );

  test('a language that is not one of the manual is that of the query', async () => {
    expect(await docsPage('/docs', 'docker', '', '"><script>')!.text()).toContain(
      '<html lang="en">',
    );
  });
});

test('a name that looks like the plural of another word finds itself alone', () => {
  const texts = searchManual('cors', 99, 'en').map(({ title, text }) => `${title} ${text}`);
  expect(texts.length).toBeGreaterThan(1);
  expect(texts.filter((text) => !/cors/i.test(text) && /\bcores?\b/i.test(text))).toEqual([]);
});

describe('mistakes in spelling', () => {
  test.each([
    ['dockr', 'docker'],
    ['kubernets', 'kubernetes'],
    ['promethus', 'prometheus'],
    ['certifcate', 'certificate'],
  ])('"%s" is searched as "%s"', (wrong, right) => {
    expect(searchManual(wrong, 3)).toEqual(searchManual(right, 3));
  });

  test('the page says what it searched instead', async () => {
    const found = await docsPage('/docs', 'promethus metrics')!.text();
    expect(found).toContain('<h1>Found for “prometheus metrics”</h1>');
    expect(found).toContain('<p>Nothing was found for “promethus metrics”.</p>');
    expect(found).toContain('<mark>Prometheus</mark>');
    expect(await docsPage('/docs', 'prometheus')!.text()).not.toContain('Nothing was found');
  });

  test('a word that resembles none of the manual finds nothing', () => {
    expect(searchManual('qqqqqqqq', 3)).toEqual([]);
  });
});

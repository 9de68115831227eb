/** The pages of the manual, bundled as text, so that the executable needs no other files. */

import agents from '../../docs/agents.md' with { type: 'text' };
import agentsChinese from '../../docs/agents.zh-CN.md' with { type: 'text' };
import behindNginx from '../../docs/behind-nginx.md' with { type: 'text' };
import behindNginxChinese from '../../docs/behind-nginx.zh-CN.md' with { type: 'text' };
import browser from '../../docs/browser.md' with { type: 'text' };
import browserChinese from '../../docs/browser.zh-CN.md' with { type: 'text' };
import changedRequests from '../../docs/changed-requests.md' with { type: 'text' };
import changedRequestsChinese from '../../docs/changed-requests.zh-CN.md' with { type: 'text' };
import chatApps from '../../docs/chat-apps.md' with { type: 'text' };
import chatAppsChinese from '../../docs/chat-apps.zh-CN.md' with { type: 'text' };
import claudeCodeOnGlm from '../../docs/claude-code-on-glm.md' with { type: 'text' };
import claudeCodeOnGlmChinese from '../../docs/claude-code-on-glm.zh-CN.md' with { type: 'text' };
import configuration from '../../docs/configuration.md' with { type: 'text' };
import configurationChinese from '../../docs/configuration.zh-CN.md' with { type: 'text' };
import docker from '../../docs/docker.md' with { type: 'text' };
import dockerChinese from '../../docs/docker.zh-CN.md' with { type: 'text' };
import endpoints from '../../docs/endpoints.md' with { type: 'text' };
import endpointsChinese from '../../docs/endpoints.zh-CN.md' with { type: 'text' };
import errors from '../../docs/errors.md' with { type: 'text' };
import errorsChinese from '../../docs/errors.zh-CN.md' with { type: 'text' };
import gettingStarted from '../../docs/getting-started.md' with { type: 'text' };
import gettingStartedChinese from '../../docs/getting-started.zh-CN.md' with { type: 'text' };
import glossary from '../../docs/glossary.md' with { type: 'text' };
import glossaryChinese from '../../docs/glossary.zh-CN.md' with { type: 'text' };
import howItWorks from '../../docs/how-it-works.md' with { type: 'text' };
import howItWorksChinese from '../../docs/how-it-works.zh-CN.md' with { type: 'text' };
import conversationDark from '../../docs/img/page-conversation-dark.png' with { type: 'file' };
import conversationLight from '../../docs/img/page-conversation-light.png' with { type: 'file' };
import diffDark from '../../docs/img/page-diff-dark.png' with { type: 'file' };
import diffLight from '../../docs/img/page-diff-light.png' with { type: 'file' };
import exchangeDark from '../../docs/img/page-exchange-dark.png' with { type: 'file' };
import exchangeLight from '../../docs/img/page-exchange-light.png' with { type: 'file' };
import keysDark from '../../docs/img/page-keys-dark.png' with { type: 'file' };
import keysLight from '../../docs/img/page-keys-light.png' with { type: 'file' };
import listDark from '../../docs/img/page-list-dark.png' with { type: 'file' };
import listLight from '../../docs/img/page-list-light.png' with { type: 'file' };
import phoneDark from '../../docs/img/page-phone-dark.png' with { type: 'file' };
import phoneLight from '../../docs/img/page-phone-light.png' with { type: 'file' };
import replayDark from '../../docs/img/page-replay-dark.png' with { type: 'file' };
import replayLight from '../../docs/img/page-replay-light.png' with { type: 'file' };
import searchDark from '../../docs/img/page-search-dark.png' with { type: 'file' };
import searchLight from '../../docs/img/page-search-light.png' with { type: 'file' };
import sessionDark from '../../docs/img/page-session-dark.png' with { type: 'file' };
import sessionLight from '../../docs/img/page-session-light.png' with { type: 'file' };
import usageDark from '../../docs/img/page-usage-dark.png' with { type: 'file' };
import usageLight from '../../docs/img/page-usage-light.png' with { type: 'file' };
import requestPicture from '../../docs/img/request.svg' with { type: 'text' };
import roomsPicture from '../../docs/img/rooms.svg' with { type: 'text' };
import install from '../../docs/install.md' with { type: 'text' };
import installChinese from '../../docs/install.zh-CN.md' with { type: 'text' };
import keys from '../../docs/keys.md' with { type: 'text' };
import keysChinese from '../../docs/keys.zh-CN.md' with { type: 'text' };
import limits from '../../docs/limits.md' with { type: 'text' };
import limitsChinese from '../../docs/limits.zh-CN.md' with { type: 'text' };
import logEvents from '../../docs/log-events.md' with { type: 'text' };
import logEventsChinese from '../../docs/log-events.zh-CN.md' with { type: 'text' };
import memory from '../../docs/memory.md' with { type: 'text' };
import memoryChinese from '../../docs/memory.zh-CN.md' with { type: 'text' };
import metrics from '../../docs/metrics.md' with { type: 'text' };
import metricsChinese from '../../docs/metrics.zh-CN.md' with { type: 'text' };
import money from '../../docs/money.md' with { type: 'text' };
import moneyChinese from '../../docs/money.zh-CN.md' with { type: 'text' };
import notes from '../../docs/notes.md' with { type: 'text' };
import notesChinese from '../../docs/notes.zh-CN.md' with { type: 'text' };
import platforms from '../../docs/platforms.md' with { type: 'text' };
import platformsChinese from '../../docs/platforms.zh-CN.md' with { type: 'text' };
import promptCaches from '../../docs/prompt-caches.md' with { type: 'text' };
import promptCachesChinese from '../../docs/prompt-caches.zh-CN.md' with { type: 'text' };
import proof from '../../docs/proof.md' with { type: 'text' };
import proofChinese from '../../docs/proof.zh-CN.md' with { type: 'text' };
import recipes from '../../docs/recipes.md' with { type: 'text' };
import recipesChinese from '../../docs/recipes.zh-CN.md' with { type: 'text' };
import scaleOut from '../../docs/scale-out.md' with { type: 'text' };
import scaleOutChinese from '../../docs/scale-out.zh-CN.md' with { type: 'text' };
import security from '../../docs/security.md' with { type: 'text' };
import securityChinese from '../../docs/security.zh-CN.md' with { type: 'text' };
import serverTools from '../../docs/server-tools.md' with { type: 'text' };
import serverToolsChinese from '../../docs/server-tools.zh-CN.md' with { type: 'text' };
import telemetry from '../../docs/telemetry.md' with { type: 'text' };
import telemetryChinese from '../../docs/telemetry.zh-CN.md' with { type: 'text' };
import troubleshooting from '../../docs/troubleshooting.md' with { type: 'text' };
import troubleshootingChinese from '../../docs/troubleshooting.zh-CN.md' with { type: 'text' };
import twoKeys from '../../docs/two-keys.md' with { type: 'text' };
import twoKeysChinese from '../../docs/two-keys.zh-CN.md' with { type: 'text' };
import websocket from '../../docs/websocket.md' with { type: 'text' };
import websocketChinese from '../../docs/websocket.zh-CN.md' with { type: 'text' };
import chinese from '../../README.zh-CN.md' with { type: 'text' };

export type Language = 'en' | 'zh-CN';

export interface Page {
  /** The last part of its address: `getting-started`, `keys.zh-CN`. */
  readonly name: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
  readonly language: Language;
}

const TEXTS: Readonly<Record<string, string>> = {
  'getting-started': gettingStarted,
  install,
  agents,
  recipes,
  'behind-nginx': behindNginx,
  'changed-requests': changedRequests,
  'claude-code-on-glm': claudeCodeOnGlm,
  docker,
  troubleshooting,
  'two-keys': twoKeys,
  configuration,
  endpoints,
  platforms,
  'server-tools': serverTools,
  'chat-apps': chatApps,
  memory,
  keys,
  limits,
  money,
  'prompt-caches': promptCaches,
  'scale-out': scaleOut,
  websocket,
  browser,
  notes,
  errors,
  'log-events': logEvents,
  metrics,
  telemetry,
  security,
  'how-it-works': howItWorks,
  proof,
  glossary,
  'zh-CN': withoutPicture(chinese),
  'getting-started.zh-CN': gettingStartedChinese,
  'install.zh-CN': installChinese,
  'behind-nginx.zh-CN': behindNginxChinese,
  'changed-requests.zh-CN': changedRequestsChinese,
  'claude-code-on-glm.zh-CN': claudeCodeOnGlmChinese,
  'docker.zh-CN': dockerChinese,
  'troubleshooting.zh-CN': troubleshootingChinese,
  'two-keys.zh-CN': twoKeysChinese,
  'agents.zh-CN': agentsChinese,
  'keys.zh-CN': keysChinese,
  'limits.zh-CN': limitsChinese,
  'money.zh-CN': moneyChinese,
  'prompt-caches.zh-CN': promptCachesChinese,
  'platforms.zh-CN': platformsChinese,
  'scale-out.zh-CN': scaleOutChinese,
  'websocket.zh-CN': websocketChinese,
  'endpoints.zh-CN': endpointsChinese,
  'telemetry.zh-CN': telemetryChinese,
  'metrics.zh-CN': metricsChinese,
  'glossary.zh-CN': glossaryChinese,
  'proof.zh-CN': proofChinese,
  'errors.zh-CN': errorsChinese,
  'how-it-works.zh-CN': howItWorksChinese,
  'memory.zh-CN': memoryChinese,
  'chat-apps.zh-CN': chatAppsChinese,
  'browser.zh-CN': browserChinese,
  'log-events.zh-CN': logEventsChinese,
  'notes.zh-CN': notesChinese,
  'configuration.zh-CN': configurationChinese,
  'recipes.zh-CN': recipesChinese,
  'server-tools.zh-CN': serverToolsChinese,
  'security.zh-CN': securityChinese,
};

/** The first heading, without `#`. */
const titleOf = (text: string) => /^# (.+)$/m.exec(text)?.[1]?.trim() ?? '';

/** English pages, then Chinese ones. */
export const PAGES: readonly Page[] = Object.entries(TEXTS).map(([name, text]) => ({
  name,
  title: titleOf(text),
  text,
  language: name.endsWith('zh-CN') ? 'zh-CN' : 'en',
}));

export interface PageGroup {
  readonly title: Readonly<Record<Language, string>>;
  /** English names. */
  readonly pages: readonly string[];
}

/** The contents, in reading order. */
export const GROUPS: readonly PageGroup[] = [
  {
    title: { en: 'Start', 'zh-CN': '开始' },
    pages: ['getting-started', 'install', 'docker', 'recipes'],
  },
  {
    title: { en: 'Tasks', 'zh-CN': '常见任务' },
    pages: [
      'claude-code-on-glm',
      'two-keys',
      'behind-nginx',
      'changed-requests',
      'troubleshooting',
    ],
  },
  {
    title: { en: 'Use', 'zh-CN': '使用' },
    pages: ['agents', 'browser', 'server-tools', 'endpoints', 'websocket'],
  },
  {
    title: { en: 'Chat apps', 'zh-CN': '聊天应用' },
    pages: ['chat-apps', 'memory'],
  },
  {
    title: { en: 'Operate', 'zh-CN': '运维' },
    pages: [
      'keys',
      'limits',
      'money',
      'prompt-caches',
      'platforms',
      'scale-out',
      'security',
      'metrics',
      'telemetry',
    ],
  },
  {
    title: { en: 'Reference', 'zh-CN': '参考' },
    pages: ['configuration', 'notes', 'errors', 'log-events', 'glossary'],
  },
  {
    title: { en: 'Background', 'zh-CN': '背景' },
    pages: ['how-it-works', 'proof'],
  },
];

const named = (name: string): Page | undefined => PAGES.find((page) => page.name === name);

/** The same page in the other language, if there is one. The Chinese README stands for the English first page. */
export function counterpartOf({ name, language }: Page): Page | undefined {
  if (name === 'zh-CN') return named('getting-started');
  return named(language === 'en' ? `${name}.zh-CN` : name.replace(/\.zh-CN$/, ''));
}

/** Pages by their English names, in this language where it exists, else in English. */
export const inLanguage = (names: readonly string[], language: Language): readonly Page[] =>
  names.flatMap((name) => {
    const translated = language === 'en' ? undefined : named(`${name}.${language}`);
    return translated ?? named(name) ?? [];
  });

/** Pictures by their names in the pages. */
export const PICTURES: Readonly<Record<string, string>> = {
  'request.svg': requestPicture,
  'rooms.svg': roomsPicture,
};

/** Pictures of the page at `/ui` by their names, as paths that this program can read. */
export const PHOTOS: Readonly<Record<string, string>> = {
  'page-exchange-dark.png': exchangeDark,
  'page-exchange-light.png': exchangeLight,
  'page-conversation-dark.png': conversationDark,
  'page-conversation-light.png': conversationLight,
  'page-session-dark.png': sessionDark,
  'page-session-light.png': sessionLight,
  'page-keys-dark.png': keysDark,
  'page-keys-light.png': keysLight,
  'page-list-dark.png': listDark,
  'page-list-light.png': listLight,
  'page-diff-dark.png': diffDark,
  'page-diff-light.png': diffLight,
  'page-phone-dark.png': phoneDark,
  'page-phone-light.png': phoneLight,
  'page-replay-dark.png': replayDark,
  'page-replay-light.png': replayLight,
  'page-search-dark.png': searchDark,
  'page-search-light.png': searchLight,
  'page-usage-dark.png': usageDark,
  'page-usage-light.png': usageLight,
};

/** The text without its `<picture>`: that is HTML for code hosts, and the program carries no such image. */
function withoutPicture(text: string): string {
  const from = text.indexOf('<picture>');
  const to = text.indexOf('</picture>\n\n', from);
  return from < 0 || to < 0 ? text : text.slice(0, from) + text.slice(to + '</picture>\n\n'.length);
}

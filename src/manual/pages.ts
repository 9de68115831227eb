/** The pages of the manual, bundled as text, so that the executable needs no other files. */

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
import { readTexts } from './read-texts.ts' with { type: 'macro' };

export type Language = 'en' | 'zh-CN';

export interface Page {
  /** The last part of its address: `getting-started`, `keys.zh-CN`. */
  readonly name: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
  readonly language: Language;
}

/** The first heading, without `#`. */
const titleOf = (text: string) => /^# (.+)$/m.exec(text)?.[1]?.trim() ?? '';

/** English pages, then Chinese ones. */
export const PAGES: readonly Page[] = Object.entries(readTexts()).map(([name, text]) => ({
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

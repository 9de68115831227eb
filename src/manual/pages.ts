/** The pages of the manual, bundled as text, so that the executable needs no other files. */

import agents from '../../docs/agents.md' with { type: 'text' };
import agentsChinese from '../../docs/agents.zh-CN.md' with { type: 'text' };
import browser from '../../docs/browser.md' with { type: 'text' };
import chatApps from '../../docs/chat-apps.md' with { type: 'text' };
import configuration from '../../docs/configuration.md' with { type: 'text' };
import endpoints from '../../docs/endpoints.md' with { type: 'text' };
import errors from '../../docs/errors.md' with { type: 'text' };
import gettingStarted from '../../docs/getting-started.md' with { type: 'text' };
import glossary from '../../docs/glossary.md' with { type: 'text' };
import howItWorks from '../../docs/how-it-works.md' with { type: 'text' };
import requestPicture from '../../docs/img/request.svg' with { type: 'text' };
import roomsPicture from '../../docs/img/rooms.svg' with { type: 'text' };
import install from '../../docs/install.md' with { type: 'text' };
import keys from '../../docs/keys.md' with { type: 'text' };
import keysChinese from '../../docs/keys.zh-CN.md' with { type: 'text' };
import limits from '../../docs/limits.md' with { type: 'text' };
import limitsChinese from '../../docs/limits.zh-CN.md' with { type: 'text' };
import logEvents from '../../docs/log-events.md' with { type: 'text' };
import memory from '../../docs/memory.md' with { type: 'text' };
import metrics from '../../docs/metrics.md' with { type: 'text' };
import money from '../../docs/money.md' with { type: 'text' };
import moneyChinese from '../../docs/money.zh-CN.md' with { type: 'text' };
import notes from '../../docs/notes.md' with { type: 'text' };
import platforms from '../../docs/platforms.md' with { type: 'text' };
import platformsChinese from '../../docs/platforms.zh-CN.md' with { type: 'text' };
import proof from '../../docs/proof.md' with { type: 'text' };
import recipes from '../../docs/recipes.md' with { type: 'text' };
import scaleOut from '../../docs/scale-out.md' with { type: 'text' };
import scaleOutChinese from '../../docs/scale-out.zh-CN.md' with { type: 'text' };
import security from '../../docs/security.md' with { type: 'text' };
import serverTools from '../../docs/server-tools.md' with { type: 'text' };
import telemetry from '../../docs/telemetry.md' with { type: 'text' };
import websocket from '../../docs/websocket.md' with { type: 'text' };
import chinese from '../../README.zh-CN.md' with { type: 'text' };

export interface Page {
  /** The last part of its address: `getting-started`. */
  readonly name: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
}

const TEXTS: Readonly<Record<string, string>> = {
  'getting-started': gettingStarted,
  install,
  agents,
  recipes,
  configuration,
  endpoints,
  platforms,
  'server-tools': serverTools,
  'chat-apps': chatApps,
  memory,
  keys,
  limits,
  money,
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
  'agents.zh-CN': agentsChinese,
  'keys.zh-CN': keysChinese,
  'limits.zh-CN': limitsChinese,
  'money.zh-CN': moneyChinese,
  'platforms.zh-CN': platformsChinese,
  'scale-out.zh-CN': scaleOutChinese,
};

/** The first heading, without `#`. */
const titleOf = (text: string) => /^# (.+)$/m.exec(text)?.[1]?.trim() ?? '';

/** In reading order. */
export const PAGES: readonly Page[] = Object.entries(TEXTS).map(([name, text]) => ({
  name,
  title: name === 'zh-CN' ? `${titleOf(text)}（中文）` : titleOf(text),
  text,
}));

/** Pictures by their names in the pages. */
export const PICTURES: Readonly<Record<string, string>> = {
  'request.svg': requestPicture,
  'rooms.svg': roomsPicture,
};

/** The text without its `<picture>`: that is HTML for code hosts, and the program carries no such image. */
function withoutPicture(text: string): string {
  const from = text.indexOf('<picture>');
  const to = text.indexOf('</picture>\n\n', from);
  return from < 0 || to < 0 ? text : text.slice(0, from) + text.slice(to + '</picture>\n\n'.length);
}

/** The messages tab: each body as a conversation, as JSON, as raw bytes, and its headers. */

import type { Info, SampleDetail } from '../../api/api.ts';
import { getBody, getConversation } from '../kit/api-calls.ts';
import { copyButton } from '../kit/copy-dom.ts';
import { button, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { bytes } from '../kit/format.ts';
import { currentRoute, go, hashOf, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { conversation } from './conversation.ts';
import { headersTable, jsonBody, rawBody } from './raw-body.ts';
import { inOrder, stageInfoOf, stageList, stageSelect, stageTitle } from './stages.ts';

const MODES = [
  ['talk', 'Conversation'],
  ['json', 'JSON'],
  ['raw', 'Raw'],
  ['headers', 'Headers'],
] as const;
type Mode = (typeof MODES)[number][0];

export function createMessagesTab(detail: SampleDetail, _info: Info): View<ExchangeRoute> {
  const { meta, row } = detail;
  const stages = inOrder(meta).map(({ stage }) => stage);
  const side = h('div', { class: 'side' });
  const bar = h('div', { class: 'bar' });
  const content = h('div', { class: 'content', 'aria-live': 'off' });
  const node = h('div', { class: 'messages-tab' }, side, h('div', { class: 'main' }, bar, content));
  let shown = '';
  let stop = new AbortController();

  const stageOf = (route: ExchangeRoute) =>
    stages.find((stage) => stage === route.query.edge) ?? stages[0] ?? 'client-request';
  const modeOf = (route: ExchangeRoute): Mode =>
    MODES.find(([mode]) => mode === route.query.as)?.[0] ?? 'talk';

  async function fill(stage: string, mode: Mode): Promise<void> {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    const stageInfo = stageInfoOf(meta, stage);
    if (stageInfo === undefined) {
      replace(content, h('p', { class: 'soft' }, 'This body was not recorded.'));
      return;
    }
    content.setAttribute('aria-busy', 'true');
    try {
      const ready =
        mode === 'headers'
          ? headersTable(stageInfo)
          : mode === 'json'
            ? await jsonBody(row.id, stageInfo, meta.notes, signal)
            : mode === 'raw'
              ? await rawBody(row.id, stageInfo, signal)
              : conversation(
                  await getConversation(row.id, stage, 20_000, signal),
                  meta.notes,
                  (chars) => getConversation(row.id, stage, chars),
                );
      if (signal.aborted) return;
      replace(
        content,
        stageInfo.cut === true &&
          h(
            'p',
            { class: 'soft' },
            'This body is incomplete: it was cut off, or it was too large to keep.',
          ),
        ready,
      );
    } catch (thrown) {
      const message = failureText(thrown);
      if (message !== undefined)
        replace(content, h('p', { class: 'problem', role: 'alert' }, message));
    }
    content.removeAttribute('aria-busy');
  }

  return {
    node,
    show(route) {
      const stage = stageOf(route);
      const mode = modeOf(route);
      const next = `${stage} ${mode}`;
      if (next === shown) return;
      shown = next;
      const to = (edge: string) => withQuery(route, { edge });
      replace(
        side,
        stageList(detail, stage, (stageInfo) => hashOf(to(stageInfo))),
      );
      const stageInfo = stageInfoOf(meta, stage);
      replace(
        bar,
        stageSelect('Body', stages, stage, (chosen) => go(to(chosen))),
        h('h2', null, stageTitle(stage)),
        h(
          'div',
          { class: 'segments', role: 'group', 'aria-label': 'View' },
          MODES.map(([name, text]) =>
            button(text, () => go(withQuery(route, { as: name === 'talk' ? '' : name }), true), {
              'aria-pressed': String(name === mode),
            }),
          ),
        ),
        stageInfo !== undefined &&
          copyButton('Copy', async () => (await getBody(row.id, stage, 4 * 1024 * 1024)).text, {
            class: 'button',
            title: `The body, ${bytes(stageInfo.bytes)}`,
          }),
      );
      void fill(stage, mode);
    },
    press(event) {
      if (event.key !== '[' && event.key !== ']') return false;
      const route = currentRoute();
      if (route.name !== 'exchange') return false;
      const at = stages.indexOf(stageOf(route)) + (event.key === ']' ? 1 : -1);
      if (stages[at] !== undefined) go(withQuery(route, { edge: stages[at] }), true);
      return true;
    },
    close: () => stop.abort(),
  };
}

/** The header of an exchange: its facts and actions. */

import type { Info, SampleDetail } from '../../api/api.ts';
import { getCurl, getExport } from '../kit/api-calls.ts';
import { announce, saveFile } from '../kit/copy.tsx';
import { copyButton } from '../kit/copy-dom.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { bytes, count, millis, moment, several } from '../kit/format.ts';
import { currentRoute, filtersOf, hashOf, type Query, type Tab } from '../kit/route.ts';
import { protocolName } from '../list/row-cells.ts';
import { statusLabel, toneOf } from '../list/status.ts';
import { cost } from './money.ts';
import { totalInput, totalOutput } from './usage.ts';

export function exchangeHeader(detail: SampleDetail, info: Info): Child {
  const { row, meta } = detail;
  const [status, statusText] = statusLabel(row);
  return [
    h(
      'div',
      { class: 'headline' },
      h('a', { class: 'back', href: listLink(), 'aria-label': 'Back to the list' }, '←'),
      h(
        'h1',
        { tabindex: -1 },
        h('span', { class: 'pill-status', 'data-tone': toneOf(row) }, status),
        (row.model !== '' || row.target === '') &&
          h('span', { class: 'model' }, row.model || '(no model)'),
        row.target !== '' &&
          h('span', { class: 'target' }, row.model === '' ? '' : ' → ', row.target),
      ),
      actions(detail),
    ),
    h(
      'p',
      { class: 'idline' },
      h('code', null, row.id),
      copyButton('copy', () => row.id, { class: 'tiny', 'aria-label': 'Copy the id' }),
      meta.made_by !== undefined && h('span', { class: 'made' }, meta.made_by),
      meta.about !== undefined && h('span', { class: 'about' }, meta.about),
    ),
    h('dl', { class: 'facts summary' }, facts(detail, info, statusText)),
  ];
}

const fact = (name: string, ...value: Child[]) =>
  h('div', null, h('dt', null, name), h('dd', null, ...value));

function facts(detail: SampleDetail, info: Info, statusText: string): Child[] {
  const { row, meta, usage } = detail;
  const again = row.tries - row.hops;
  return [
    statusText !== '' && fact(row.state === 'open' ? 'State' : 'Error', statusText),
    fact('Time', moment(row.time)),
    fact('API', protocolName(row.entry), meta.stream === true ? ', streamed' : ''),
    row.hops > 0 &&
      fact('Hops', count(row.hops), again > 0 && ` + ${several(again, 'retry', 'retries')}`),
    fact('First byte', millis(row.first_byte_ms)),
    row.state === 'open'
      ? fact('Elapsed', millis(Math.max(0, Date.now() - row.time)))
      : fact('Total', millis(row.total_ms)),
    usage !== null && fact('Tokens', count(totalInput(usage)), ' → ', count(totalOutput(usage))),
    detail.cost !== null && fact('Cost', cost(detail.cost)),
    fact(row.in_memory ? 'In memory' : 'On disk', bytes(row.bytes)),
    row.session !== '' &&
      fact(
        'Session',
        h(
          'a',
          { href: filterLink({ session: row.session }), title: 'All exchanges of this session' },
          row.session.length > 24 ? `${row.session.slice(0, 23)}…` : row.session,
        ),
      ),
    meta.route !== undefined && fact('Route', meta.route),
    info.sees === 'all' && meta.owner !== undefined && fact('Key', meta.owner),
    meta.masked > 0 && fact('Masked', several(meta.masked, 'credential')),
    (meta.redacted?.length ?? 0) > 0 && fact('Blanked', meta.redacted!.join(', ')),
  ];
}

const listLink = (): string => hashOf({ name: 'list', query: filtersOf(currentRoute().query) });
const filterLink = (query: Query): string => hashOf({ name: 'list', query });

function actions({ row, sendable }: SampleDetail): HTMLElement {
  const link = (tab: Tab, text: string) =>
    h(
      'a',
      {
        class: 'button',
        href: hashOf({ name: 'exchange', id: row.id, tab, query: filtersOf(currentRoute().query) }),
      },
      text,
    );
  const save = async (redact: boolean) => {
    try {
      saveFile(`${row.id}${redact ? '.blanked' : ''}.json`, await getExport(row.id, redact));
    } catch (thrown) {
      announce(failureText(thrown) ?? '');
    }
  };
  const menu: HTMLDetailsElement = h(
    'details',
    { class: 'menu' },
    h('summary', { class: 'button' }, 'Export'),
    h(
      'div',
      { class: 'menu-items' },
      button('As it is', () => pick(false)),
      button('Texts and images blanked', () => pick(true)),
    ),
  );
  const pick = (redact: boolean) => {
    menu.open = false;
    void save(redact);
  };
  return h(
    'div',
    { class: 'actions' },
    sendable.length > 0 && link('replay', 'Replay'),
    // Where nothing failed there is nothing to look for; the tab is still there.
    sendable.length > 0 && (row.failed || row.error !== '') && link('bisect', 'Bisect'),
    copyButton('Copy as curl', () => getCurl(row.id, undefined), { class: 'button' }),
    menu,
  );
}

import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { totalInput, totalOutput } from '../../../conversation/usage.ts';
import type { Info, SampleDetail } from '../../api/api.ts';
import { DiffTab } from '../diff/diff-tab.tsx';
import { BisectTab } from '../jobs/bisect-tab.tsx';
import { ReplayTab } from '../jobs/replay-tab.tsx';
import { act, CopyButton, Id, saveFile } from '../kit/copy.tsx';
import { ask } from '../kit/fetching.ts';
import { bytes, count, millis, moment, several, usd } from '../kit/format.ts';
import { useGet, useKeys } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import {
  type ExchangeRoute,
  exchangeLink,
  filtersOf,
  go,
  hashOf,
  TABS,
  type Tab,
  withQuery,
} from '../kit/route.ts';
import { Button, type Fact, Facts, Menu, Problem, StatusPill, Tabs } from '../kit/ui.tsx';
import { keyOf, protocolName } from '../list/row-cells.tsx';
import { statusLabel, toneOf } from '../list/status.ts';
import { RawTab } from './raw-tab.tsx';
import type { ViewProps } from './stages.tsx';
import { TalkTab } from './talk-tab.tsx';
import { TimelineTab } from './timeline-tab.tsx';

const VIEWS: Readonly<Record<Tab, (props: ViewProps) => VNode>> = {
  talk: TalkTab,
  timeline: TimelineTab,
  diff: DiffTab,
  messages: RawTab,
  replay: ReplayTab,
  bisect: BisectTab,
};

/** Keys of what is no tab. */
const KEYS: Readonly<Record<string, Tab>> = { e: 'messages', r: 'replay', b: 'bisect' };

const RELOAD_AFTER_MS = 1000;

export function ExchangePage({ info, route }: { info: Info; route: ExchangeRoute }) {
  const { id, tab } = route;
  const body = useRef<HTMLDivElement>(null);
  const { data: detail, problem } = useGet('/samples/:id', { id }, ({ row }) =>
    row.state === 'open' ? RELOAD_AFTER_MS : undefined,
  );
  const missing = detail === undefined && problem !== undefined;
  useLayoutEffect(() => {
    body.current!.scrollTop = 0;
  }, [tab]);
  // A view's own state is dropped; only the filters of the list stay.
  const at = (next: Tab) => ({ ...route, tab: next, query: filtersOf(route.query) });
  useKeys(({ key }) => {
    const wanted = TABS[Number(key) - 1]?.[0] ?? KEYS[key];
    if (wanted === undefined || missing) return false;
    go(key === 'e' ? withQuery(at(wanted), { as: 'events' }) : at(wanted));
    return true;
  }, 1);
  const View = VIEWS[tab];
  return (
    <article class="exchange" data-tab={tab} aria-busy={(!detail && !missing) || undefined}>
      <header class="exchange-head">
        {detail && <Head detail={detail} info={info} route={route} />}
      </header>
      {!missing && (
        <Tabs
          label={t`Views of this exchange`}
          numbered
          links={TABS.map(([name, title]) => {
            return [title, hashOf(name === tab ? route : at(name)), name === tab];
          })}
        />
      )}
      <div class="tab-body" id="tab-body" tabIndex={-1} ref={body}>
        {missing ? (
          <div class="blank missing">
            <h1 class="sr">{t`Not found`}</h1>
            <Problem text={t`There is no exchange ${id}.`} />
            <p>
              {rich`It may have been removed since, or belong to another key. 
              ${<a href="#/">{t`Show all exchanges`}</a>}`}
            </p>
          </div>
        ) : (
          <>
            <Problem text={problem} />
            {detail && <View key={tab} detail={detail} info={info} route={route} />}
          </>
        )}
      </div>
    </article>
  );
}

function Head({ detail, info, route }: ViewProps) {
  const { row, meta } = detail;
  const [status, statusText] = statusLabel(row);
  return (
    <>
      <div class="headline">
        <a
          class="back"
          href={hashOf({ name: 'list', query: filtersOf(route.query) })}
          aria-label={t`Back to the list`}
        >
          ←
        </a>
        <h1 tabIndex={-1}>
          <StatusPill tone={toneOf(row)}>{status}</StatusPill>
          {(row.model !== '' || row.target === '') && (
            <span class="model">{row.model || t`(no model)`}</span>
          )}
          {row.target !== '' && (
            <span class="target">{`${row.model === '' ? '' : ' → '}${row.target}`}</span>
          )}
        </h1>
        <Actions {...detail} route={route} />
      </div>
      <p class="idline">
        <Id id={row.id} />
        {meta.made_by !== undefined && <span class="made">{meta.made_by}</span>}
        {meta.about !== undefined && <span class="about">{meta.about}</span>}
      </p>
      <Facts class="facts summary" items={factsOf(detail, info, statusText)} />
    </>
  );
}

function factsOf(detail: SampleDetail, info: Info, statusText: string): readonly Fact[] {
  const { row, meta } = detail;
  const { usage } = meta;
  const again = row.tries - row.hops;
  const running = row.state === 'open';
  const session = row.session.length > 24 ? `${row.session.slice(0, 23)}…` : row.session;
  return [
    statusText !== '' && [row.error === '' ? t`State` : t`Error`, statusText],
    [t`Time`, moment(row.time)],
    [t`Protocol`, `${protocolName(row.entry)}${meta.stream === true ? t`, streamed` : ''}`],
    row.hops > 0 && [
      t`Hops`,
      `${count(row.hops)}${again > 0 ? ` + ${several(again, 'retry', 'retries')}` : ''}`,
    ],
    [t`First byte`, millis(row.first_byte_ms)],
    running
      ? [t`Elapsed`, millis(Math.max(0, Date.now() - row.time))]
      : [t`Total`, millis(row.total_ms)],
    usage !== undefined && [
      t`Tokens`,
      `${count(totalInput(usage))} → ${count(totalOutput(usage))}`,
    ],
    row.cost !== null && [t`Cost`, usd(row.cost)],
    [row.in_memory ? t`In memory` : t`On disk`, bytes(row.bytes)],
    row.session !== '' && [
      t`Session`,
      <a
        key="session"
        href={hashOf({ name: 'list', query: { session: row.session } })}
        title={t`All exchanges of this session`}
      >
        {session}
      </a>,
    ],
    meta.route !== undefined && [t`Route`, meta.route],
    info.sees === 'all' && row.owner !== '' && [t`Key`, keyOf(row)],
    meta.masked > 0 && [t`Masked`, several(meta.masked, 'credential')],
    (meta.redacted?.length ?? 0) > 0 && [t`Blanked`, meta.redacted!.join(', ')],
  ];
}

function Actions({ row, sendable, route }: SampleDetail & { readonly route: ExchangeRoute }) {
  const link = (tab: Tab, text: string) => (
    <a
      class="button"
      href={exchangeLink(row.id, tab)}
      aria-current={route.tab === tab ? 'page' : undefined}
    >
      {text}
    </a>
  );
  const save = (redact: boolean, close: () => void) => () => {
    close();
    const name = `${row.id}${redact ? '.blanked' : ''}.json`;
    const params = { id: row.id, redact: redact ? 1 : undefined };
    void act(async () => {
      const answer = await ask('/samples/:id/export', { params });
      saveFile(name, await answer.blob());
    });
  };
  return (
    <div class="actions">
      {sendable.length > 0 && link('replay', t`Replay`)}
      {/* Where nothing failed there is nothing to look for; the key b leads there all the same. */}
      {sendable.length > 0 && (row.failed || row.error !== '') && link('bisect', t`Bisect`)}
      <CopyButton
        class="button"
        read={async () => (await ask('/samples/:id/curl', { params: { id: row.id } })).text()}
      >{t`Copy as curl`}</CopyButton>
      <Menu name="export" text={t`Export`}>
        {(close) => (
          <>
            <Button onClick={save(false, close)}>{t`As it is`}</Button>
            <Button onClick={save(true, close)}>{t`Texts and images blanked`}</Button>
          </>
        )}
      </Menu>
    </div>
  );
}

/** The keys with what they spent, and the budgets; or one key with its settings. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { UsageGroup } from '../../../admin/api.ts';
import { act, Snippet } from '../kit/copy.tsx';
import { count, usdInColumn } from '../kit/format.ts';
import { useKeys, useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { type AdminRoute, adminRoute, go, hashOf, type Query } from '../kit/route.ts';
import { Search } from '../kit/search.tsx';
import { Table } from '../kit/table.tsx';
import { Blank, Button, type Child, DocLink, PageFrame, Soft, State, When } from '../kit/ui.tsx';
import { getAdmin, getReport, type KeyView, MAX_BUDGETS } from './api.ts';
import { BudgetList, Labels, periodText } from './budgets.tsx';
import { KeyDetail, LIMITS, NewKey, STATES, stateOf } from './key-detail.tsx';

const ON_PAGE = 200;
/** More keys than this are not shown with what they spent. */
const MAX_SPENDERS = 2000;

const EXAMPLE = `budgets:
  - name: web-team
    keys: { team: web }
    usd: 200
    per: month
    warn: [0.5, 0.8]
    over: refuse`;

export function KeysPage({ route }: { route: AdminRoute }) {
  const { id, query } = route;
  useKeys(
    id === ''
      ? { n: () => go(adminRoute('keys', 'new')) }
      : { Escape: () => go(adminRoute('keys')) },
  );
  if (id === 'new') return <NewKey />;
  return id === '' ? <KeyList query={query} /> : <KeyDetail key={id} id={id} />;
}

function KeyList({ query }: { query: Query }) {
  const budgets = useRef<HTMLElement>(null);
  const wanted = { search: query.q, revoked: query.revoked, limit: ON_PAGE };
  const loaded = useLoad(
    async (signal) => {
      const [page, usage, limits] = await Promise.all([
        getAdmin('/keys', wanted, signal),
        getReport('/usage', { by: 'key', from: '30d', limit: MAX_SPENDERS }, signal),
        getAdmin('/budgets', { limit: MAX_BUDGETS }, signal),
      ]);
      const spent = new Map(usage.data.map((group) => [group.name ?? '', group]));
      return { ...page, spent, limits };
    },
    [query.q, query.revoked],
  );
  const { data: found } = loaded;
  const asked = query.at === 'budgets' && found !== undefined;
  useLayoutEffect(() => {
    if (asked) budgets.current?.scrollIntoView();
  }, [asked]);
  const change = (changes: Query) => go(adminRoute('keys', '', { ...query, ...changes }), true);
  const more = async () => {
    if (found === undefined) return;
    const page = await getAdmin('/keys', { ...wanted, after: found.next ?? undefined });
    loaded.set({ ...found, data: [...found.data, ...page.data], next: page.next });
  };
  const actions = (
    <>
      <Search
        label={t`Search keys`}
        placeholder={t`Search names, labels, models`}
        q={query.q ?? ''}
        put={(q) => change({ q })}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={query.revoked === 'true'}
          onChange={({ currentTarget }) => change({ revoked: currentTarget.checked ? 'true' : '' })}
        />
        {t`Show revoked keys`}
      </label>
      <a class="button primary" href="#/keys/new">{t`New key`}</a>
    </>
  );
  return (
    <PageFrame
      title={t`Keys and budgets`}
      about={t`Who may use this gateway, and what each key may use and spend.`}
      actions={actions}
      loaded={loaded}
    >
      {found && (
        <>
          {found.data.length > 0 ? (
            <KeyTable {...found} />
          ) : query.q ? (
            <Blank title={t`No key fits this search`}>
              <Button onClick={() => go(adminRoute('keys'))}>{t`Show all`}</Button>
            </Blank>
          ) : (
            <Blank title={t`There are no keys yet`}>
              <p>{t`Create one for each person, program or team that uses this gateway. Each has its own limits, budget and bill.`}</p>
              <a class="button primary" href="#/keys/new">{t`New key`}</a>
            </Blank>
          )}
          {found.next !== null && (
            <p class="admin-more">
              <Button onClick={() => void act(more)}>{t`More keys`}</Button>
            </p>
          )}
          <section ref={budgets} class="budgets" aria-label={t`Budgets`}>
            <h2>{t`Budgets`}</h2>
            {found.limits.data.length > 0 ? (
              <BudgetList {...found.limits} />
            ) : (
              <>
                <p class="soft">
                  {rich`There are none yet. Give a key its own on its page, or let several keys share one in the configuration: ${<DocLink to="limits">{t`Budgets in the manual`}</DocLink>}`}
                </p>
                <Snippet text={EXAMPLE} />
              </>
            )}
          </section>
        </>
      )}
    </PageFrame>
  );
}

type Spent = ReadonlyMap<string, UsageGroup>;

const KeyTable = ({ data, spent }: { data: readonly KeyView[]; spent: Spent }) => (
  <Table
    cards
    label={t`Keys`}
    rows={data}
    rowProps={(key) => ({ 'data-off': stateOf(key) === 'revoked' ? '' : undefined })}
    columns={[
      [t`Name`, (key) => <Name {...key} />, 'wraps'],
      [t`State`, (key) => <KeyState {...key} />],
      [t`Models`, ({ models }) => <Models list={models} />, 'wraps'],
      [t`Limits`, (key) => <Lines all={limitsOf(key)} />],
      [t`Budget`, ({ budgets = [] }) => <Lines all={budgets.map(periodText)} />],
      [t`Cost, 30 days`, ({ id }) => usdInColumn(spent.get(id)?.cost_usd ?? null), 'num'],
      [t`Attempts`, ({ id }) => count(spent.get(id)?.tries ?? 0), 'num'],
    ]}
  />
);

const limitsOf = ({ limits }: KeyView): readonly string[] =>
  LIMITS.flatMap(([name, , words]) => {
    const amount = limits?.[name];
    return amount === undefined ? [] : [words(amount)];
  });

const Name = ({ id, name, source, labels = {} }: KeyView) => (
  <>
    <a class="name" href={hashOf(adminRoute('keys', id))}>
      {name}
    </a>
    {source === 'configuration' && (
      <span class="plain-tag" title={t`It is in the configuration file`}>{t`configuration`}</span>
    )}
    {Object.keys(labels).length > 0 && (
      <div class="label-line">
        <Labels all={labels} />
      </div>
    )}
  </>
);

function KeyState(key: KeyView) {
  const state = stateOf(key);
  const [text, tone] = STATES[state];
  return (
    <>
      <State tone={tone}>{text}</State>
      {key.expires !== undefined && state !== 'revoked' && (
        <div class="soft small">
          {state === 'expired' ? (
            <When iso={key.expires} />
          ) : (
            rich`expires ${<When iso={key.expires} />}`
          )}
        </div>
      )}
    </>
  );
}

function Models({ list }: { list: readonly string[] | undefined }) {
  if (list === undefined) return <Soft>{t`all`}</Soft>;
  const rest = list.length - 2;
  return (
    <>
      {list.slice(0, 2).join(', ')}
      {rest > 0 && <span class="soft" title={list.join(', ')}>{t` and ${rest} more`}</span>}
    </>
  );
}

const Lines = ({ all }: { all: readonly string[] }): Child =>
  all.length === 0 ? (
    <Soft>{t`none`}</Soft>
  ) : (
    all.map((line) => (
      <div key={line} class="nowrap">
        {line}
      </div>
    ))
  );

/** The list with its filters; also the narrow column beside an open exchange. */

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Info } from '../../api/api.ts';
import { Snippet } from '../kit/copy.tsx';
import { useRedraw } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import type { PageProps } from '../kit/places.ts';
import { currentRoute, filtersOf, go, type Query, refine } from '../kit/route.ts';
import { Blank, Button, DocLink, Problem } from '../kit/ui.tsx';
import { ExchangeList, type ListHandle } from './exchange-list.tsx';
import { Filters } from './filters.tsx';
import { KeepLine } from './keep-line.tsx';
import { type Feed, openRows, type Rows } from './rows.ts';

interface ListPageProps extends PageProps {
  /** The state of the live feed changed. */
  readonly feed: (state: Feed) => void;
}

/** Opens an exchange; while one is open, in the same view. */
function choose(id: string, moved: boolean): void {
  const route = currentRoute();
  if (route.name === 'list' && moved) return;
  const tab = route.name === 'exchange' ? route.tab : 'talk';
  go({ name: 'exchange', id, tab, query: filtersOf(route.query) }, moved);
}

export function ListPage({ info, route, feed, switched }: ListPageProps) {
  const isHere = route.name === 'list' || route.name === 'exchange';
  // Elsewhere the list stays as it was left.
  const kept = useRef(route);
  if (isHere) kept.current = route;
  const query = filtersOf(kept.current.query);
  const [rows, inserted] = useRows(query);
  const list = useRef<ListHandle>(null);
  useLayoutEffect(() => feed(rows.feed), [rows.feed]);
  const none = rows.all.length === 0 && !rows.loading;
  return (
    <section class="list-page" aria-label={t`Exchanges`} data-none={String(none)}>
      <h1 class="sr">{t`Exchanges`}</h1>
      <Filters
        query={query}
        change={refine}
        enter={() => list.current!.enter()}
        remark={rows.remark}
      />
      <KeepLine info={info} switched={switched} />
      <ExchangeList
        rows={rows}
        inserted={inserted}
        isHere={isHere}
        open={route.name === 'exchange' ? route.id : undefined}
        sort={query.sort ?? ''}
        choose={choose}
        filter={refine}
        handle={list}
      />
      <div class="notice">
        {rows.all.length === 0 && rows.problem !== undefined ? (
          <Problem text={rows.problem} />
        ) : (
          none && <Nothing info={info} query={query} />
        )}
      </div>
    </section>
  );
}

/** The rows for one set of filters, and the ids of those that came last. */
function useRows(query: Query): readonly [rows: Rows, inserted: readonly string[]] {
  const redraw = useRedraw();
  const inserted = useRef<readonly string[]>([]);
  const rows = useMemo(() => {
    inserted.current = [];
    return openRows(query, (ids) => {
      inserted.current = ids;
      redraw();
    });
  }, [JSON.stringify(query)]);
  useLayoutEffect(() => rows.close, [rows]);
  return [rows, inserted.current];
}

function Nothing({ info, query }: { info: Info; query: Query }) {
  if (Object.keys(query).some((name) => name !== 'sort')) {
    return (
      <Blank title={t`No exchanges match these filters`}>
        <Button onClick={() => go({ name: 'list', query: {} })}>{t`Clear filters`}</Button>
      </Blank>
    );
  }
  const { mode, by_route, recent } = info.samples;
  // An exchange that does not fail is neither recorded nor held in memory.
  if (mode !== 'all' && !by_route && recent === null) return <Unrecorded mode={mode} />;
  return <FirstRequest info={info} />;
}

const Unrecorded = ({ mode }: Pick<Info['samples'], 'mode'>) => (
  <Blank title={mode === 'off' ? t`Recording is off` : t`No failures so far`}>
    <p>{t`Exchanges appear here once the gateway records them. Put this into its configuration:`}</p>
    <Snippet text={'samples:\n  mode: all'} />
    <p>
      {rich`A running gateway applies this by itself; reload this page afterwards. Samples stay on the gateway’s machine, and credentials are never written. 
      ${<DocLink to="configuration#samples">{t`All settings`}</DocLink>}`}
    </p>
  </Blank>
);

function FirstRequest({ info }: { info: Info }) {
  const body = JSON.stringify({
    model: info.targets[0] ?? 'demo/echo',
    stream: true,
    messages: [{ role: 'user', content: 'Hello!' }],
  });
  const key = info.auth ? ' \\\n  -H "authorization: Bearer $HOPGATE_KEY"' : '';
  const line = `curl -N ${location.origin}/v1/chat/completions \\\n  -H 'content-type: application/json'${key} \\\n  -d '${body}'`;
  return (
    <Blank title={t`Waiting for the first exchange`}>
      <p>{t`Send one, and it appears here at once:`}</p>
      <Snippet text={line} />
    </Blank>
  );
}

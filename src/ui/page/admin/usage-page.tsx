/** Usage over time: cost, tokens or tries by key, model, target, session or label, as a chart, a table and CSV. */

import { Chart } from '../charts/chart.tsx';
import { act, saveFile } from '../kit/copy.tsx';
import { count, percent, several, short, usd } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { go, hashOf, type Query, type Route, withQuery } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Blank, Button, DocLink, type Fact, Facts, Segments, Soft } from '../kit/ui.tsx';
import { getUsage, report, tokensIn, tokensOut, type UsageGroup } from './api.ts';
import { ShareBar } from './budgets.tsx';
import { PageFrame } from './page-frame.tsx';
import {
  amountOf,
  MEASURES,
  measureOf,
  nameOf,
  type Step,
  stepOf,
  usageChart,
} from './usage-chart.ts';

const BY = [
  ['key', t`Key`],
  ['model', t`Model`],
  ['target', t`Target`],
  ['session', t`Session`],
] as const;
const RANGES = [
  ['24h', '24 h'],
  ['7d', t`7 days`],
  ['30d', t`30 days`],
  ['90d', t`90 days`],
  ['365d', t`1 year`],
] as const;
const RANGE = '30d';
const STEPS: readonly (readonly [Step, string])[] = [
  ['hour', t`hour`],
  ['day', t`day`],
  ['month', t`month`],
];
/** Series with their own colour. */
const NAMED = 7;
const ROWS = 200;
/** Rows of single tries that are fetched as one file. */
const MAX_ROWS = 200_000;

/** The parameters of the API for a state of the page. */
const asked = ({ by = 'key', from = RANGE, to, key }: Query) => ({ by, from, to, key });

export function UsagePage({ route }: { route: Route }) {
  const { query } = route;
  const step = stepOf(query, RANGE);
  const loaded = useLoad(
    async (signal) => {
      const wanted = asked(query);
      const [totals, over] = await Promise.all([
        getUsage({ ...wanted, limit: ROWS, caches: 'true' }, signal),
        getUsage({ ...wanted, step, top: NAMED }, signal),
      ]);
      return { query, step, totals, over };
    },
    [JSON.stringify(query)],
  );
  const { data: found } = loaded;
  const { from = '', to = '', data = [], labels = [] } = found?.totals ?? {};
  return (
    <PageFrame
      title={t`Usage`}
      about={t`What was used and what it cost. Days and hours are in UTC.`}
      loaded={loaded}
    >
      <Bar route={route} labels={labels} step={step} />
      {found && data.length === 0 && (
        <Blank title={t`Nothing was used in this time`}>
          <p>{t`Each request that reaches a vendor appears here within a second, with its tokens and cost. Choose a longer period, or send a request.`}</p>
          <p>
            <DocLink to="money">{t`Costs in the manual`}</DocLink>
          </p>
        </Blank>
      )}
      {found && data.length > 0 && (
        <>
          <Figures data={data} />
          <div class="usage-chart">
            <Chart
              data={usageChart(found.over, {
                measure: measureOf(found.query.show),
                step: found.step,
                from,
                to,
              })}
            />
          </div>
          <Groups query={found.query} data={data} />
          <Downloads query={found.query} step={found.step} data={data} />
        </>
      )}
    </PageFrame>
  );
}

interface BarProps {
  readonly route: Route;
  readonly labels: readonly string[];
  readonly step: Step;
}

function Bar({ route, labels, step }: BarProps) {
  const { query } = route;
  const change = (changes: Query) => go(withQuery(route, changes), true);
  const date = (name: 'from' | 'to', label: string) => (
    <input
      type="date"
      aria-label={label}
      value={/^\d{4}-\d{2}-\d{2}/.test(query[name] ?? '') ? query[name]!.slice(0, 10) : ''}
      onChange={({ currentTarget }) => change({ [name]: currentTarget.value })}
    />
  );
  const by = query.by ?? 'key';
  return (
    <div class="usage-bar">
      <Segments
        label={t`Sum by`}
        options={[...BY, ...labels.map((name) => [`label.${name}`, t`${name} (label)`] as const)]}
        value={by}
        choose={(next) => change({ by: next })}
      />
      <Segments
        label={t`Show`}
        options={MEASURES}
        value={measureOf(query.show)}
        choose={(show) => change({ show })}
      />
      <i class="break" />
      <Segments
        label={t`Time`}
        options={RANGES}
        value={query.to === undefined ? (query.from ?? RANGE) : ''}
        choose={(from) => change({ to: '', step: '', from })}
      />
      <div class="dates">
        {date('from', t`From`)} – {date('to', t`To`)}
      </div>
      <Segments
        label={t`Step`}
        options={STEPS.filter(([one]) => one !== 'hour' || by !== 'session')}
        value={step}
        choose={(next) => change({ step: next })}
      />
      {query.key !== undefined && (
        <span class="chip">
          {rich`key ${<code>{query.key}</code>}
          ${(
            <Button class="tiny" aria-label={t`Show all keys`} onClick={() => change({ key: '' })}>
              ×
            </Button>
          )}`}
        </span>
      )}
    </div>
  );
}

const shareOf = (part: number, whole: number) => (whole === 0 ? '–' : percent(part / whole));

function Figures({ data }: { data: readonly UsageGroup[] }) {
  const sum = (of: (group: UsageGroup) => number) =>
    data.reduce((all, group) => all + of(group), 0);
  const input = sum(tokensIn);
  const cached = sum(({ tokens }) => tokens.cache_read);
  const unpriced = sum((group) => group.unpriced);
  const estimated = sum((group) => group.estimated);
  return (
    <Facts
      class="figures"
      items={[
        [t`Cost`, usd(sum((group) => group.cost_usd))],
        [t`Attempts`, count(sum((group) => group.tries))],
        [t`Tokens in`, short(input)],
        [t`From the cache`, shareOf(cached, input)],
        [t`Tokens out`, short(sum(tokensOut))],
        money(
          t`Saved by caches`,
          data.map((group) => group.cache_saved_usd),
          t`What reading prompts from vendors’ caches saved, less what writing them cost`,
        ),
        money(
          t`Cost of lost caches`,
          data.map((group) => group.cache_lost_usd),
          t`Paid again within five minutes, because the vendor did not find the beginning of the same conversation in its cache. Of requests whose client names its session`,
        ),
        unpriced > 0 && [
          t`Without a price`,
          count(unpriced),
          {
            'data-tone': 'warn',
            title: t`Attempts at models whose price is not known: their cost is missing here`,
          },
        ],
        estimated > 0 && [
          t`Estimated`,
          count(estimated),
          { title: t`Attempts whose tokens the vendor did not report` },
        ],
      ]}
    />
  );
}

/** Left out where it is not known for every group, and where there is nothing. */
function money(name: string, all: readonly (number | null | undefined)[], title: string): Fact {
  const sum = all.reduce<number>((total, one) => total + (one ?? Number.NaN), 0);
  return Number.isNaN(sum) || sum === 0 ? false : [name, usd(sum), { title }];
}

function Groups({ query, data }: { query: Query; data: readonly UsageGroup[] }) {
  const by = query.by ?? 'key';
  const of = amountOf(measureOf(query.show));
  const all = data.reduce((sum, group) => sum + of(group), 0);
  const most = Math.max(...data.map(of), 0);
  return (
    <Table
      cards
      label={t`Usage in all`}
      rows={data.toSorted((a, b) => of(b) - of(a))}
      columns={[
        [
          BY.find(([value]) => value === by)?.[1] ?? by.replace('label.', ''),
          (group) => <GroupName by={by} group={group} />,
          'wraps',
        ],
        [
          t`Share`,
          (group) => (
            <div class="used-bar">
              <ShareBar share={most === 0 ? 0 : of(group) / most} />
              <span class="num">{shareOf(of(group), all)}</span>
            </div>
          ),
          'used',
        ],
        [t`Cost`, (group) => <Cost {...group} />, 'num'],
        [t`Attempts`, ({ tries }) => count(tries), 'num'],
        [t`Tokens in`, (group) => short(tokensIn(group)), 'num'],
        [t`Cached`, (group) => shareOf(group.tokens.cache_read, tokensIn(group)), 'num'],
        [t`Tokens out`, (group) => short(tokensOut(group)), 'num'],
      ]}
    />
  );
}

function GroupName({ by, group }: { by: string; group: UsageGroup }) {
  const { name } = group;
  const text = nameOf(group);
  if (name === null || name === '') return <Soft>{text}</Soft>;
  if (by !== 'key' || name.startsWith('jwt:')) return <>{text}</>;
  return <a href={hashOf({ name: 'admin', page: 'keys', id: name, query: {} })}>{text}</a>;
}

function Cost({ cost_usd, unpriced, tries }: UsageGroup) {
  if (unpriced === tries) {
    return <span class="soft" title={t`No price is known`}>{t`no price`}</span>;
  }
  const title = t`${several(unpriced, 'attempt', 'attempts')} without a price`;
  return (
    <>
      {usd(cost_usd)}
      {unpriced > 0 && (
        <span class="soft" title={title}>
          {' +'}
        </span>
      )}
    </>
  );
}

interface DownloadsProps {
  readonly query: Query;
  readonly step: string;
  readonly data: readonly UsageGroup[];
}

function Downloads({ query, step, data }: DownloadsProps) {
  const save = (path: string, more: Query, name: string) => () =>
    void act(async () => {
      const { by, ...wanted } = asked(query);
      const answer = await report(path, {
        query: { format: 'csv', ...wanted, ...(path === '/usage' && { by }), ...more },
      });
      saveFile(name, await answer.blob());
    });
  const tries = data.reduce((sum, group) => sum + group.tries, 0);
  return (
    <p class="admin-more downloads">
      {t`CSV:`}
      <Button onClick={save('/usage', { limit: '10000' }, 'usage.csv')}>{t`these totals`}</Button>
      <Button onClick={save('/usage', { limit: '10000', step }, `usage-by-${step}.csv`)}>
        {t`by ${STEPS.find(([one]) => one === step)?.[1] ?? step}`}
      </Button>
      {tries <= MAX_ROWS ? (
        <Button onClick={save('/spend', {}, 'spend.csv')}>{t`every attempt`}</Button>
      ) : (
        <Soft>{rich`every attempt: choose a shorter time, or use ${<code>hopgate usage --csv</code>}`}</Soft>
      )}
    </p>
  );
}

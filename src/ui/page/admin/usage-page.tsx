/** Usage over time: cost, tokens or tries by key, model, target, session or label, as a chart, a table and CSV. */

import type { Usage, UsageGroup } from '../../../admin/api.ts';
import { Chart } from '../charts/chart.tsx';
import type { ChartData, Series } from '../charts/scale.ts';
import { act, saveFile } from '../kit/copy.tsx';
import { adminKey } from '../kit/fetching.ts';
import { count, percent, several, short, usd, usdInColumn } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { adminRoute, hashOf, type Query, type Route, refine } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Blank, Button, DocLink, type Fact, Facts, PageFrame, Segments, Soft } from '../kit/ui.tsx';
import { getReport, report, tokensIn, tokensOut } from './api.ts';
import { ShareBar } from './budgets.tsx';

const BY = [
  ['key', t`Key`],
  ['model', t`Model`],
  ['target', t`Target`],
  ['session', t`Session`],
] as const;
const RANGES = [
  ['24h', t`24 h`],
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
const asked = ({ by, from = RANGE, to, key }: Query) => ({ by, from, to, key });

/** What the page shows: sums over all of the time, and by step. */
interface Found {
  readonly query: Query;
  readonly step: Step;
  readonly totals: Usage;
  readonly over: Usage;
}

export function UsagePage({ route }: { route: Route }) {
  // Without an admin key the page is that of a single user, who has no keys.
  const query = { by: adminKey.get() === '' ? 'model' : 'key', ...route.query };
  const step = stepOf(query, RANGE);
  const loaded = useLoad(
    async (signal): Promise<Found> => {
      const wanted = asked(query);
      const [totals, over] = await Promise.all([
        getReport('/usage', { ...wanted, limit: ROWS, caches: 'true' }, signal),
        getReport('/usage', { ...wanted, step, top: NAMED }, signal),
      ]);
      const shown = isPriced(totals.data) ? query : { show: 'tokens', ...query };
      return { query: shown, step, totals, over };
    },
    [JSON.stringify(query)],
  );
  const { data: found } = loaded;
  const { data = [], labels = [] } = found?.totals ?? {};
  return (
    <PageFrame
      title={t`Usage`}
      about={t`What was used and what it cost. Days and hours are in UTC.`}
      loaded={loaded}
    >
      <Bar query={{ show: found?.query.show ?? '', ...query }} labels={labels} step={step} />
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
            <Chart data={usageChart(found)} />
          </div>
          <Groups {...found} />
          <Downloads {...found} />
        </>
      )}
    </PageFrame>
  );
}

type BarProps = Pick<Found, 'query' | 'step'> & { readonly labels: readonly string[] };

function Bar({ query, labels, step }: BarProps) {
  const date = (name: 'from' | 'to', label: string) => (
    <input
      type="date"
      aria-label={label}
      value={/^\d{4}-\d{2}-\d{2}/.test(query[name] ?? '') ? query[name]!.slice(0, 10) : ''}
      onChange={({ currentTarget }) => refine({ [name]: currentTarget.value })}
    />
  );
  const by = query.by!;
  return (
    <div class="usage-bar">
      <Segments
        label={t`Sum by`}
        options={[...BY, ...labels.map((name) => [`label.${name}`, t`${name} (label)`] as const)]}
        value={by}
        choose={(next) => refine({ by: next })}
      />
      <Segments
        label={t`Show`}
        options={MEASURES}
        value={measureOf(query.show)}
        choose={(show) => refine({ show })}
      />
      <i class="break" />
      <Segments
        label={t`Time`}
        options={RANGES}
        value={query.to === undefined ? (query.from ?? RANGE) : ''}
        choose={(from) => refine({ to: '', step: '', from })}
      />
      <div class="dates">
        {date('from', t`From`)} – {date('to', t`To`)}
      </div>
      <Segments
        label={t`Step`}
        options={STEPS.filter(([one]) => one !== 'hour' || by !== 'session')}
        value={step}
        choose={(next) => refine({ step: next })}
      />
      {query.key !== undefined && (
        <span class="chip">
          {rich`key ${<code>{query.key}</code>}
          ${(
            <Button class="tiny" aria-label={t`Show all keys`} onClick={() => refine({ key: '' })}>
              ×
            </Button>
          )}`}
        </span>
      )}
    </div>
  );
}

/** Is what any of them cost known? */
const isPriced = (groups: readonly UsageGroup[]) => groups.some((one) => one.unpriced < one.tries);

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
        [t`Cost`, usd(isPriced(data) ? sum((group) => group.cost_usd) : null)],
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

function Groups({ query, totals: { data } }: Found) {
  const by = query.by!;
  const [, of] = OF[measureOf(query.show)];
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
  return <a href={hashOf(adminRoute('keys', name))}>{text}</a>;
}

function Cost({ cost_usd, unpriced, tries }: UsageGroup) {
  if (unpriced === tries) {
    return <span class="soft" title={t`No price is known`}>{t`no price`}</span>;
  }
  const title = t`${several(unpriced, 'attempt', 'attempts')} without a price`;
  return (
    <>
      {usdInColumn(cost_usd)}
      {unpriced > 0 && (
        <span class="soft" title={title}>
          {' +'}
        </span>
      )}
    </>
  );
}

function Downloads({ query, step, totals: { data } }: Found) {
  const save = (path: string, more: Query, name: string) => () =>
    void act(async () => {
      const { by, ...wanted } = asked(query);
      const answer = await report(path, {
        params: { format: 'csv', ...wanted, ...(path === '/usage' && { by }), ...more },
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

/** Name, value and how it is written. */
const OF = {
  cost: [t`Cost`, ({ cost_usd }: UsageGroup) => cost_usd, usd],
  tokens: [t`Tokens`, (group: UsageGroup) => tokensIn(group) + tokensOut(group), short],
  tries: [t`Attempts`, ({ tries }: UsageGroup) => tries, short],
} as const;
type Measure = keyof typeof OF;
const MEASURES = Object.entries(OF).map(([name, one]) => [name as Measure, one[0]] as const);
type Step = 'hour' | 'day' | 'month';

const DAY_MS = 86_400_000;
const STEP_MS: Readonly<Record<Step, number>> = {
  hour: 3_600_000,
  day: DAY_MS,
  month: 30 * DAY_MS,
};
/** The longest time that is shown by the hour: the API gives eight days of them. */
const HOURS_MS = 8 * DAY_MS;
const DAYS_MS = 400 * DAY_MS;

const measureOf = (text: string | undefined): Measure =>
  MEASURES.find(([name]) => name === text)?.[0] ?? 'cost';

/** Milliseconds since 1970 of a date or a length such as `30d`. */
function timeOf(text: string | undefined, now: number): number | undefined {
  const length = /^(\d+)([hd])$/.exec(text ?? '');
  if (length !== null) return now - Number(length[1]) * (length[2] === 'h' ? 3_600_000 : DAY_MS);
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}

/** The step that was chosen, where the time allows it; else one that gives a readable number of bars. */
function stepOf({ from, to, step, by }: Query, usual: string, now = Date.now()): Step {
  const span = (timeOf(to, now) ?? now) - (timeOf(from ?? usual, now) ?? now);
  const hours = span <= HOURS_MS && by !== 'session';
  if (step === 'month' || (step === 'day' && span <= 3 * DAYS_MS)) return step;
  if (step === 'hour' && hours) return 'hour';
  if (span <= 2 * DAY_MS && hours) return 'hour';
  return span <= DAYS_MS ? 'day' : 'month';
}

function nameOf({ name, key_name, others }: UsageGroup): string {
  if (others === true) return t`all others`;
  if (name === null) return t`(without this label)`;
  if (name === '') return t`(no key)`;
  return key_name ?? name;
}

function usageChart({ query, step, totals, over: { data } }: Found): ChartData {
  const measure = measureOf(query.show);
  const times = stepsBetween(Date.parse(totals.from), Date.parse(totals.to), step);
  const places = new Map(times.map((time, i) => [time, i]));
  const [name, value, format] = OF[measure];
  const sum = (groups: readonly UsageGroup[]) =>
    groups.reduce((all, group) => all + value(group), 0);
  const shown = data.filter(({ from: step }) => places.has(Date.parse(step!)));
  const sorted = [...Map.groupBy(shown, nameOf)]
    .map(([name, all]) => ({ name, all, sum: sum(all), others: all[0]!.others === true }))
    .sort((a, b) => Number(a.others) - Number(b.others) || b.sum - a.sum);
  const total = sum(shown);
  return {
    title: measure === 'cost' ? t`Cost in USD` : name,
    kind: 'bars',
    times,
    bucketMs: STEP_MS[step],
    series: sorted.map(({ name, all, others }, i): Series => {
      const values = times.map(() => 0);
      for (const group of all) values[places.get(Date.parse(group.from!))!]! += value(group);
      return { name, tone: others ? 'others' : `hue-${i}`, values };
    }),
    format,
    whole: measure !== 'cost',
    total: measure === 'tries' ? count(total) : format(total),
  };
}

function stepsBetween(from: number, to: number, step: Step): readonly number[] {
  const first = new Date(from);
  /** The begin of a step, counted from the first one. */
  const at = (n: number) =>
    step === 'month'
      ? Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + n, 1)
      : from - (from % STEP_MS[step]) + n * STEP_MS[step];
  const all: number[] = [];
  for (let n = 0; at(n) < to; n++) all.push(at(n));
  return all;
}

/** The filters above the list: search, status, time, chips for what is in force, and further ones. */

import { Field, Select } from '../kit/form.tsx';
import { clock, day, localTime } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import type { FilterName, Query } from '../kit/route.ts';
import { Search, useFollowing } from '../kit/search.tsx';
import { Button, Menu, Segments } from '../kit/ui.tsx';
import { PROTOCOLS } from './row-cells.tsx';

const STATUSES = [
  ['', t`All`],
  ['ok', t`OK`],
  ['failed', t`Failed`],
  ['4xx', '4xx'],
  ['5xx', '5xx'],
  ['open', t`Running`],
] as const;

const TIMES = [
  ['', t`Any time`],
  ['15m', t`Last 15 min`],
  ['1h', t`Last hour`],
  ['6h', t`Last 6 h`],
  ['24h', t`Last 24 h`],
  ['7d', t`Last 7 days`],
] as const;

const ENTRIES = [['', t`Any protocol`], ...Object.entries(PROTOCOLS)] as const;

const MADE = [
  ['', t`Clients and commands`],
  ['traffic', t`Clients only`],
  ['bisect', t`Bisections only`],
] as const;

const FIELDS: readonly (readonly [FilterName, string, string])[] = [
  ['model', t`Model`, t`glm* or part of the name`],
  ['target', t`Target`, t`provider/model, or a part`],
  ['client', t`Client`, 'Claude Code, Codex, …'],
  ['key', t`Key`, t`name of a gateway key`],
  ['session', t`Session`, t`id or its beginning`],
  ['error', t`Error`, t`kind, such as rate_limit`],
  ['note', t`Note`, t`name of a note`],
  ['slower', t`Slower than`, '800ms, 5s, 2m'],
  ['cost', t`Costs more than`, t`USD, such as 0.05`],
];

/** Names of filters on their chips. */
const NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(FIELDS),
  q: t`search`,
  since: t`from`,
  until: t`to`,
  entry: t`Protocol`,
  status: t`Status`,
  made: t`Made by`,
  slower: t`at least`,
  cost: t`at least`,
};

/** Called with changed filters; '' removes one. */
type Change = (query: Query) => void;

interface FiltersProps {
  readonly query: Query;
  readonly change: Change;
  /** The reader goes from the search to the rows. */
  readonly enter?: () => void;
  /** What the search says of itself; '' for nothing. */
  readonly remark?: string;
}

export const Filters = ({ query, change, enter, remark }: FiltersProps) => (
  <form
    class="filters"
    role="search"
    aria-label={t`Filter the exchanges`}
    onSubmit={(event) => event.preventDefault()}
  >
    <Search
      label={t`Search`}
      placeholder={t`Search what was said, ids, models, notes`}
      q={query.q ?? ''}
      put={(q) => change({ q })}
      enter={enter}
    />
    <Segments
      label={t`Status`}
      options={STATUSES}
      value={query.status ?? ''}
      choose={(status) => change({ status })}
    />
    <Since since={query.since ?? ''} change={change} />
    <Menu name="filter" text={t`Filter`} label={t`More filters`}>
      {() => (
        <div class="fields">
          <FineFilters query={query} change={change} />
        </div>
      )}
    </Menu>
    <Chips query={query} change={change} />
    <p class="remark" role="status">
      {remark}
    </p>
  </form>
);

/** Milliseconds since 1970. */
const EPOCH = /^\d{10,}$/;

/** A time as a date, anything else as it is. */
const timeText = (value: string): string =>
  EPOCH.test(value) ? `${day(Number(value))} ${clock(Number(value))}` : value;

/** A time from the URL that is no option becomes one. */
function Since({ since, change }: { since: string; change: Change }) {
  const known = TIMES.some(([value]) => value === since);
  return (
    <Select
      name="since"
      aria-label={t`Time`}
      value={since}
      choose={(next) => change({ since: next, until: '' })}
      all={known ? TIMES : [...TIMES, [since, timeText(since)]]}
    />
  );
}

/** The value of a filter with its unit. */
function chipText(name: string, value: string): string {
  if (name === 'slower') return /\d$/.test(value) ? `${value} ms` : value;
  return name === 'cost' ? `$${value.replace('$', '')}` : timeText(value);
}

function Chips({ query, change }: { query: Query; change: Change }) {
  const active = Object.keys(query).filter((name) => query[name] && name !== 'sort');
  const remove = (names: readonly string[]) =>
    change(Object.fromEntries(names.map((name) => [name, ''])));
  return (
    <div class="chips">
      {active.map((name) => {
        const title = (NAMES[name] ?? name).toLowerCase();
        const value = chipText(name, query[name]!);
        return (
          <Button
            key={name}
            class="chip"
            title={t`Remove the filter "${title} ${value}"`}
            onClick={() => remove([name])}
          >
            <span class="chip-text">
              {`${title} `}
              <b>{value}</b>
            </span>
            <span class="x" aria-hidden="true">
              {' ×'}
            </span>
          </Button>
        );
      })}
      {active.length > 1 && (
        <Button class="more" onClick={() => remove(active)}>{t`Clear all`}</Button>
      )}
    </div>
  );
}

function FineFilters({ query, change }: Pick<FiltersProps, 'query' | 'change'>) {
  const choice = (name: string, label: string, all: readonly (readonly [string, string])[]) => (
    <Field label={label}>
      <Select
        name={name}
        value={query[name] ?? ''}
        choose={(value) => change({ [name]: value })}
        all={all}
      />
    </Field>
  );
  // The field takes local time without a zone.
  const time = (name: string, label: string, value = '') => (
    <FineField
      label={label}
      type="datetime-local"
      value={EPOCH.test(value) ? localTime(Number(value)) : ''}
      put={(text) => change({ [name]: text && String(new Date(text).getTime()) })}
    />
  );
  return (
    <>
      {FIELDS.map(([name, label, placeholder]) => (
        <FineField
          key={name}
          name={name}
          label={label}
          placeholder={placeholder}
          value={query[name] ?? ''}
          put={(text) => change({ [name]: text.trim() })}
        />
      ))}
      {choice('entry', t`Protocol`, ENTRIES)}
      {choice('made', t`Made by`, MADE)}
      {time('since', t`Since`, query.since)}
      {time('until', t`Until`, query.until)}
    </>
  );
}

interface FineFieldProps {
  readonly label: string;
  readonly value: string;
  readonly put: (text: string) => void;
  readonly [attribute: string]: unknown;
}

function FineField({ label, value, put, ...rest }: FineFieldProps) {
  const input = useFollowing(value);
  const apply = () => put(input.current!.value);
  return (
    <Field label={label}>
      <input
        ref={input}
        autocomplete="off"
        spellcheck={false}
        onChange={apply}
        onKeyDown={({ key }) => key === 'Enter' && apply()}
        {...rest}
      />
    </Field>
  );
}

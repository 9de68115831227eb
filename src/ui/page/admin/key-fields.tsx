/** The fields of a key as a form: what is typed becomes the members of the admin API, and the other way round. */

import { useRef, useState } from 'preact/hooks';
import type { KeyBudget, KeySettings } from '../../../admin/api.ts';
import { Field, Options, Select, Word } from '../kit/form.tsx';
import { count, localTime, short } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { Button } from '../kit/ui.tsx';
import type { KeyView } from './api.ts';

export const STATES = {
  revoked: [t`revoked`, ''],
  blocked: [t`blocked`, ''],
  expired: [t`expired`, 'bad'],
  soon: [t`expires soon`, 'warn'],
  active: [t`active`, 'ok'],
} as const;

export function stateOf(key: KeyView, now = Date.now()): keyof typeof STATES {
  if (key.revoked !== undefined) return 'revoked';
  if (key.blocked === true) return 'blocked';
  const left = key.expires === undefined ? undefined : Date.parse(key.expires) - now;
  if (left === undefined || left >= 7 * 86_400_000) return 'active';
  return left <= 0 ? 'expired' : 'soon';
}

/** Name, title in forms and lists, words in the table of keys. */
export const LIMITS = [
  ['requests_per_minute', t`Requests a minute`, (n: number) => t`${short(n)} requests/min`],
  ['tokens_per_minute', t`Tokens a minute`, (n: number) => t`${short(n)} tokens/min`],
  ['concurrent', t`Requests at the same time`, (n: number) => t`${count(n)} at a time`],
] as const;

const MODELS = [
  'models',
  t`Models`,
  'glm/*, claude-*',
  t`Names as clients send them, or provider/model. Empty: all.`,
] as const;
const FURTHER = [
  ['tools', t`Server tools`, 'web_search', t`Empty: all.`],
  ['routes', t`Routes`, 'cheap, eu-*', t`Empty: all.`],
  ['spaces', t`Memory spaces`, 'team-*', t`Empty: all.`],
] as const;
const LISTS = [MODELS, ...FURTHER];

const PERIODS = [
  ['minute', t`minute`],
  ['hour', t`hour`],
  ['day', t`day`],
  ['week', t`week`],
  ['month', t`month`],
  ['total', t`in all`],
] as const;
/** In the order in which new budgets take them. */
const FREE = ['month', 'day', 'week', 'hour', 'total', 'minute'] as const;

export function KeyFields({ of }: { of: KeySettings }) {
  const expires = of.expires && localTime(Date.parse(of.expires));
  const list = ([name, title, placeholder, hint]: (typeof LISTS)[number]) => (
    <Field label={title} hint={hint} key={name}>
      <Word name={name} placeholder={placeholder} value={of[name]?.join(', ')} />
    </Field>
  );
  return (
    <div class="fields">
      <Field label={t`Name`} hint={t`For people: who or what uses it.`}>
        <Word name="name" required maxlength={200} value={of.name} />
      </Field>
      <Field label={t`Labels`} hint={t`Budgets choose keys by them, and usage is summed by them.`}>
        <Word name="labels" placeholder="team=web, env=prod" value={labelsText(of.labels ?? {})} />
      </Field>
      {list(MODELS)}
      <Field label={t`Expires`} hint={t`Empty: never.`}>
        <Word name="expires" type="datetime-local" value={expires} />
      </Field>
      <fieldset class="row-of-fields">
        <legend>{t`Limits`}</legend>
        {LIMITS.map(([name, title]) => (
          <Field label={title} key={name}>
            <Word
              name={name}
              type="number"
              min={1}
              step={1}
              placeholder={t`no limit`}
              value={String(of.limits?.[name] ?? '')}
            />
          </Field>
        ))}
      </fieldset>
      <BudgetRows first={of.budgets ?? []} />
      <details open={FURTHER.some(([name]) => (of[name]?.length ?? 0) > 0)}>
        <summary>{t`Tools, routes and memory spaces`}</summary>
        <div class="fields">{FURTHER.map(list)}</div>
      </details>
    </div>
  );
}

/** What is typed; what is empty is null, so that a change takes it away. @throws Error with a message for people */
export function readFields(data: FormData): Readonly<Record<string, unknown>> {
  const text = (name: string) => String(data.get(name) ?? '').trim();
  const given = LIMITS.filter(([name]) => text(name) !== '');
  return {
    name: text('name'),
    labels: readLabels(text('labels')),
    expires: text('expires') === '' ? null : new Date(text('expires')).toISOString(),
    limits: Object.fromEntries(given.map(([name]) => [name, Number(text(name))])),
    budgets: readBudgets(data),
    ...Object.fromEntries(LISTS.map(([name]) => [name, readList(text(name))])),
  };
}

const readBudgets = (data: FormData): readonly object[] =>
  data.getAll('usd').map((usd, i) => {
    const text = (name: string) => String(data.getAll(name)[i] ?? '').trim();
    return {
      ...(JSON.parse(text('kept')) as object),
      usd: Number(usd),
      per: text('per'),
      over: text('over') || 'refuse',
      warn: (readList(text('warn')) ?? []).map((share) => Number(share) / 100),
      time_zone: text('time_zone') || 'UTC',
    };
  });

export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

function readLabels(text: string): Readonly<Record<string, string>> {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  return Object.fromEntries(
    parts.map((part) => {
      const [name = '', value = ''] = part.split(/=(.*)/s).map((side) => side.trim());
      if (name === '' || value === '') {
        throw new Error(t`Labels: “${part.trim()}” is no label. Write name=value.`);
      }
      return [name, value];
    }),
  );
}

function readList(text: string): readonly string[] | null {
  const all = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
  return all.length === 0 ? null : all;
}

interface Row {
  readonly id: number;
  readonly budget: Partial<KeyBudget>;
}

function BudgetRows({ first }: { first: readonly KeyBudget[] }) {
  const box = useRef<HTMLFieldSetElement>(null);
  const [rows, setRows] = useState<readonly Row[]>(first.map((budget, id) => ({ id, budget })));
  /** Budgets without a name differ by their period. */
  const add = () => {
    const selects = box.current!.querySelectorAll<HTMLSelectElement>('select[name=per]');
    const taken = [...selects].map(({ value }) => value);
    const per = FREE.find((one) => !taken.includes(one)) ?? 'month';
    setRows([...rows, { id: Date.now(), budget: { per } }]);
  };
  const remove = (id: number) => {
    setRows(rows.filter((row) => row.id !== id));
    box.current!.querySelector<HTMLElement>('.another')?.focus();
  };
  return (
    <fieldset class="budgets-field" ref={box}>
      <legend>{t`Budgets`}</legend>
      {rows.length === 0 && <p class="soft">{t`No amount of money limits this key.`}</p>}
      <div class="budget-rows">
        {rows.map(({ id, budget }) => (
          <BudgetRow key={id} budget={budget} remove={() => remove(id)} />
        ))}
      </div>
      <Button class="another" onClick={add}>{t`Add a budget`}</Button>
      <datalist id="over-choices">
        <Options
          all={[
            ['refuse', ''],
            ['warn', ''],
          ]}
        />
      </datalist>
      <small>{t`When the amount is spent: refuse, warn, or the name of a route to something cheaper.`}</small>
    </fieldset>
  );
}

function BudgetRow({ budget, remove }: { budget: Partial<KeyBudget>; remove: () => void }) {
  const { name, webhook, usd, per, over = 'refuse', warn = [0.5, 0.8], time_zone = 'UTC' } = budget;
  return (
    <div class="budget-row" role="group" aria-label={t`Budget`}>
      <input type="hidden" name="kept" value={JSON.stringify({ name, webhook })} />
      <Field label={t`USD`}>
        <Word
          name="usd"
          type="number"
          min={0}
          step="any"
          required
          autofocus={usd === undefined}
          value={String(usd ?? '')}
        />
      </Field>
      <Field label={t`per`}>
        <Select name="per" first={per} all={PERIODS} />
      </Field>
      <Field label={t`then`}>
        <Word name="over" placeholder="refuse" list="over-choices" value={over} />
      </Field>
      <Field label={t`warn at %`}>
        <Word
          name="warn"
          placeholder="50, 80"
          value={warn.map((share) => share * 100).join(', ')}
        />
      </Field>
      <Field label={t`time zone`}>
        <Word name="time_zone" placeholder="UTC" value={time_zone} />
      </Field>
      <Button class="tiny" aria-label={t`Remove this budget`} onClick={remove}>{t`Remove`}</Button>
    </div>
  );
}

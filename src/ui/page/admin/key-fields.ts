/** The fields of a key as a form: what is typed becomes the members of the admin API, and the other way round. */

import { button, type Child, h } from '../kit/dom.ts';
import { count, short } from '../kit/format.ts';

export interface BudgetFields {
  readonly name?: string;
  readonly usd: number;
  readonly per: string;
  readonly time_zone?: string;
  readonly warn?: readonly number[];
  readonly over?: string;
  readonly webhook?: string;
}

/** What can be set of a key, as the admin API has it. */
export interface KeySettings {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly models?: readonly string[];
  readonly tools?: readonly string[];
  readonly routes?: readonly string[];
  readonly spaces?: readonly string[];
  readonly expires?: string;
  readonly limits?: Readonly<Partial<Record<LimitName, number>>>;
  readonly budgets?: readonly BudgetFields[];
}

/** The limits: `field` in the form, `fact` in the list of facts, `line` in the table of keys. */
export const LIMITS = [
  {
    name: 'requests_per_minute',
    field: 'Requests a minute',
    fact: 'Requests a minute',
    line: (limit: number) => `${short(limit)} requests/min`,
  },
  {
    name: 'tokens_per_minute',
    field: 'Tokens a minute',
    fact: 'Tokens a minute',
    line: (limit: number) => `${short(limit)} tokens/min`,
  },
  {
    name: 'concurrent',
    field: 'Requests at the same time',
    fact: 'At the same time',
    line: (limit: number) => `${count(limit)} at a time`,
  },
] as const;
type LimitName = (typeof LIMITS)[number]['name'];

const LISTS = [
  [
    'models',
    'Models',
    'glm/*, claude-*',
    'Names as clients send them, or provider/model. Empty: all.',
  ],
  ['tools', 'Server tools', 'web_search', 'Empty: all.'],
  ['routes', 'Routes', 'cheap, eu-*', 'Empty: all.'],
  ['spaces', 'Memory spaces', 'team-*', 'Empty: all.'],
] as const;

const PERIODS = ['minute', 'hour', 'day', 'week', 'month', 'total'] as const;

export interface KeyFields {
  readonly node: HTMLElement;
  /** What is typed; what is empty is null, so that a change takes it away. @throws Error with a message for people */
  read(): Readonly<Record<string, unknown>>;
}

let ids = 0;

/** @param key what the fields show at first */
export function keyFields(key: KeySettings): KeyFields {
  const name = h('input', { name: 'name', required: true, maxlength: 200, autocomplete: 'off' });
  name.value = key.name;
  const labels = textInput('labels', 'team=web, env=prod', labelsText(key.labels ?? {}));
  const expires = h('input', { name: 'expires', type: 'datetime-local' });
  expires.value = key.expires === undefined ? '' : localTime(key.expires);
  const limits = LIMITS.map(({ name: limit, field: title }) => {
    const input = h('input', {
      name: limit,
      type: 'number',
      min: 1,
      step: 1,
      placeholder: 'no limit',
    });
    input.value = String(key.limits?.[limit] ?? '');
    return { limit, input, field: field(title, input) };
  });
  const lists = LISTS.map(([list, title, example, hint]) => {
    const input = textInput(list, example, (key[list] ?? []).join(', '));
    return { list, input, field: field(title, input, hint) };
  });
  const [models, ...further] = lists;
  const budgets = budgetList(key.budgets ?? []);
  const more = further.some(({ input }) => input.value !== '');
  const node = h(
    'div',
    { class: 'fields' },
    field('Name', name, 'For people: who or what uses it.'),
    field('Labels', labels, 'Budgets choose keys by them, and usage is summed by them.'),
    models!.field,
    field('Expires', expires, 'Empty: never.'),
    h(
      'fieldset',
      { class: 'row-of-fields' },
      h('legend', null, 'Limits'),
      limits.map((one) => one.field),
    ),
    budgets.node,
    h(
      'details',
      { open: more },
      h('summary', null, 'Tools, routes and memory spaces'),
      h(
        'div',
        { class: 'fields' },
        further.map((one) => one.field),
      ),
    ),
  );
  return {
    node,
    read() {
      const given = limits.filter(({ input }) => input.value !== '');
      return {
        name: name.value.trim(),
        labels: readLabels(labels.value),
        expires: expires.value === '' ? null : new Date(expires.value).toISOString(),
        limits: Object.fromEntries(given.map(({ limit, input }) => [limit, Number(input.value)])),
        budgets: budgets.read(),
        ...Object.fromEntries(lists.map(({ list, input }) => [list, readList(input.value)])),
      };
    },
  };
}

function textInput(name: string, placeholder: string, value: string): HTMLInputElement {
  const input = h('input', { name, placeholder, autocomplete: 'off', spellcheck: 'false' });
  input.value = value;
  return input;
}

function field(title: string, input: HTMLElement, hint?: Child): HTMLElement {
  const id = `field-${++ids}`;
  input.id = id;
  if (hint !== undefined) input.setAttribute('aria-describedby', `${id}-hint`);
  return h(
    'div',
    { class: 'field' },
    h('label', { for: id }, title),
    input,
    hint !== undefined && h('small', { id: `${id}-hint` }, hint),
  );
}

/** `2027-01-01T00:00` in the time of this browser. */
function localTime(iso: string): string {
  const time = Date.parse(iso);
  const shift = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - shift).toISOString().slice(0, 16);
}

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
        throw new Error(`Labels: “${part.trim()}” is no label. Write name=value.`);
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

interface BudgetList {
  readonly node: HTMLElement;
  read(): readonly BudgetFields[];
}

function budgetList(first: readonly BudgetFields[]): BudgetList {
  const rows: { readonly node: HTMLElement; read(): BudgetFields }[] = [];
  const list = h('div', { class: 'budget-rows' });
  const none = h('p', { class: 'soft' }, 'No amount of money limits this key.');
  const add = (budget: BudgetFields, isNew: boolean) => {
    const usd = h('input', { type: 'number', min: 0, step: 'any', required: true });
    usd.value = isNew ? '' : String(budget.usd);
    const per = h(
      'select',
      null,
      PERIODS.map((period) => h('option', { value: period }, period)),
    );
    per.value = budget.per;
    const over = textInput('over', 'refuse', budget.over ?? 'refuse');
    over.setAttribute('list', 'over-choices');
    const warn = textInput(
      'warn',
      '50, 80',
      (budget.warn ?? [0.5, 0.8]).map((share) => share * 100).join(', '),
    );
    const zone = textInput('time_zone', 'UTC', budget.time_zone ?? 'UTC');
    const row = {
      node: h(
        'div',
        { class: 'budget-row', role: 'group', 'aria-label': 'Budget' },
        field('USD', usd),
        field('per', per),
        field('then', over),
        field('warn at %', warn),
        field('time zone', zone),
        button('Remove', () => remove(), { class: 'tiny', 'aria-label': 'Remove this budget' }),
      ),
      read: (): BudgetFields => ({
        ...(budget.name !== undefined && { name: budget.name }),
        ...(budget.webhook !== undefined && { webhook: budget.webhook }),
        usd: Number(usd.value),
        per: per.value,
        over: over.value.trim() || 'refuse',
        warn: (readList(warn.value) ?? []).map((share) => Number(share) / 100),
        time_zone: zone.value.trim() || 'UTC',
      }),
    };
    const remove = () => {
      rows.splice(rows.indexOf(row), 1);
      row.node.remove();
      none.hidden = rows.length > 0;
      another.focus();
    };
    rows.push(row);
    list.append(row.node);
    none.hidden = true;
    if (isNew) usd.focus();
  };
  const another = button('Add a budget', () => add({ usd: 0, per: freePeriod() }, true));
  /** Budgets without a name differ by their period. */
  const freePeriod = () => {
    const taken = rows.map((row) => row.read().per);
    return (
      ['month', 'day', 'week', 'hour', 'total', 'minute'].find((one) => !taken.includes(one)) ??
      'month'
    );
  };
  for (const budget of first) add(budget, false);
  const choices = ['refuse', 'warn'].map((value) => h('option', { value }));
  return {
    node: h(
      'fieldset',
      { class: 'budgets-field' },
      h('legend', null, 'Budgets'),
      none,
      list,
      another,
      h('datalist', { id: 'over-choices' }, choices),
      h(
        'small',
        null,
        'When the amount is spent: refuse, warn, or the name of a route to something cheaper.',
      ),
    ),
    read: () => rows.map((row) => row.read()),
  };
}

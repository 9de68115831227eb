/** The fields of the finer filters, with what the loaded rows have as suggestions. */

import { h, replace } from '../kit/dom.ts';
import type { FilterName, Query } from '../kit/route.ts';
import { PROTOCOLS } from './row-cells.ts';

export interface FilterFields {
  readonly node: DocumentFragment;
  show(query: Query): void;
  suggest(values: Readonly<Record<string, readonly string[]>>): void;
}

const ENTRIES = [['', 'Any API'], ...Object.entries(PROTOCOLS)] as const;

const MADE = [
  ['', 'Clients and commands'],
  ['traffic', 'Clients only'],
  ['bisect', 'Bisections only'],
] as const;

const FIELDS: readonly (readonly [FilterName, string, string])[] = [
  ['model', 'Model', 'glm* or part of the name'],
  ['target', 'Target', 'provider/model, or a part'],
  ['client', 'Client', 'Claude Code, Codex, …'],
  ['key', 'Key', 'name of a gateway key'],
  ['session', 'Session', 'id or its beginning'],
  ['error', 'Error', 'kind, such as rate_limit'],
  ['note', 'Note', 'name of a rule'],
  ['slower', 'Slower than', '800ms, 5s, 2m'],
  ['cost', 'Costs more than', 'USD, such as 0.05'],
];

const TIMES: readonly (readonly ['since' | 'until', string])[] = [
  ['since', 'Since'],
  ['until', 'Until'],
];

/** @param change called with changed filters; '' removes one */
export function filterFields(change: (query: Query) => void): FilterFields {
  const lists = new Map<string, HTMLDataListElement>();
  const inputs = FIELDS.map(([name, label, placeholder]) => {
    const list = h('datalist', { id: `suggest-${name}` });
    lists.set(name, list);
    const apply = () => change({ [name]: input.value.trim() });
    const input: HTMLInputElement = h('input', {
      name,
      placeholder,
      autocomplete: 'off',
      spellcheck: 'false',
      list: `suggest-${name}`,
      on: {
        change: apply,
        keydown: (event) => event.key === 'Enter' && apply(),
      },
    });
    return { name, node: h('label', null, h('span', null, label), input, list), input };
  });
  const entry: HTMLSelectElement = h(
    'select',
    { name: 'entry', on: { change: () => change({ entry: entry.value }) } },
    ENTRIES.map(([value, text]) => h('option', { value }, text)),
  );
  const made: HTMLSelectElement = h(
    'select',
    { name: 'made', on: { change: () => change({ made: made.value }) } },
    MADE.map(([value, text]) => h('option', { value }, text)),
  );
  const times = TIMES.map(([name, label]) => {
    const input: HTMLInputElement = h('input', {
      type: 'datetime-local',
      on: {
        change: () =>
          change({ [name]: input.value === '' ? '' : String(new Date(input.value).getTime()) }),
      },
    });
    return { name, input, node: h('label', null, h('span', null, label), input) };
  });
  const node = document.createDocumentFragment();
  node.append(
    ...inputs.map((one) => one.node),
    h('label', null, h('span', null, 'API'), entry),
    h('label', null, h('span', null, 'Made by'), made),
    ...times.map((one) => one.node),
  );
  const put = (input: HTMLInputElement, value: string) => {
    if (document.activeElement !== input && input.value !== value) input.value = value;
  };
  return {
    node,
    show(query) {
      for (const { name, input } of inputs) put(input, query[name] ?? '');
      entry.value = query.entry ?? '';
      made.value = query.made ?? '';
      for (const { name, input } of times) {
        const value = query[name] ?? '';
        const time = /^\d{10,}$/.test(value) ? new Date(Number(value)) : undefined;
        // The field takes local time without a zone.
        put(
          input,
          time === undefined ? '' : time.toLocaleString('sv').slice(0, 16).replace(' ', 'T'),
        );
      }
    },
    suggest(values) {
      for (const [name, list] of lists) {
        const all = values[name] ?? [];
        if (list.childElementCount === all.length) continue;
        replace(
          list,
          all.map((value) => h('option', { value })),
        );
      }
    },
  };
}

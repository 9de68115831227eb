/** Renders a diff: lines side by side, with the rules of the changes beside them. */

import type { Json } from '../../../lib/json/json.ts';
import { diffText } from '../../../lib/text/text-diff.ts';
import type { ChangeView } from '../../api/api.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { count } from '../kit/format.ts';
import { leaf } from '../kit/json-tree.ts';
import { noteTag } from '../kit/notes-manual.ts';
import type { Cell, DiffRow } from './diff-rows.ts';

/** Unchanged lines shown around a change. */
const AROUND = 2;
/** Characters of an unchanged text that are shown. */
const SAME = 90;
/** Lines that are rendered at a time. */
const PAGE = 1500;

/** Renders the lines; runs of equal lines are folded and open on a click. */
export function diffLines(rows: readonly DiffRow[]): HTMLElement {
  const box = h('div', { class: 'difflines', translate: 'no' });
  const groups = grouped(rows);
  let next = 0;
  const add = () => {
    more.remove();
    for (let made = 0; next < groups.length && made < PAGE; next++) {
      const group = groups[next]!;
      made += group.fold ? 1 : group.rows.length;
      box.append(...(group.fold ? [fold(group.rows)] : group.rows.map(line)));
    }
    if (next < groups.length) box.append(more);
  };
  const more = button('show more of the diff', add, { class: 'more' });
  add();
  return box;
}

interface Group {
  readonly fold: boolean;
  readonly rows: readonly DiffRow[];
}

/** Runs of equal lines far from any change become folds; brackets that enclose changes stay. */
function grouped(rows: readonly DiffRow[]): readonly Group[] {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, i) => {
    const bracket = row.left?.open !== undefined || row.left?.close !== undefined;
    if (row.mark === 'same') {
      if (bracket) near[i] = 1;
      return;
    }
    for (let k = Math.max(0, i - AROUND); k <= Math.min(rows.length - 1, i + AROUND); k++)
      near[k] = 1;
  });
  const groups: { fold: boolean; rows: DiffRow[] }[] = [];
  rows.forEach((row, i) => {
    const fold = near[i] === 0;
    const last = groups.at(-1);
    if (last?.fold === fold) last.rows.push(row);
    else groups.push({ fold, rows: [row] });
  });
  // A fold of one line hides nothing.
  return groups.map((group) =>
    group.fold && group.rows.length < 2 ? { ...group, fold: false } : group,
  );
}

function fold(rows: readonly DiffRow[]): HTMLElement {
  const names = rows.map(({ left }) => left?.key ?? '').filter((name) => name !== '');
  const numbers = names.every((name) => /^\d+$/.test(name));
  const what =
    numbers && names.length > 1 ? `${names[0]} – ${names.at(-1)}` : names.slice(0, 8).join(', ');
  const node = button(
    [`⋯ ${count(rows.length)} the same`, h('small', null, ` ${what}`)],
    () => {
      const lines = rows.map(line);
      node.replaceWith(...lines);
      lines[0]?.querySelector('button')?.focus();
    },
    { class: 'fold' },
  );
  return node;
}

const SAID = { same: '', added: 'added', removed: 'removed', changed: 'changed' } as const;

function line(row: DiffRow): HTMLElement {
  const { left, right, change } = row;
  const texts =
    row.mark === 'changed' && typeof left?.value === 'string' && typeof right?.value === 'string'
      ? diffText(left.value, right.value)
      : undefined;
  const rules = change?.rules ?? [];
  const where = right === undefined ? 'left' : 'right';
  const side = (cell: Cell | undefined, kind: 'left' | 'right'): HTMLElement => {
    const skip = kind === 'left' ? 'added' : 'removed';
    const value: Child =
      cell === undefined
        ? null
        : texts === undefined
          ? shownValue(cell, row.mark === 'same' ? SAME : undefined)
          : h(
              'span',
              { class: 'string' },
              '"',
              ...texts
                .filter((part) => part.kind !== skip)
                .map(({ kind: how, text }) =>
                  how === 'same' ? shortened(text) : h('mark', null, whole(text)),
                ),
              '"',
            );
    return h(
      'div',
      { class: `half ${kind}` },
      cell !== undefined && [
        h('span', { class: 'sign', 'aria-hidden': 'true' }, signOf(row.mark, kind)),
        h(
          'span',
          { class: 'code' },
          cell.key !== undefined && h('span', { class: 'name' }, cell.key, h('i', null, ': ')),
          value,
        ),
        rules.length > 0 && kind === where && h('span', { class: 'why' }, rules.map(noteTag)),
      ],
    );
  };
  const node = h(
    'div',
    {
      class: 'diffline',
      'data-mark': row.mark,
      vars: { '--depth': String(row.depth) },
      ...(change !== undefined && {
        'data-change': change.at,
        'data-rules': change.rules.join(' '),
        tabindex: -1,
      }),
    },
    row.mark !== 'same' && h('span', { class: 'sr' }, SAID[row.mark]),
    side(left, 'left'),
    side(right, 'right'),
  );
  if (row.folded !== undefined) opening(node, row.folded);
  return node;
}

/** An equal object or list that opens on a click. */
function opening(node: HTMLElement, folded: () => readonly DiffRow[]): void {
  const more = button('⋯', () => node.replaceWith(...folded().map(line)), {
    class: 'inline-more',
    'aria-label': 'Open',
  });
  node.querySelector('.left .code')?.append(more);
}

function signOf(mark: DiffRow['mark'], side: 'left' | 'right'): string {
  if (mark === 'same') return '';
  if (mark === 'changed') return '~';
  return side === 'left' ? '−' : '+';
}

/** A changed text; a very long one is shown in part at first. */
function whole(text: string): Child {
  if (text.length < 3000) return text;
  const box = h('span', null, text.slice(0, 1500));
  const more = button(`… ${count(text.length - 1500)} more characters`, () => replace(box, text), {
    class: 'more',
  });
  box.append(more);
  return box;
}

/** Shortens long equal parts of a text to the characters around the changes. */
function shortened(text: string): Child {
  if (text.length < 400) return text;
  return [
    text.slice(0, 120),
    h('small', { class: 'cut' }, ` ⋯ ${count(text.length - 240)} characters ⋯ `),
    text.slice(-120),
  ];
}

function shownValue({ value, open, close }: Cell, most?: number): Child {
  if (open !== undefined) return h('span', { class: 'brace' }, open);
  if (close !== undefined) return h('span', { class: 'brace' }, close);
  if (typeof value === 'object' && value !== null && !('rawJSON' in value)) {
    const list = Array.isArray(value);
    const size = list ? value.length : Object.keys(value).length;
    const [a, z] = list ? '[]' : '{}';
    return [
      h('span', { class: 'brace' }, a),
      h('small', null, size === 0 ? '' : ` ${count(size)} `),
      h('span', { class: 'brace' }, z),
    ];
  }
  return leaf((value ?? null) as Json, most);
}

/** The changes as a list: places, values, rules. */
export function changeList(changes: readonly ChangeView[]): HTMLElement {
  const value = (one: Json | undefined, chars: number | undefined) =>
    h(
      'div',
      null,
      leaf(typeof one === 'object' && one !== null ? JSON.stringify(one) : (one ?? null)),
      chars !== undefined && h('small', null, ` ${count(chars)} characters in all`),
    );
  return h(
    'ol',
    { class: 'changelist' },
    changes.map((change) =>
      h(
        'li',
        { 'data-mark': change.kind, 'data-rules': change.rules.join(' ') },
        h(
          'div',
          { class: 'place' },
          h('b', null, change.kind),
          ' ',
          h('code', null, change.at || '/'),
          change.to !== undefined && [' → ', h('code', null, change.to)],
          ' ',
          change.rules.map(noteTag),
        ),
        change.kind !== 'added' &&
          h('div', { class: 'before' }, value(change.before, change.before_chars)),
        change.kind !== 'removed' &&
          h('div', { class: 'after' }, value(change.after, change.after_chars)),
      ),
    ),
  );
}

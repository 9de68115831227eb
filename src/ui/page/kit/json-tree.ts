/** A JSON tree with folding. Folded members are rendered only when they are opened, so large bodies stay fast. */

import type { Json } from '../../../lib/json/json.ts';
import { button, type Child, h, replace } from './dom.ts';
import { count } from './format.ts';

/** Members of one object or list that are rendered at a time. */
const PAGE = 100;
/** Characters of a text that are shown at first. */
const TEXT = 400;
/** Most members that "Expand all" opens. */
const OPENED = 3000;

type Part = string | number;

interface TreeOptions {
  /** Levels that are open at first. */
  readonly depth: number;
  /** Labels by JSON pointer, shown beside the value. */
  readonly marks?: ReadonlyMap<string, string>;
}

const size = (value: Json): number =>
  Array.isArray(value) ? value.length : Object.keys(value as object).length;

const isNested = (value: Json | undefined): value is Json & object =>
  typeof value === 'object' && value !== null && !('rawJSON' in value);

const pointer = (parent: string, part: Part) =>
  `${parent}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`;

export function jsonTree(value: Json, options: TreeOptions): HTMLElement {
  return h('div', { class: 'tree', translate: 'no' }, node(undefined, value, '', 0, options));
}

/** Opens everything below, up to a limit. */
export function openAll(tree: HTMLElement): void {
  let opened = 0;
  for (let found = true; found && opened < OPENED; ) {
    found = false;
    for (const details of tree.querySelectorAll<HTMLDetailsElement>('details.branch:not([open])')) {
      details.open = true;
      // The "toggle" event comes later, but the members are needed now.
      details.dispatchEvent(new Event('fill'));
      found = true;
      if (++opened >= OPENED) break;
    }
  }
}

export function closeAll(tree: HTMLElement): void {
  const all = [...tree.querySelectorAll<HTMLDetailsElement>('details.branch')];
  for (const details of all.slice(1)) details.open = false;
}

function keyOf(part: Part | undefined): Child {
  if (part === undefined) return null;
  return h(
    'span',
    { class: typeof part === 'number' ? 'index' : 'name' },
    String(part),
    h('i', null, ': '),
  );
}

function node(
  part: Part | undefined,
  value: Json | undefined,
  at: string,
  depth: number,
  options: TreeOptions,
): HTMLElement {
  const mark = options.marks?.get(at);
  const marked = mark !== undefined && h('span', { class: 'mark' }, mark);
  if (!isNested(value) || size(value) === 0) {
    return h('div', { class: 'leaf', 'data-at': at }, keyOf(part), leaf(value ?? null), marked);
  }
  const list = Array.isArray(value);
  const members = h('div', { class: 'members' });
  const details = h(
    'details',
    { class: 'branch', 'data-at': at },
    h(
      'summary',
      null,
      keyOf(part),
      h('span', { class: 'brace' }, list ? '[' : '{'),
      h('span', { class: 'gist' }, gist(value)),
      h('span', { class: 'brace' }, list ? ']' : '}'),
      h('small', null, ` ${count(size(value))}`),
      marked,
    ),
    members,
  );
  let filled = false;
  const fill = () => {
    if (filled) return;
    filled = true;
    addMembers(members, entriesOf(value), 0, at, depth, options);
  };
  details.addEventListener('toggle', () => details.open && fill());
  details.addEventListener('fill', fill);
  if (depth < options.depth || leadsToMark(at, options)) {
    fill();
    details.open = true;
  }
  return details;
}

const leadsToMark = (at: string, { marks }: TreeOptions): boolean =>
  marks !== undefined && [...marks.keys()].some((one) => one.startsWith(`${at}/`));

function entriesOf(value: Json & object): readonly (readonly [Part, Json | undefined])[] {
  return Array.isArray(value)
    ? (value as readonly Json[]).map((item, i) => [i, item] as const)
    : Object.entries(value as Record<string, Json>);
}

function addMembers(
  place: HTMLElement,
  entries: ReturnType<typeof entriesOf>,
  from: number,
  at: string,
  depth: number,
  options: TreeOptions,
): void {
  const end = Math.min(entries.length, from + PAGE);
  for (const [part, value] of entries.slice(from, end)) {
    place.append(node(part, value, pointer(at, part), depth + 1, options));
  }
  const left = entries.length - end;
  if (left === 0) return;
  const more = button(
    `${count(Math.min(PAGE, left))} more of ${count(left)}`,
    () => {
      more.remove();
      addMembers(place, entries, end, at, depth, options);
    },
    { class: 'more' },
  );
  place.append(more);
}

/** A preview of the first members in one line, for a folded value. */
function gist(value: Json & object): string {
  const parts: string[] = [];
  let length = 0;
  for (const [part, item] of entriesOf(value)) {
    if (length > 60) {
      parts.push('…');
      break;
    }
    const shown = isNested(item)
      ? Array.isArray(item)
        ? '[…]'
        : '{…}'
      : JSON.stringify(item)?.slice(0, 32);
    const label = typeof part === 'number' ? `${shown}` : `${part}: ${shown}`;
    parts.push(label);
    length += label.length;
  }
  return parts.join(', ').slice(0, 90);
}

/** A text, number, truth value or null; texts longer than `most` are cut, with a button for the rest. */
export function leaf(value: Json, most = TEXT): HTMLElement {
  if (isNested(value)) return h('span', { class: 'brace' }, Array.isArray(value) ? '[]' : '{}');
  if (typeof value !== 'string') {
    const raw = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
    return h('span', { class: value === null ? 'null' : typeof value }, raw);
  }
  const span = h('span', { class: 'string' });
  if (value.length <= most * 1.5) {
    replace(span, `"${value}"`);
    return span;
  }
  let shown = most;
  const draw = () => {
    const left = value.length - shown;
    replace(
      span,
      `"${value.slice(0, shown)}`,
      left > 0
        ? button(
            `… ${count(left)} more characters`,
            () => {
              shown = Math.min(value.length, shown + Math.max(20_000, shown));
              draw();
            },
            { class: 'more' },
          )
        : '"',
    );
  };
  draw();
  return span;
}

/** Aligns two JSON values line by line: changes side by side, equal parts folded. */

import { isNested, type Json } from '../../../lib/json/json.ts';
import { pointerOf } from '../../../lib/json/pointer.ts';
import type { ChangeView } from '../../api/api.ts';

export type Mark = 'same' | 'added' | 'removed' | 'changed';

/** One line of the diff. A side without a value is undefined. */
export interface DiffRow {
  readonly mark: Mark;
  readonly depth: number;
  readonly left: Cell | undefined;
  readonly right: Cell | undefined;
  readonly change?: ChangeView;
  /** The folded lines after this one, made on demand. */
  readonly folded?: () => readonly DiffRow[];
}

export interface Cell {
  /** Name of the member or number of the element. */
  readonly key: string | undefined;
  /** A value in one line, or the bracket that opens or closes one. */
  readonly value: Json | undefined;
  readonly open?: '{' | '[';
  readonly close?: '}' | ']';
}

/** A value on one side, and its place there. */
interface Place {
  readonly key: string | undefined;
  readonly value: Json;
  readonly at: string;
}

type Members = Readonly<Record<string, Json>>;

const inside = ({ at }: Place, key: string | number, value: Json): Place => ({
  key: String(key),
  value,
  at: at + pointerOf([key]),
});

/** These places, and all around them. */
function withOuter(pointers: readonly string[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const pointer of pointers) {
    for (let at = pointer; !all.has(at); at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
      all.add(at);
    }
  }
  return all;
}

/** The lines for two values and what changed between them, in document order. */
export function diffRows(a: Json, b: Json, changes: readonly ChangeView[]): readonly DiffRow[] {
  const ofKind = (kind: ChangeView['kind']) =>
    new Map(changes.filter((one) => one.kind === kind).map((one) => [one.at, one]));
  const [removed, added, changed] = [ofKind('removed'), ofKind('added'), ofKind('changed')];
  const touchedLeft = withOuter([...removed.keys(), ...changed.keys()]);
  const movedTo = [...changed.values()].map(({ at, to }) => to ?? at);
  const touchedRight = withOuter([...added.keys(), ...movedTo]);
  const rows: DiffRow[] = [];

  /** Lines of one side, or of both against each other. */
  const push = (
    mark: Mark,
    left: readonly Line[],
    right: readonly Line[],
    change: ChangeView | undefined,
  ) => {
    for (let i = 0; i < Math.max(left.length, right.length); i++) {
      rows.push({
        mark,
        depth: (left[i] ?? right[i])!.depth,
        left: left[i],
        right: right[i],
        ...(i === 0 && change !== undefined && { change }),
      });
    }
  };
  const remove = (place: Place, depth: number) =>
    push('removed', lines(place, depth), [], removed.get(place.at));
  const add = (place: Place, depth: number) =>
    push('added', [], lines(place, depth), added.get(place.at));

  function pair(left: Place, right: Place, depth: number): void {
    const change = changed.get(left.at);
    if (change !== undefined) {
      push('changed', lines(left, depth), lines(right, depth), change);
      return;
    }
    const nested = isNested(left.value) && isNested(right.value);
    if (!nested || !(touchedLeft.has(left.at) || touchedRight.has(right.at))) {
      const cell = ({ key, value }: Place): Cell => ({ key, value });
      const folded = () => equalRows(left, right, depth);
      rows.push({
        mark: 'same',
        depth,
        left: cell(left),
        right: cell(right),
        ...(nested && { folded }),
      });
      return;
    }
    const [open, close] = Array.isArray(left.value) ? (['[', ']'] as const) : (['{', '}'] as const);
    const bracket = (key: string | undefined) => ({ key, value: undefined, open });
    rows.push({ mark: 'same', depth, left: bracket(left.key), right: bracket(right.key) });
    if (Array.isArray(left.value) && Array.isArray(right.value)) lists(left, right, depth + 1);
    else members(left, right, depth + 1);
    const end = { key: undefined, value: undefined, close };
    rows.push({ mark: 'same', depth, left: end, right: end });
  }

  function lists(left: Place, right: Place, depth: number): void {
    const items = (place: Place) =>
      (place.value as readonly Json[]).map((value, i) => inside(place, i, value));
    const news = items(right);
    let next = 0;
    const addNew = () => {
      while (next < news.length && added.has(news[next]!.at)) add(news[next++]!, depth);
    };
    for (const old of items(left)) {
      if (removed.has(old.at)) {
        remove(old, depth);
        continue;
      }
      addNew();
      if (next < news.length) pair(old, news[next++]!, depth);
    }
    addNew();
  }

  function members(left: Place, right: Place, depth: number): void {
    const [olds, news] = [left.value as unknown as Members, right.value as unknown as Members];
    for (const [key, value] of Object.entries(olds)) {
      const old = inside(left, key, value);
      if (removed.has(old.at) || !Object.hasOwn(news, key)) remove(old, depth);
      else pair(old, inside(right, key, news[key]!), depth);
    }
    for (const [key, value] of Object.entries(news)) {
      if (!Object.hasOwn(olds, key)) add(inside(right, key, value), depth);
    }
  }

  pair({ key: undefined, value: a, at: '' }, { key: undefined, value: b, at: '' }, 0);
  return rows;
}

/** Both sides of a part that is equal, in full. */
const equalRows = (left: Place, right: Place, depth: number): readonly DiffRow[] =>
  lines(left, depth).map((cell, i) => ({
    mark: 'same',
    depth: cell.depth,
    left: cell,
    right: i === 0 ? { ...cell, key: right.key } : cell,
  }));

type Line = Cell & { readonly depth: number };

function lines({ key, value }: Omit<Place, 'at'>, depth: number): readonly Line[] {
  if (!isNested(value) || Object.keys(value).length === 0) return [{ key, value, depth }];
  const list = Array.isArray(value);
  const inner = Object.entries(value as unknown as Members).flatMap(([name, item]) =>
    lines({ key: list ? undefined : name, value: item }, depth + 1),
  );
  return [
    { key, value: undefined, open: list ? '[' : '{', depth },
    ...inner,
    { key: undefined, value: undefined, close: list ? ']' : '}', depth },
  ];
}

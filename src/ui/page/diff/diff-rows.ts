/** Aligns two JSON values line by line: changes side by side, equal parts folded. */

import type { Json } from '../../../lib/json/json.ts';
import type { ChangeView } from '../../api/api.ts';

export type Mark = 'same' | 'added' | 'removed' | 'changed';

/** One line of the diff. A side without a value is undefined. */
export interface DiffRow {
  readonly mark: Mark;
  readonly depth: number;
  /** Name of the member or number of the element, on each side. */
  readonly left: Cell | undefined;
  readonly right: Cell | undefined;
  /** The change that begins here. */
  readonly change?: ChangeView;
  /** The folded lines after this one, made on demand. */
  readonly folded?: () => readonly DiffRow[];
}

export interface Cell {
  readonly key: string | undefined;
  /** A value in one line, or the bracket that opens or closes one. */
  readonly value: Json | undefined;
  readonly open?: '{' | '[';
  readonly close?: '}' | ']';
}

interface Known {
  readonly removed: ReadonlyMap<string, ChangeView>;
  readonly added: ReadonlyMap<string, ChangeView>;
  readonly changed: ReadonlyMap<string, ChangeView>;
  /** Places with a change in or below them, on each side. */
  readonly dirtyLeft: ReadonlySet<string>;
  readonly dirtyRight: ReadonlySet<string>;
}

const isNested = (value: Json | undefined): value is Json & object =>
  typeof value === 'object' && value !== null && !('rawJSON' in value);

const step = (at: string, part: string | number) =>
  `${at}/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`;

function above(pointer: string, into: Set<string>): void {
  for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
    into.add(at);
    if (at === '') return;
  }
}

/** The lines for two values and what changed between them, in document order. */
export function diffRows(a: Json, b: Json, changes: readonly ChangeView[]): readonly DiffRow[] {
  const [removed, added, changed] = [new Map(), new Map(), new Map()] as Map<string, ChangeView>[];
  const dirtyLeft = new Set<string>();
  const dirtyRight = new Set<string>();
  for (const change of changes) {
    ({ removed, added, changed })[change.kind]!.set(change.at, change);
    if (change.kind !== 'added') above(change.at, dirtyLeft);
    if (change.kind === 'added') above(change.at, dirtyRight);
    if (change.kind === 'changed') above(change.to ?? change.at, dirtyRight);
  }
  const known: Known = {
    removed: removed!,
    added: added!,
    changed: changed!,
    dirtyLeft,
    dirtyRight,
  };
  const rows: DiffRow[] = [];
  pair(a, b, '', '', undefined, undefined, 0, known, rows);
  return rows;
}

function pair(
  a: Json,
  b: Json,
  at: string,
  to: string,
  leftKey: string | undefined,
  rightKey: string | undefined,
  depth: number,
  known: Known,
  out: DiffRow[],
): void {
  const change = known.changed.get(at);
  if (change !== undefined) {
    changedValue(a, b, leftKey, rightKey, depth, change, out);
    return;
  }
  const dirty = known.dirtyLeft.has(at) || known.dirtyRight.has(to);
  if (!dirty || !isNested(a) || !isNested(b)) {
    const whole = isNested(a) && isNested(b);
    out.push({
      mark: 'same',
      depth,
      left: { key: leftKey, value: a },
      right: { key: rightKey, value: b },
      ...(whole && { folded: () => bothOpen(a, leftKey, rightKey, depth) }),
    });
    return;
  }
  const list = Array.isArray(a);
  const [open, close] = list ? (['[', ']'] as const) : (['{', '}'] as const);
  out.push({
    mark: 'same',
    depth,
    left: { key: leftKey, value: undefined, open },
    right: { key: rightKey, value: undefined, open },
  });
  const inner: DiffRow[] = [];
  if (Array.isArray(a) && Array.isArray(b)) lists(a, b, at, to, depth + 1, known, inner);
  else members(a as never, b as never, at, to, depth + 1, known, inner);
  out.push(...inner);
  out.push({
    mark: 'same',
    depth,
    left: { key: undefined, value: undefined, close },
    right: { key: undefined, value: undefined, close },
  });
}

function lists(
  a: readonly Json[],
  b: readonly Json[],
  at: string,
  to: string,
  depth: number,
  known: Known,
  out: DiffRow[],
): void {
  let j = 0;
  const add = () => {
    for (; j < b.length; j++) {
      const change = known.added.get(step(to, j));
      if (change === undefined) return;
      oneSide('added', b[j]!, String(j), depth, change, out);
    }
  };
  for (let i = 0; i < a.length; i++) {
    const change = known.removed.get(step(at, i));
    if (change !== undefined) oneSide('removed', a[i]!, String(i), depth, change, out);
    else {
      add();
      if (j < b.length) {
        pair(a[i]!, b[j]!, step(at, i), step(to, j), String(i), String(j), depth, known, out);
        j++;
      }
    }
  }
  add();
}

type Members = Readonly<Record<string, Json>>;

function members(
  a: Members,
  b: Members,
  at: string,
  to: string,
  depth: number,
  known: Known,
  out: DiffRow[],
): void {
  for (const [key, value] of Object.entries(a)) {
    const place = step(at, key);
    const other = Object.hasOwn(b, key) ? b[key] : undefined;
    const change = known.removed.get(place);
    if (change !== undefined || other === undefined) {
      oneSide('removed', value, key, depth, change, out);
    } else pair(value, other, place, step(to, key), key, key, depth, known, out);
  }
  for (const [key, value] of Object.entries(b)) {
    if (!Object.hasOwn(a, key)) {
      oneSide('added', value, key, depth, known.added.get(step(to, key)), out);
    }
  }
}

function oneSide(
  mark: 'added' | 'removed',
  value: Json,
  key: string | undefined,
  depth: number,
  change: ChangeView | undefined,
  out: DiffRow[],
): void {
  lines(value, key, depth).forEach((cell, i) => {
    out.push({
      mark,
      depth: cell.depth,
      left: mark === 'removed' ? cell : undefined,
      right: mark === 'added' ? cell : undefined,
      ...(i === 0 && change !== undefined && { change }),
    });
  });
}

/** Both values whole, one against the other. */
function changedValue(
  a: Json,
  b: Json,
  leftKey: string | undefined,
  rightKey: string | undefined,
  depth: number,
  change: ChangeView,
  out: DiffRow[],
): void {
  const x = lines(a, leftKey, depth);
  const y = lines(b, rightKey, depth);
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    out.push({
      mark: 'changed',
      depth: (x[i] ?? y[i])!.depth,
      left: x[i],
      right: y[i],
      ...(i === 0 && { change }),
    });
  }
}

function bothOpen(
  value: Json,
  leftKey: string | undefined,
  rightKey: string | undefined,
  depth: number,
): readonly DiffRow[] {
  return lines(value, leftKey, depth).map((cell, i) => ({
    mark: 'same' as const,
    depth: cell.depth,
    left: cell,
    right: i === 0 ? { ...cell, key: rightKey } : cell,
  }));
}

type Line = Cell & { readonly depth: number };

/** A value as lines of pretty JSON. */
function lines(value: Json, key: string | undefined, depth: number): readonly Line[] {
  if (!isNested(value) || Object.keys(value).length === 0) return [{ key, value, depth }];
  const list = Array.isArray(value);
  const inner = list
    ? (value as readonly Json[]).flatMap((item) => lines(item, undefined, depth + 1))
    : Object.entries(value as Members).flatMap(([name, item]) => lines(item, name, depth + 1));
  return [
    { key, value: undefined, open: list ? '[' : '{', depth },
    ...inner,
    { key: undefined, value: undefined, close: list ? ']' : '}', depth },
  ];
}

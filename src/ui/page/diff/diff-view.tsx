/** A diff as lines side by side, with the rules of the changes beside them. */

import { useState } from 'preact/hooks';
import { isNested, type Json } from '../../../lib/json/json.ts';
import { diffText } from '../../../lib/text/text-diff.ts';
import { Leaf } from '../kit/code.tsx';
import { count } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { NoteTags } from '../kit/notes.tsx';
import { Button } from '../kit/ui.tsx';
import type { Cell, DiffRow } from './diff-rows.ts';
import { WordMarks } from './word-marks.tsx';

const LINES_AROUND = 2;
const MAX_SAME_CHARS = 90;
const LINES_ON_PAGE = 1500;

/** Runs of equal lines are folded and open on a click. */
export function DiffLines({ rows }: { rows: readonly DiffRow[] }) {
  const [pages, setPages] = useState(1);
  const groups = grouped(rows);
  let left = pages * LINES_ON_PAGE;
  const shown = groups.findIndex((group) => {
    const full = left <= 0;
    left -= group.fold ? 1 : group.rows.length;
    return full;
  });
  return (
    <div class="difflines" translate={false}>
      {groups
        .slice(0, shown < 0 ? undefined : shown)
        .map(({ fold, rows: some }, i) =>
          fold ? <Fold key={i} rows={some} /> : <Lines key={i} rows={some} />,
        )}
      {shown >= 0 && (
        <Button class="more" onClick={() => setPages(pages + 1)}>{t`show more of the diff`}</Button>
      )}
    </div>
  );
}

const Lines = ({ rows }: { rows: readonly DiffRow[] }) =>
  rows.map((row, i) => <Line key={i} row={row} />);

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
    near.fill(1, Math.max(0, i - LINES_AROUND), i + LINES_AROUND + 1);
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

function Fold({ rows }: { rows: readonly DiffRow[] }) {
  const [open, setOpen] = useState(false);
  if (open) return <Lines rows={rows} />;
  const names = rows.map(({ left }) => left?.key ?? '').filter((name) => name !== '');
  const numbers = names.length > 1 && names.every((name) => /^\d+$/.test(name));
  const what = numbers ? `${names[0]} – ${names.at(-1)}` : names.slice(0, 8).join(', ');
  return (
    <Button class="fold" onClick={() => setOpen(true)}>
      {t`⋯ ${count(rows.length)} the same`}
      <small>{` ${what}`}</small>
    </Button>
  );
}

export const KINDS = { added: t`added`, removed: t`removed`, changed: t`changed` } as const;

function Line({ row }: { row: DiffRow }) {
  const [open, setOpen] = useState(false);
  if (open) return <Lines rows={row.folded!()} />;
  const { change, mark } = row;
  return (
    <div
      class="diffline"
      data-mark={mark}
      style={{ '--depth': String(row.depth) }}
      {...(change && {
        'data-change': change.at,
        'data-rules': change.rules.join(' '),
        tabIndex: -1,
      })}
    >
      {mark !== 'same' && <span class="sr">{KINDS[mark]}</span>}
      <Half row={row} kind="left" open={row.folded && (() => setOpen(true))} />
      <Half row={row} kind="right" />
    </div>
  );
}

interface HalfProps {
  readonly row: DiffRow;
  readonly kind: 'left' | 'right';
  /** An equal object or list opens on a click. */
  readonly open?: (() => void) | undefined;
}

function Half({ row, kind, open }: HalfProps) {
  const cell = row[kind];
  if (cell === undefined) return <div class={`half ${kind}`} />;
  const rules = row.change?.rules ?? [];
  const where = row.right === undefined ? 'left' : 'right';
  const signs = { same: '', changed: '~', added: '+', removed: '−' };
  return (
    <div class={`half ${kind}`}>
      <span class="sign" aria-hidden="true">
        {signs[row.mark]}
      </span>
      <span class="code">
        {cell.key !== undefined && (
          <span class="name">
            {cell.key}
            <i>: </i>
          </span>
        )}
        <Value row={row} cell={cell} kind={kind} />
        {open && (
          <Button class="inline-more" aria-label={t`Open`} onClick={open}>
            ⋯
          </Button>
        )}
      </span>
      {rules.length > 0 && kind === where && (
        <span class="why">
          <NoteTags names={rules} />
        </span>
      )}
    </div>
  );
}

function Value({ row, cell, kind }: { row: DiffRow; cell: Cell; kind: 'left' | 'right' }) {
  const { left, right, mark } = row;
  if (mark === 'changed' && typeof left?.value === 'string' && typeof right?.value === 'string') {
    return (
      <span class="string">
        "
        <WordMarks
          parts={diffText(left.value, right.value)}
          side={kind === 'left' ? 'before' : 'after'}
          fold
        />
        "
      </span>
    );
  }
  const { value, open, close } = cell;
  if (open !== undefined || close !== undefined) return <span class="brace">{open ?? close}</span>;
  if (isNested(value)) {
    const [a, z] = Array.isArray(value) ? '[]' : '{}';
    const size = Object.keys(value).length;
    return (
      <>
        <span class="brace">{a}</span>
        <small>{size === 0 ? '' : ` ${count(size)} `}</small>
        <span class="brace">{z}</span>
      </>
    );
  }
  return (
    <Leaf value={(value ?? null) as Json} most={mark === 'same' ? MAX_SAME_CHARS : undefined} />
  );
}

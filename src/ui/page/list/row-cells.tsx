/** One exchange as a row of the list: its cells, and its label for screen readers. */

import { h, type VNode } from 'preact';
import type { Hit, Story, UiRow } from '../../api/api.ts';
import { bytes, clock, day, millis, several, short, usd, usdInColumn } from '../kit/format.ts';
import { listed, t } from '../kit/language.ts';
import { type FilterName, sessionLink } from '../kit/route.ts';
import type { Child } from '../kit/ui.tsx';
import type { Column } from './columns.ts';
import { statusLabel } from './status.ts';

/** The protocols as the page names them. */
export const PROTOCOLS = {
  'openai-chat': 'Chat',
  'openai-responses': 'Responses',
  'anthropic-messages': 'Messages',
  'google-gemini': 'Gemini',
} as const;

/** `Chat`, `Responses`, `Messages`, `Gemini`. */
export const protocolName = (name: string): string =>
  PROTOCOLS[name as keyof typeof PROTOCOLS] ?? name;

/** The label of a row for screen readers. */
export function rowLabel(row: UiRow, story: Story | undefined): string {
  const [status, text] = statusLabel(row);
  const parts = [
    clock(row.time),
    t`status ${status} ${text}`.trim(),
    row.model,
    row.target && t`to ${row.target}`,
    row.hops > 1 ? `${row.hops} hops` : '',
    row.total_ms === null ? '' : millis(row.total_ms),
    row.in_memory ? t`in memory only` : '',
    row.made_by && t`made by ${row.made_by}`,
    row.client,
    row.owner && t`key ${keyOf(row)}`,
    story?.asked && t`asked: ${story.asked}`,
    story?.answered && t`answered: ${story.answered}`,
  ];
  return listed(parts);
}

export interface RowContext {
  readonly row: UiRow;
  /** Milliseconds of a full bar. */
  readonly most: number;
  readonly now: number;
  readonly story: Story | undefined;
  readonly hit: Hit | undefined;
  readonly columns: readonly Column[];
  /** Tells which notes need no action. */
  readonly isCheap: (note: string) => boolean;
}

// The parts of a row are functions and no components: a list has hundreds of them, and they have no state.

const cell = (name: string, ...content: readonly Child[]): VNode =>
  h('span', { class: `cell ${name}`, role: 'gridcell' }, ...content);

export function rowCells(context: RowContext): readonly VNode[] {
  const { row, columns } = context;
  return [...columns.map(({ name }) => CELLS[name]!(row, context)), storyCell(context)];
}

const tokens = (name: string, value: number | null, unit: string) =>
  value === null ? cell(name) : cell(name, short(value), <i>{` ${unit}`}</i>);

const elapsedOf = (row: UiRow, now: number): number | null =>
  row.state === 'open' ? Math.max(0, now - row.time) : row.total_ms;

const CELLS: Readonly<Record<string, (row: UiRow, context: RowContext) => VNode>> = {
  time: ({ time }, { now }) =>
    cell(
      'time',
      day(time) !== day(now) && <span class="date">{day(time).slice(5)}</span>,
      clock(time),
    ),
  status(row) {
    const [status, text] = statusLabel(row);
    const dot = <i class="dot" title={row.in_memory ? t`In memory only` : undefined} />;
    return cell('status', dot, <b>{status}</b>, text && ` ${text}`);
  },
  entry: ({ entry }) => cell('entry', protocolName(entry)),
  route: routeCell,
  hops({ hops, tries }) {
    const again = tries - hops;
    const title = `${several(hops, 'hop')}${again > 0 ? t`, ${again} retried` : ''}`;
    const dots = (
      <span class="hopdots" title={title}>
        {hops}
        {again > 0 && <span class="again">{`+${again}`}</span>}
      </span>
    );
    return cell('hops', tries > 1 && dots);
  },
  notes: ({ notes }, { isCheap }) => notesCell(notes, isCheap),
  tokens: (row) => tokens('tokens', row.input_tokens, t`in`),
  cached: (row) => tokens('tokens cached', row.cached_tokens, t`cached`),
  out: (row) => tokens('tokens out', row.output_tokens, t`out`),
  size: (row) => cell('size', bytes(row.bytes)),
  first: ({ first_byte_ms: first }) => cell('first', first !== null && millis(first)),
  cost: ({ cost }) =>
    cell('cost', cost !== null && <span title={usd(cost)}>{usdInColumn(cost)}</span>),
  total(row, { most, now }) {
    const elapsed = elapsedOf(row, now);
    return cell('total', elapsed !== null && millis(elapsed), bar(row, most, elapsed ?? 0));
  },
};

/** What may cost something; what needs no action is a number. */
function notesCell(notes: string, isCheap: RowContext['isCheap']): VNode {
  const all = notes === '' ? [] : notes.split(',');
  const shown = all.filter((note) => !isCheap(note.split('=')[0]!));
  const others = all.length - Math.min(1, shown.length);
  return cell(
    'notes',
    shown.length > 0 && <span class="tag">{shown[0]!.replace('=', ' ×')}</span>,
    others > 0 && (
      <span class="others" title={all.join(', ').replaceAll('=', ' ×')}>{`+${others}`}</span>
    ),
  );
}

function routeCell({ model, target }: UiRow): VNode {
  const [provider, ...rest] = target.split('/');
  const same = target === model || rest.join('/') === model;
  const arrow = (
    <span class="arrow" aria-hidden="true">
      {' → '}
    </span>
  );
  return cell(
    'route',
    (model !== '' || target === '') && <span class="model">{model || t`(no model)`}</span>,
    model !== '' && target !== '' && arrow,
    target !== '' && <span class="target">{same ? provider! : target}</span>,
  );
}

/**
 * The duration as a bar, with a light part until the first byte. A longer bar is cut to the scale, and its
 * light part keeps its share.
 * @param most milliseconds of a full bar
 */
function bar(row: UiRow, most: number, elapsed: number): VNode {
  const total = Math.min(1, elapsed / most);
  const waited = row.first_byte_ms ?? (row.state === 'open' ? elapsed : 0);
  const first = elapsed > 0 ? total * Math.min(1, waited / elapsed) : 0;
  const vars = { '--total': total.toFixed(4), '--first': first.toFixed(4) };
  return <span class="minibar" aria-hidden="true" style={vars} />;
}

const found = ({ before, hit, after }: Hit) => (
  <span class="hit">
    {before}
    <mark>{hit}</mark>
    {after}
  </span>
);

/** The key of an exchange as people call it. */
export const keyOf = ({ owner, key_name }: UiRow): string => key_name ?? owner;

/** Values that filter the list when they are clicked: class, name of the filter, value, title. */
const VALUES: readonly (readonly [
  string,
  FilterName,
  (row: UiRow) => string,
  (value: string) => string,
])[] = [
  ['made', 'made', ({ made_by }) => made_by, (value) => t`Only what was made by ${value}`],
  ['client', 'client', ({ client }) => client, (value) => t`Only the client ${value}`],
  ['owner', 'key', keyOf, (value) => t`Only the key ${value}`],
];

/** Who asked what, and what was answered; for a search, where its words stand. */
const storyCell = ({ row, story, hit }: RowContext): VNode =>
  cell(
    'story',
    ...VALUES.map(
      ([cls, name, of, title]) =>
        of(row) !== '' && (
          <button
            key={cls}
            type="button"
            class={cls}
            tabIndex={-1}
            data-filter={name}
            data-value={of(row)}
            title={title(of(row))}
          >
            {of(row)}
          </button>
        ),
    ),
    row.session !== '' && sessionAnchor(row.session),
    hit !== undefined && found(hit),
    hit === undefined && story?.asked && <span class="asked">{story.asked}</span>,
    hit === undefined && story?.answered && (
      <span class="answered" data-calls={story.answered.startsWith('→') ? '' : undefined}>
        {story.answered}
      </span>
    ),
  );

const sessionAnchor = (session: string) => (
  <a
    class="session"
    tabIndex={-1}
    href={sessionLink(session)}
    title={t`The session ${session} as one conversation`}
  >
    {session.length > 9 ? `${session.slice(0, 8)}…` : session}
  </a>
);

/** One exchange as a row of the list: its cells, and its label for screen readers. */

import type { VNode } from 'preact';
import type { Hit, Story, UiRow } from '../../api/api.ts';
import { bytes, clock, day, millis, several, short, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { type FilterName, sessionLink } from '../kit/route.ts';
import { Button, type Child } from '../kit/ui.tsx';
import type { Look } from './columns.ts';
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
  return parts.filter((part) => part).join(', ');
}

export interface RowContext {
  readonly row: UiRow;
  /** Milliseconds of a full bar. */
  readonly most: number;
  readonly now: number;
  readonly story: Story | undefined;
  readonly hit: Hit | undefined;
  readonly look: Look;
  /** Tells which notes need no action. */
  readonly isCheap: (note: string) => boolean;
}

const Cell = ({ name, children }: { name: string; children?: Child }) => (
  <span class={`cell ${name}`} role="gridcell">
    {children}
  </span>
);

export function rowCells(context: RowContext): VNode {
  const { row, look, story, hit } = context;
  return (
    <>
      {look.columns.map(({ name }) => (
        <>
          {CELLS[name]!(row, context)}
          {look.compact && name === 'route' && (
            <Cell name="about">
              {hit === undefined ? story?.asked || story?.answered : <Found {...hit} />}
            </Cell>
          )}
        </>
      ))}
      <StoryCell row={row} story={story} hit={hit} />
    </>
  );
}

const tokens = (name: string, value: number | null, unit: string) => (
  <Cell name={name}>
    {value !== null && (
      <>
        {short(value)}
        <i>{` ${unit}`}</i>
      </>
    )}
  </Cell>
);

const elapsedOf = (row: UiRow, now: number): number | null =>
  row.state === 'open' ? Math.max(0, now - row.time) : row.total_ms;

const CELLS: Readonly<Record<string, (row: UiRow, context: RowContext) => VNode>> = {
  time: ({ time }, { now }) => (
    <Cell name="time">
      {day(time) !== day(now) && <span class="date">{day(time).slice(5)}</span>}
      {clock(time)}
    </Cell>
  ),
  status(row) {
    const [status, text] = statusLabel(row);
    return (
      <Cell name="status">
        <i class="dot" title={row.in_memory ? t`In memory only` : undefined} />
        <b>{status}</b>
        {text && ` ${text}`}
      </Cell>
    );
  },
  entry: ({ entry }) => <Cell name="entry">{protocolName(entry)}</Cell>,
  route: (row) => <Route {...row} />,
  session: ({ session }) => (
    <Cell name="session">{session && <SessionLink session={session} />}</Cell>
  ),
  hops: ({ hops, tries }) => {
    const again = tries - hops;
    const title = `${several(hops, 'hop')}${again > 0 ? t`, ${again} retried` : ''}`;
    return (
      <Cell name="hops">
        {tries > 1 && (
          <span class="hopdots" title={title}>
            {hops}
            {again > 0 && <span class="again">{`+${again}`}</span>}
          </span>
        )}
      </Cell>
    );
  },
  notes: ({ notes }, { isCheap }) => <Notes notes={notes} isCheap={isCheap} />,
  tokens: (row) => tokens('tokens', row.input_tokens, t`in`),
  cached: (row) => tokens('tokens cached', row.cached_tokens, t`cached`),
  out: (row) => tokens('tokens out', row.output_tokens, t`out`),
  size: (row) => <Cell name="size">{bytes(row.bytes)}</Cell>,
  first: ({ first_byte_ms: first }) => <Cell name="first">{first !== null && millis(first)}</Cell>,
  cost: ({ cost }) => <Cell name="cost">{cost !== null && <Cost usd={cost} />}</Cell>,
  total(row, { most, now }) {
    const elapsed = elapsedOf(row, now);
    return (
      <Cell name="total">
        {elapsed !== null && millis(elapsed)}
        <Bar row={row} most={most} elapsed={elapsed ?? 0} />
      </Cell>
    );
  },
};

/** An amount too small for its column is told apart from nothing; the title has it in full. */
const Cost = ({ usd: amount }: { usd: number }) =>
  amount > 0 && amount < 0.0001 ? (
    <span title={usd(amount)}>{'<$0.0001'}</span>
  ) : (
    <span>{usd(amount)}</span>
  );

/** What may cost something; what needs no action is a number. */
function Notes({ notes, isCheap }: { notes: string; isCheap: RowContext['isCheap'] }) {
  const all = notes === '' ? [] : notes.split(',');
  const shown = all.filter((note) => !isCheap(note.split('=')[0]!));
  const others = all.length - Math.min(1, shown.length);
  return (
    <Cell name="notes">
      {shown.length > 0 && <span class="tag">{shown[0]!.replace('=', ' ×')}</span>}
      {others > 0 && (
        <span class="others" title={all.join(', ').replaceAll('=', ' ×')}>{`+${others}`}</span>
      )}
    </Cell>
  );
}

function Route({ model, target }: UiRow) {
  const [provider, ...rest] = target.split('/');
  const same = target === model || rest.join('/') === model;
  return (
    <Cell name="route">
      {(model !== '' || target === '') && <span class="model">{model || t`(no model)`}</span>}
      {model !== '' && target !== '' && (
        <span class="arrow" aria-hidden="true">
          {' → '}
        </span>
      )}
      {target !== '' && <span class="target">{same ? provider! : target}</span>}
    </Cell>
  );
}

interface BarProps {
  readonly row: UiRow;
  readonly most: number;
  readonly elapsed: number;
}

/**
 * The duration as a bar, with a light part until the first byte. A longer bar is cut to the scale, and its
 * light part keeps its share.
 */
function Bar({ row, most, elapsed }: BarProps) {
  const total = Math.min(1, elapsed / most);
  const waited = row.first_byte_ms ?? (row.state === 'open' ? elapsed : 0);
  const first = elapsed > 0 ? total * Math.min(1, waited / elapsed) : 0;
  const vars = { '--total': total.toFixed(4), '--first': first.toFixed(4) };
  return <span class="minibar" aria-hidden="true" style={vars} />;
}

const Found = ({ before, hit, after }: Hit) => (
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
const StoryCell = ({ row, story, hit }: Pick<RowContext, 'row' | 'story' | 'hit'>) => (
  <Cell name="story">
    {VALUES.map(
      ([cls, name, of, title]) =>
        of(row) !== '' && (
          <Button
            key={cls}
            class={cls}
            tabIndex={-1}
            data-filter={name}
            data-value={of(row)}
            title={title(of(row))}
          >
            {of(row)}
          </Button>
        ),
    )}
    {row.session !== '' && <SessionLink session={row.session} />}
    {hit !== undefined && <Found {...hit} />}
    {hit === undefined && story?.asked && <span class="asked">{story.asked}</span>}
    {hit === undefined && story?.answered && <span class="answered">{story.answered}</span>}
  </Cell>
);

const SessionLink = ({ session }: { session: string }) => (
  <a
    class="session"
    tabIndex={-1}
    href={sessionLink(session)}
    title={t`The session ${session} as one conversation`}
  >
    {session.length > 9 ? `${session.slice(0, 8)}…` : session}
  </a>
);

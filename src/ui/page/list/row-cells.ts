/** Renders one exchange as a row of the list. */

import type { Hit, Story, UiRow } from '../../api/api.ts';
import { type Child, h } from '../kit/dom.ts';
import { bytes, clock, count, day, millis, short, usd } from '../kit/format.ts';
import { hashOf } from '../kit/route.ts';
import type { Look } from './columns.ts';
import { statusLabel, toneOf } from './status.ts';

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

/** The names of a row's notes with their counts: `pairing×3`. */
export function noteNames(notes: string): readonly string[] {
  return notes === '' ? [] : notes.split(',').map((note) => note.replace('=', ' ×'));
}

const cell = (name: string, ...children: Child[]) =>
  h('span', { class: `cell ${name}`, role: 'gridcell' }, ...children);

/**
 * The duration as a bar, with a light part until the first byte. A longer bar is cut to the scale, and its
 * light part keeps its share.
 * @param most milliseconds of a full bar
 */
function bar(row: UiRow, most: number, elapsed: number): HTMLElement {
  const total = Math.min(1, elapsed / most);
  const waited = row.first_byte_ms ?? (row.state === 'open' ? elapsed : 0);
  const first = elapsed > 0 ? total * Math.min(1, waited / elapsed) : 0;
  return h('span', {
    class: 'minibar',
    'aria-hidden': 'true',
    vars: {
      '--total': total.toFixed(4),
      '--first': first.toFixed(4),
    },
  });
}

/** The label of a row for screen readers. */
function label(row: UiRow, story: Story | undefined): string {
  const [status, text] = statusLabel(row);
  const parts = [
    clock(row.time),
    `status ${status} ${text}`.trim(),
    row.model,
    row.target === '' ? '' : `to ${row.target}`,
    row.hops > 1 ? `${row.hops} hops` : '',
    row.total_ms === null ? '' : millis(row.total_ms),
    row.in_memory ? 'in memory only' : '',
    row.made_by === '' ? '' : `made by ${row.made_by}`,
    row.client,
    row.owner === '' ? '' : `key ${row.owner}`,
    story?.asked ? `asked: ${story.asked}` : '',
    story?.answered ? `answered: ${story.answered}` : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

const route = (row: UiRow): Child[] => {
  const [provider, ...model] = row.target.split('/');
  const same = row.target === row.model || model.join('/') === row.model;
  return [
    (row.model !== '' || row.target === '') &&
      h('span', { class: 'model' }, row.model || '(no model)'),
    row.model !== '' &&
      row.target !== '' &&
      h('span', { class: 'arrow', 'aria-hidden': 'true' }, ' → '),
    row.target !== '' && h('span', { class: 'target' }, same ? provider! : row.target),
  ];
};

/** A value that filters the list when it is clicked. */
const filtering = (cls: string, name: string, value: string, what: string) =>
  h(
    'button',
    {
      type: 'button',
      class: cls,
      tabindex: -1,
      'data-filter': name,
      'data-value': value,
      title: `Only ${what} ${value}`,
    },
    value,
  );

const found = ({ before, hit, after }: Hit) =>
  h('span', { class: 'hit' }, before, h('mark', null, hit), after);

/** Who asked what, and what was answered; for a search, where its words stand. */
const storyCell = (row: UiRow, { story, hit }: RowContext) =>
  cell(
    'story',
    row.made_by !== '' && filtering('made', 'made', row.made_by, 'what was made by'),
    row.client !== '' && filtering('client', 'client', row.client, 'the client'),
    row.owner !== '' && filtering('owner', 'key', row.owner, 'the key'),
    row.session !== '' && sessionLink(row.session),
    hit !== undefined && found(hit),
    hit === undefined && words(story),
  );

const words = (story: Story | undefined): Child =>
  story !== undefined && [
    story.asked !== '' && h('span', { class: 'asked' }, story.asked),
    story.answered !== '' && h('span', { class: 'answered' }, story.answered),
  ];

const sessionLink = (session: string) =>
  h(
    'a',
    {
      class: 'session',
      tabindex: -1,
      href: hashOf({ name: 'session', id: session, query: {} }),
      title: `The session ${session} as one conversation`,
    },
    shortSession(session),
  );

/** The first characters of a session's id. */
export const shortSession = (session: string): string =>
  session.length > 9 ? `${session.slice(0, 8)}…` : session;

export interface RowContext {
  /** Milliseconds of a full bar. */
  readonly most: number;
  readonly now: number;
  /** Where it is known. */
  readonly story: Story | undefined;
  readonly hit: Hit | undefined;
  readonly look: Look;
}

/** The cells of a row by their columns. */
function cellsOf(
  row: UiRow,
  { most, now }: RowContext,
): Readonly<Record<string, () => HTMLElement>> {
  const [status, text] = statusLabel(row);
  const notes = noteNames(row.notes);
  const elapsed = row.state === 'open' ? Math.max(0, now - row.time) : row.total_ms;
  const today = day(row.time) === day(now);
  const tokens = (name: string, value: number | null, unit: string) =>
    cell(name, value === null ? '' : [short(value), h('i', null, ` ${unit}`)]);
  return {
    time: () =>
      cell('time', !today && h('span', { class: 'date' }, day(row.time).slice(5)), clock(row.time)),
    status: () =>
      cell(
        'status',
        h('i', { class: 'dot', title: row.in_memory && 'In memory only' }),
        h('b', null, status),
        text !== '' && ` ${text}`,
      ),
    entry: () => cell('entry', protocolName(row.entry)),
    route: () => cell('route', ...route(row)),
    session: () => cell('session', row.session !== '' && sessionLink(row.session)),
    hops: () => cell('hops', row.hops > 1 || row.tries > 1 ? hopDots(row) : ''),
    notes: () =>
      cell(
        'notes',
        notes.slice(0, 1).map((note) => h('span', { class: 'tag' }, note)),
        notes.length > 1 && h('span', { class: 'others' }, `+${notes.length - 1}`),
      ),
    tokens: () => tokens('tokens', row.input_tokens, 'in'),
    cached: () => tokens('tokens cached', row.cached_tokens, 'cached'),
    out: () => tokens('tokens out', row.output_tokens, 'out'),
    size: () => cell('size', bytes(row.bytes)),
    first: () => cell('first', row.first_byte_ms === null ? '' : millis(row.first_byte_ms)),
    cost: () => cell('cost', row.cost === null ? '' : usd(row.cost)),
    total: () =>
      cell('total', elapsed === null ? '' : millis(elapsed), bar(row, most, elapsed ?? 0)),
  };
}

/** The element of a row. */
export function rowElement(row: UiRow, context: RowContext): HTMLElement {
  const { look, story, hit } = context;
  const cells = cellsOf(row, context);
  return h(
    'div',
    {
      class: 'row',
      role: 'row',
      id: `row-${row.id}`,
      'data-id': row.id,
      'data-tone': toneOf(row),
      'data-memory': row.in_memory,
      'data-made': row.made_by === '' ? undefined : row.made_by,
      'aria-label': label(row, story),
    },
    look.columns.map(({ name }) => [
      cells[name]?.(),
      look.compact &&
        name === 'route' &&
        cell('about', hit === undefined ? story?.asked || story?.answered : found(hit)),
    ]),
    storyCell(row, context),
  );
}

function hopDots(row: UiRow): HTMLElement {
  const again = row.tries - row.hops;
  const text = `${count(row.hops)} ${row.hops === 1 ? 'hop' : 'hops'}${again > 0 ? `, ${again} retried` : ''}`;
  return h(
    'span',
    { class: 'hopdots', title: text },
    `${row.hops}`,
    again > 0 && h('span', { class: 'again' }, `+${again}`),
  );
}

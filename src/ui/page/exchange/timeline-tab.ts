/** The timeline tab, an overview of an exchange: error, hops over time, tokens, tool runs, notes. */

import type { Note } from '../../../conversation/notes.ts';
import type { SampleDetail } from '../../api/api.ts';
import { type Child, h } from '../kit/dom.ts';
import { millis, several } from '../kit/format.ts';
import { meaningOf, noteTag } from '../kit/notes-manual.ts';
import { currentRoute, filtersOf, hashOf } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { isCutOff, statusLabel } from '../list/status.ts';
import { tokenTable } from './tokens.ts';
import { waterfall } from './waterfall.ts';

export function createTimelineTab(detail: SampleDetail): View<ExchangeRoute> {
  const { meta } = detail;
  const node = h(
    'div',
    { class: 'timeline-tab' },
    meta.error !== undefined && banner(detail, meta.error),
    section('Timeline', waterfall(detail)),
    detail.hops.some(({ usage }) => usage !== null) &&
      section(detail.cost === null ? 'Tokens' : 'Tokens and cost', tokenTable(detail)),
    detail.tools.length > 0 && section('Tools run by the gateway', toolRuns(detail)),
    section(
      meta.notes.length === 0 ? 'Notes' : `Notes (${meta.notes.length})`,
      meta.notes.length === 0 ? h('p', { class: 'soft' }, 'Nothing was changed.') : notes(detail),
    ),
  );
  return { node, show: () => {}, close: () => {} };
}

const section = (title: string, ...content: Child[]) =>
  h('section', null, h('h2', null, title), ...content);

function banner(
  { row }: SampleDetail,
  { kind, message, status }: NonNullable<SampleDetail['meta']['error']>,
): HTMLElement {
  // What the client got: its status had gone out before.
  const words = isCutOff(row) ? statusLabel(row) : [status, kind];
  return h(
    'div',
    { class: 'banner', role: 'note' },
    h('b', null, words.filter(Boolean).join(' ')),
    h('span', { class: 'said' }, message),
  );
}

function toolRuns({ tools }: SampleDetail): HTMLElement {
  return h(
    'ul',
    { class: 'toolruns' },
    tools.map(({ name, hop, arguments: input, result, error, ms }) =>
      h(
        'li',
        null,
        h(
          'details',
          { open: error !== undefined },
          h(
            'summary',
            null,
            h('b', null, name),
            h('span', { class: 'soft' }, [
              hop === undefined ? '' : ` after hop ${hop}`,
              ms === undefined ? '' : `, ${millis(ms)}`,
            ]),
            input !== undefined && h('code', { class: 'peek' }, input),
          ),
          error !== undefined && h('p', { class: 'problem' }, error),
          input !== undefined && [h('h3', null, 'Arguments'), h('pre', null, input)],
          result !== undefined && [h('h3', null, 'Result'), h('pre', null, result)],
        ),
      ),
    ),
  );
}

/** The notes by name, with their descriptions from the manual and their places. */
function notes({ meta, row }: SampleDetail): HTMLElement {
  const byName = Map.groupBy(meta.notes, ({ name }) => name);
  return h(
    'ul',
    { class: 'notelist' },
    [...byName].map(([name, all]) => {
      const description = h('p', { class: 'note-about' });
      void meaningOf(name).then((text) => description.append(text ?? ''));
      return h(
        'li',
        null,
        h(
          'div',
          { class: 'notename' },
          noteTag(name),
          all.length > 1 && h('span', { class: 'soft' }, ` ${several(all.length, 'time')}`),
        ),
        description,
        placeList(row.id, all),
      );
    }),
  );
}

/** The places of notes of one name; the same place in several hops is one line. */
function placeList(id: string, notes: readonly Note[]): Child {
  const placed = notes.filter(({ where, what }) => where !== undefined || what !== undefined);
  const places = Map.groupBy(placed, ({ where, what }) => JSON.stringify([where, what]));
  if (places.size === 0) return null;
  const query = filtersOf(currentRoute().query);
  const line = ([first, ...again]: readonly Note[]): Child => {
    const { name, where, what } = first!;
    const href = hashOf({ name: 'exchange', id, tab: 'diff', query: { ...query, rule: name } });
    return h(
      'li',
      null,
      where !== undefined && h('a', { href }, h('code', null, where)),
      what !== undefined && h('span', null, where === undefined ? what : ` ${what}`),
      again.length > 0 && h('span', { class: 'soft' }, ` ×${again.length + 1}`),
    );
  };
  return h(
    'ul',
    { class: 'places' },
    [...places.values()].slice(0, 20).map(line),
    places.size > 20 && h('li', { class: 'soft' }, `and ${places.size - 20} more`),
  );
}

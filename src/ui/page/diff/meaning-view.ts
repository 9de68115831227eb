/** Renders a comparison by meaning: one line for each part that says the same, and what really changed. */

import { diffText } from '../../../lib/text/text-diff.ts';
import type { MeaningChange, MeaningDiff, MeaningPart } from '../../api/api.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { noteTag } from '../kit/notes-manual.ts';
import { wordMarks } from './word-marks.ts';

/** Values of at most so many characters stand in one line. */
const SHORT = 100;
/** Changes of one part that are shown at first. */
const FIRST = 40;

export function meaningView({ parts, translated, otherRules }: MeaningDiff): HTMLElement {
  return h(
    'div',
    { class: 'meaning' },
    h(
      'p',
      { class: 'soft lead' },
      translated
        ? 'The two bodies are in different protocols. A part that says the same in another form takes one line; '
        : 'A part that is the same in both takes one line; ',
      'press ',
      h('kbd', null, 'v'),
      ' for their JSON.',
    ),
    parts.map(partView),
    otherRules.length > 0 &&
      h(
        'p',
        { class: 'soft othernotes' },
        'Also noted for this exchange, not for a place shown here: ',
        otherRules.map((rule) => [noteTag(rule), ' ']),
      ),
  );
}

function partView({ name, title, changes }: MeaningPart): HTMLElement {
  const rest = changes.slice(FIRST);
  const more = button(
    `${rest.length} more changes`,
    () => more.replaceWith(...rest.map((change) => changeView(change))),
    { class: 'more' },
  );
  return h(
    'section',
    { class: 'meaning-part', 'data-part': name, 'data-same': String(changes.length === 0) },
    h(
      'h3',
      null,
      h('i', { class: 'sign', 'aria-hidden': 'true' }, changes.length === 0 ? '=' : '≠'),
      title,
    ),
    changes.slice(0, FIRST).map((change) => changeView(change)),
    rest.length > 0 && more,
  );
}

const isShort = (text: string | undefined) =>
  text === undefined || (text.length <= SHORT && !text.includes('\n'));

function changeView({ kind, what, at, to, before, after, rules }: MeaningChange): HTMLElement {
  const parts = kind === 'changed' ? diffText(before ?? '', after ?? '') : undefined;
  const side = (own: 'before' | 'after', text: string | undefined): Child =>
    text !== undefined &&
    h(
      'div',
      { class: `side ${own}`, dir: 'auto', tabindex: 0 },
      parts === undefined ? text : [...wordMarks(parts, own, true)],
    );
  const inLine = isShort(before) && isShort(after);
  const place = [at, to].filter((one) => one !== undefined);
  return h(
    'article',
    {
      class: 'meaning-change',
      'data-mark': kind,
      'data-change': to ?? at ?? what,
      'data-rules': rules.join(' '),
      tabindex: -1,
    },
    h(
      'header',
      null,
      h('b', { class: 'kind' }, kind),
      h('span', { class: 'what' }, what),
      inLine &&
        h(
          'span',
          { class: 'values' },
          before !== undefined && h('del', null, before || '(empty)'),
          kind === 'changed' && h('span', { 'aria-hidden': 'true' }, ' → '),
          after !== undefined && h('ins', null, after || '(empty)'),
        ),
      rules.map(noteTag),
      place.length > 0 && h('code', { class: 'at' }, [...new Set(place)].join(' → ')),
    ),
    !inLine &&
      h('div', { class: 'sides', 'data-mark': kind }, side('before', before), side('after', after)),
  );
}

/** The line above the list: what is kept of exchanges, where and for how long; a button switches recording on. */

import type { Info } from '../../api/api.ts';
import { switchRecording } from '../kit/api-calls.ts';
import { announce } from '../kit/copy.tsx';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { bytes, several } from '../kit/format.ts';

export interface KeepLine {
  readonly node: HTMLElement;
  show(info: Info): void;
}

/** @param switched called with the new state after the mode was switched */
export function createKeepLine(switched: (info: Info) => void): KeepLine {
  const node = h('div', { class: 'keepline', role: 'region', 'aria-label': 'What is kept' });
  const act = async (mode: Info['samples']['mode']) => {
    try {
      switched(await switchRecording(mode));
      // The button that had the focus is gone.
      node.querySelector('button')?.focus();
    } catch (thrown) {
      announce(failureText(thrown) ?? '');
    }
  };
  return {
    node,
    show(info) {
      const { mode, configured, may_switch } = info.samples;
      node.dataset.mode = mode;
      replace(
        node,
        h('i', { class: 'dot' }),
        h('p', null, h('b', null, title(info)), ' ', details(info)),
        may_switch &&
          h(
            'span',
            { class: 'switches' },
            mode !== 'all' && button('Record all exchanges', () => void act('all')),
            mode !== configured &&
              button(configured === 'off' ? 'Stop recording' : 'Record failures only', () =>
                act(configured),
              ),
          ),
      );
    },
  };
}

function title({ samples: { mode } }: Info): string {
  if (mode === 'off') return 'Recording is off.';
  return mode === 'all' ? 'All exchanges are recorded.' : 'Only failed exchanges are recorded.';
}

function details({ samples }: Info): Child[] {
  const { mode, configured, dir, recent, by_route, redact } = samples;
  const place: Child[] = dir === undefined ? [] : [' in ', h('code', null, dir)];
  const sentences: Child[] = [
    mode === 'all' && ['They are kept', ...place, keptFor(samples.keep_days), failedToo(samples)],
    mode === 'errors' && ['They are kept', ...place, keptFor(samples.keep_failed_days)],
    mode !== 'all' &&
      recent !== null &&
      `The last ${recent.count} ${mode === 'off' ? 'exchanges' : 'others'} are in memory only (at most ${bytes(recent.bytes)}) and are gone when hopgate stops`,
    'Keys are masked',
    redact.length > 0 && `On disk and here, ${redact.join(' and ')} are blanked`,
    by_route && 'Some routes have a setting of their own',
    mode !== configured && [
      'This holds until hopgate restarts or loads its configuration again, which says ',
      h('code', null, `samples.mode: ${configured}`),
    ],
  ];
  return sentences
    .filter((one) => one !== false)
    .map((one, i) => [i > 0 && ' ', one, '.'] as const);
}

const keptFor = (days: number): string => (days === 0 ? '' : ` for ${several(days, 'day')}`);

const failedToo = ({ keep_days, keep_failed_days }: Info['samples']): string => {
  if (keep_failed_days === keep_days) return '';
  return keep_failed_days === 0
    ? ', failed ones for good'
    : `, failed ones for ${several(keep_failed_days, 'day')}`;
};

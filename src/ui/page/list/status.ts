/** How an exchange ended, as a word and a colour. */

import { type End, endOf } from '../../../samples/sample.ts';
import type { UiRow } from '../../api/api.ts';
import { t } from '../kit/language.ts';

export type Tone = 'ok' | 'warn' | 'bad' | 'open' | 'left';

const TONES: Readonly<Record<End, Tone>> = {
  running: 'open',
  unfinished: 'bad',
  left: 'left',
  cut: 'bad',
  failed: 'bad',
  retried: 'warn',
  fine: 'ok',
};

/** The colour of an exchange: `warn` also where a try failed before the client left. */
export function toneOf(row: UiRow): Tone {
  const end = endOf(row);
  return end === 'left' && row.failed ? 'warn' : TONES[end];
}

/** `200`, `500 overloaded`, `200 cut off`, `unfinished`, `running`; the second part in words. */
export function statusLabel(row: UiRow): readonly [string, string] {
  const status = String(row.status || '–');
  switch (endOf(row)) {
    case 'running':
      return ['…', t`running`];
    case 'unfinished':
      return [t`unfinished`, row.error];
    case 'left':
      return [status, t`client left`];
    case 'cut':
      return [status, row.error === 'upstream' ? t`cut off` : t`cut off (${row.error})`];
    case 'retried':
      return [status, t`retried`];
    default:
      return [status, row.error];
  }
}

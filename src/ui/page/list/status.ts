/** How an exchange ended, as a word and a colour. */

import type { UiRow } from '../../api/api.ts';
import { t } from '../kit/language.ts';

/** The colour of an exchange: `warn` is a failed try that a later one made good, `left` a client that did not wait. */
export type Tone = 'ok' | 'warn' | 'bad' | 'open' | 'left';

/** The client left before the end: {@link UiRow.status} 499 without an error. */
const hasLeft = ({ status, error }: UiRow) => status === 499 && error === '';

export function toneOf(row: UiRow): Tone {
  if (row.state === 'open') return 'open';
  if (row.state === 'done' && hasLeft(row)) return row.failed ? 'warn' : 'left';
  if (row.state === 'cut' || row.status >= 400 || row.error !== '') return 'bad';
  return row.failed ? 'warn' : 'ok';
}

/** A stream that had begun, with a status that says that all is well, and broke off. */
export const isCutOff = ({ stream, status, error }: UiRow): boolean =>
  stream && status < 400 && error !== '';

/** `200`, `500 overloaded`, `200 cut off`, `cut`, `running`; the second part in words. */
export function statusLabel(row: UiRow): readonly [string, string] {
  if (row.state === 'open') return ['…', t`running`];
  if (row.state === 'cut') return [t`cut`, row.error];
  if (hasLeft(row)) return [String(row.status), t`client left`];
  if (isCutOff(row)) return [String(row.status), t`cut off (${row.error})`];
  return [String(row.status || '–'), row.error || (row.failed ? t`retried` : '')];
}

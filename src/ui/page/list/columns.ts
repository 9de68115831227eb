/** The columns of the list: their widths, and which of them a window holds. */

import { t } from '../kit/language.ts';

export interface Column {
  readonly name: string;
  readonly title: string;
  readonly width: string;
  /** The order that its heading chooses. */
  readonly sort?: string;
}

export const COLUMNS: readonly Column[] = [
  { name: 'time', title: t`Time`, width: '112px', sort: 'time' },
  { name: 'status', title: t`Status`, width: 'minmax(96px, 1.5fr)', sort: 'status' },
  { name: 'entry', title: t`Protocol`, width: '76px' },
  { name: 'route', title: t`Model → target`, width: 'minmax(170px, 2.1fr)', sort: 'model' },
  { name: 'hops', title: t`Hops`, width: '40px', sort: 'hops' },
  { name: 'notes', title: t`Notes`, width: 'minmax(120px, 1.2fr)' },
  { name: 'tokens', title: t`Tokens in`, width: '64px', sort: 'tokens' },
  { name: 'cached', title: t`Cached`, width: '58px', sort: 'cached' },
  { name: 'out', title: t`out`, width: '52px', sort: 'out' },
  { name: 'size', title: t`Size`, width: '60px', sort: 'bytes' },
  { name: 'first', title: t`First byte`, width: '70px', sort: 'first' },
  { name: 'cost', title: t`Cost`, width: '72px', sort: 'cost' },
  { name: 'total', title: t`Total`, width: '150px', sort: 'total' },
];

/**
 * Columns that a window without room for all of them leaves out, the first of them first; and pixels that the others
 * have beside what they need, so that what is rarely read cuts no name of a model.
 */
const SPARED = [
  ['size', 400],
  ['cached', 400],
  ['first', 0],
  ['hops', 0],
  ['entry', 0],
  ['out', 0],
  ['notes', 0],
] as const;
/** Pixels between two columns, and at both ends of a row, as in the styles. */
const GAP = 12;
const ENDS = 28;

const leastOf = ({ width }: Column): number => Number(/\d+/.exec(width)![0]);

const leastWidth = (columns: readonly Column[]): number =>
  columns.reduce((sum, column) => sum + leastOf(column) + GAP, ENDS - GAP);

/** As many of the columns as a width in pixels holds. */
export function fitting(width: number): readonly Column[] {
  let left = COLUMNS;
  for (const [spared, room] of SPARED) {
    if (leastWidth(left) + room <= width) break;
    left = left.filter(({ name }) => name !== spared);
  }
  return left;
}

export const widthsOf = (columns: readonly Column[]): string =>
  columns.map(({ width }) => width).join(' ');

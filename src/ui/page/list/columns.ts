/** The columns of the list: their widths, which of them a window holds, and which a reader has chosen. */

import { t } from '../kit/language.ts';
import { keepSetting, listSetting, setting } from '../kit/settings.ts';

export interface Column {
  readonly name: string;
  readonly title: string;
  readonly width: string;
  /** The order that its heading chooses. */
  readonly sort?: string;
  /** Cannot be left out. */
  readonly fixed?: true;
  /** Not shown unless it is chosen. */
  readonly extra?: true;
}

/** Pixels of the column of first words in compact rows, at least. */
const ASKED = 120;

export const COLUMNS: readonly Column[] = [
  { name: 'time', title: t`Time`, width: '96px', sort: 'time', fixed: true },
  { name: 'status', title: t`Status`, width: 'minmax(96px, 1.3fr)', sort: 'status', fixed: true },
  { name: 'entry', title: t`Protocol`, width: '76px' },
  {
    name: 'route',
    title: t`Model → target`,
    width: 'minmax(170px, 2.1fr)',
    sort: 'model',
    fixed: true,
  },
  { name: 'session', title: t`Session`, width: '96px', sort: 'session', extra: true },
  { name: 'hops', title: t`Hops`, width: '40px', sort: 'hops' },
  { name: 'notes', title: t`Notes`, width: 'minmax(120px, 1.4fr)' },
  { name: 'tokens', title: t`Tokens in`, width: '64px', sort: 'tokens' },
  { name: 'cached', title: t`Cached`, width: '58px', sort: 'cached', extra: true },
  { name: 'out', title: t`out`, width: '52px', sort: 'out' },
  { name: 'size', title: t`Size`, width: '60px', sort: 'bytes', extra: true },
  { name: 'first', title: t`First byte`, width: '70px', sort: 'first' },
  { name: 'cost', title: t`Cost`, width: '72px', sort: 'cost' },
  { name: 'total', title: t`Total`, width: '150px', sort: 'total', fixed: true },
];

export interface Look {
  readonly columns: readonly Column[];
  readonly compact: boolean;
}

/** Columns that a window without room for all of them leaves out, the first of them first. */
const SPARED = ['first', 'hops', 'entry', 'out', 'size', 'cached', 'session', 'notes'];
/** Pixels between two columns, and at both ends of a row, as in the styles. */
const GAP = 12;
const ENDS = 28;

const leastOf = ({ width }: Column): number => Number(/\d+/.exec(width)![0]);

const leastWidth = ({ columns, compact }: Look): number =>
  columns.reduce((sum, column) => sum + leastOf(column) + GAP, ENDS - GAP) +
  (compact ? ASKED + GAP : 0);

/** The look with as many of its columns as a width in pixels holds. */
export function fitting(look: Look, width: number): Look {
  let left = look;
  for (const spared of SPARED) {
    if (leastWidth(left) <= width) break;
    left = { ...look, columns: left.columns.filter(({ name }) => name !== spared) };
  }
  return left;
}

export const widthsOf = ({ columns, compact }: Look): string =>
  columns
    .flatMap(({ name, width }) =>
      compact && name === 'route' ? [width, `minmax(${ASKED}px, 5fr)`] : [width],
    )
    .join(' ');

const usual = COLUMNS.filter(({ extra }) => extra !== true).map(({ name }) => name);

export function chosenLook(): Look {
  const names = listSetting('columns') ?? usual;
  return {
    columns: COLUMNS.filter(({ name, fixed }) => fixed === true || names.includes(name)),
    compact: setting('density') === 'compact',
  };
}

export function chooseColumn(name: string, shown: boolean): void {
  const names = new Set(chosenLook().columns.map((column) => column.name));
  if (shown) names.add(name);
  else names.delete(name);
  keepSetting('columns', JSON.stringify([...names]));
}

export const chooseDensity = (compact: boolean): void =>
  keepSetting('density', compact ? 'compact' : undefined);

/** Which columns and which density a reader has chosen. */

import { keepSetting, listSetting, setting } from '../kit/settings.ts';
import { COLUMNS, type Look } from './columns.ts';

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

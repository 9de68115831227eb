import { expect, test } from 'bun:test';
import { type CommonColumns, CommonRows, wholeRow } from '../../src/money/row-parts.ts';
import { NO_TOKENS } from '../../src/money/schema.ts';
import { spendRow } from '../support/spend-rows.ts';

const OWN = {
  time: 1,
  request: 'req_1',
  session: undefined,
  trace: undefined,
  cost: 7,
  input: 10,
  output: undefined,
  cache_read: undefined,
  cache_write: undefined,
  cache_write_1h: undefined,
  reasoning: undefined,
  searches: undefined,
};
const COLUMNS = Object.fromEntries(
  Object.entries(spendRow()).filter(([name]) => !(name in OWN)),
) as never as CommonColumns;

test('rows with the same columns have one text', () => {
  const rows = new CommonRows();
  expect(rows.of({ ...COLUMNS })).toBe(rows.of({ ...COLUMNS }));
});

test.each(Object.keys(COLUMNS) as (keyof CommonColumns)[])(
  'rows that differ in %s alone are not taken for each other',
  (name) => {
    const rows = new CommonRows();
    const other = { ...COLUMNS, [name]: typeof COLUMNS[name] === 'number' ? 500 : 'other' };
    for (const columns of [COLUMNS, other, COLUMNS, other]) {
      const { json, columns: found } = rows.of(columns as CommonColumns);
      expect(found).toEqual(columns as CommonColumns);
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify({ ...NO_TOKENS, ...columns })));
    }
  },
);

test('many keys and ends of one target, and many targets, are not all remembered, and none is mistaken', () => {
  const rows = new CommonRows();
  for (let i = 0; i < 3000; i++) {
    const [key, target] = [`k${i % 50}`, `up/m${i % 1500}`];
    expect(rows.of({ ...COLUMNS, key, target }).columns).toMatchObject({ key, target });
  }
});

test('counts of nothing are zero in the whole row', () => {
  const row = wholeRow(OWN, new CommonRows().of(COLUMNS));
  expect(row).toEqual({ ...spendRow(), ...COLUMNS, time: 1, cost: 7, output: 0 });
});

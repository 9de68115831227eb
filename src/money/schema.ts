/**
 * The tables of spend, in the file `state/spend.db` and in Postgres: rows of tries, totals beside them, and tries that run.
 * A column of rows is added in two places: to `ADDED` here, and where its value comes from (`accounts.ts`).
 */

import type { SqlSchema } from '../state/sql/sql.ts';
import { DATABASE_TABLES, FILE_TABLES } from './published-tables.ts';

/** Spans of totals. A range of time is made of whole months, days and hours. */
export const HOUR = 0;
export const DAY = 1;
export const MONTH = 2;

/** Versions of a row: a greater one replaces a smaller one. */
export const LOST = 1;
/** As reserved, when its process had gone. */
export const TAKEN_OVER = 2;
export const ENDED = 3;

export interface Column {
  readonly name: string;
  readonly type: 'bigint' | 'text';
  /** Of some tries it is not known. */
  readonly isOptional?: true;
  /** It is added up in all totals, `tokens` as a kind of tokens; what is unknown counts as nothing. */
  readonly isSummed?: true | 'tokens';
  /** JSON that stands in thousands of rows: a number of the table of texts. */
  readonly isShared?: true;
}

const FIRST_COLUMNS = [
  // Milliseconds since 1970: when the try ended.
  { name: 'time', type: 'bigint' },
  // Its id.
  { name: 'request', type: 'text' },
  // The id of the key's owner, '' where no key is needed.
  { name: 'key', type: 'text' },
  // As `labelsText`.
  { name: 'labels', type: 'text', isShared: true },
  { name: 'session', type: 'text', isOptional: true },
  { name: 'client', type: 'text' },
  // As it was asked for.
  { name: 'model', type: 'text' },
  // `provider/model`
  { name: 'target', type: 'text' },
  { name: 'upstream_key', type: 'text', isOptional: true },
  { name: 'hop', type: 'bigint' },
  { name: 'attempt', type: 'bigint' },
  // The vendor's HTTP status; empty where no answer came.
  { name: 'status', type: 'bigint', isOptional: true },
  // A `TryEnd`, or `lost`.
  { name: 'ended', type: 'text' },
  // Tokens by kind exclude each other as those of `Usage` do.
  { name: 'input', type: 'bigint', isSummed: 'tokens' },
  { name: 'output', type: 'bigint', isSummed: 'tokens' },
  { name: 'cache_read', type: 'bigint', isSummed: 'tokens' },
  { name: 'cache_write', type: 'bigint', isSummed: 'tokens' },
  // The part of `cache_write` that is stored for one hour.
  { name: 'cache_write_1h', type: 'bigint', isSummed: 'tokens' },
  { name: 'reasoning', type: 'bigint', isSummed: 'tokens' },
  // Searches of the vendor's own tool.
  { name: 'searches', type: 'bigint', isSummed: 'tokens' },
  // 1: no usage came, or only a part.
  { name: 'estimated', type: 'bigint', isSummed: true },
  // Nano-USD; not known: no price is.
  { name: 'cost', type: 'bigint', isSummed: true, isOptional: true },
  // JSON of what was applied.
  { name: 'price', type: 'text', isShared: true, isOptional: true },
  { name: 'trace', type: 'text', isOptional: true },
] as const satisfies readonly Column[];

/** Columns that came after the tables were published, in the order in which they came: each is a migration of its own. */
export const ADDED = [
  // 1: the first try of its request, so that their sum is the number of requests.
  { name: 'requests', type: 'bigint', isSummed: true },
] as const satisfies readonly Column[];

type RowColumn = (typeof FIRST_COLUMNS)[number] | (typeof ADDED)[number];
type ValueOf<C extends Column> =
  | (C['type'] extends 'text' ? string : number)
  | (C extends { readonly isOptional: true } ? undefined : never);

/** A row of spend: what one try at an upstream used and cost, and for whom. */
export type SpendRow = { readonly [C in RowColumn as C['name']]: ValueOf<C> };
export type SpendTokens = Pick<
  SpendRow,
  Extract<RowColumn, { readonly isSummed: 'tokens' }>['name']
>;

/** Columns of rows. */
export const columnsWith = (added: readonly Column[] = ADDED): readonly Column[] => [
  ...FIRST_COLUMNS,
  ...added,
];

/** Of the tries without a price, `unpriced`, and not `cost`, counts. */
export type SumColumn = 'tries' | 'unpriced' | Extract<RowColumn, { isSummed: unknown }>['name'];

/** What is summed over tries: columns of all totals. */
export type Sums = Record<SumColumn, number>;

/** In the order of reports. The order in the tables is another one: statements name what they write. */
export const sumColumnsWith = (added: readonly Column[] = ADDED): readonly SumColumn[] => {
  const summed = (columns: readonly Column[]) =>
    columns.flatMap(({ name, isSummed }) => (isSummed ? [name] : []));
  const last = ['cost', 'unpriced', 'estimated'];
  const before = summed(FIRST_COLUMNS).filter((name) => !last.includes(name));
  return ['tries', ...before, ...last, ...summed(added)] as SumColumn[];
};
export const SUM_COLUMNS = sumColumnsWith();

const zeros = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 0]));
export const NO_SUMS: Readonly<Sums> = zeros(SUM_COLUMNS) as Sums;
export const NO_TOKENS = zeros(
  columnsWith().flatMap(({ name, isSummed }) => (isSummed === 'tokens' ? [name] : [])),
) as never as SpendTokens;

/** How far the journal of each process is in the tables, and since when its files are gone. */
const MARKS =
  'CREATE TABLE hopgate.spend_marks (writer text PRIMARY KEY, n bigint NOT NULL, gone bigint);';

/** As in Postgres: tries that run; and a row that may still change (`rev` below 3) has the name of its try. */
const FILE_JOURNAL = `${MARKS}
CREATE TABLE hopgate.spend_open (
  at bigint NOT NULL, writer text NOT NULL, n bigint NOT NULL, spool text NOT NULL, row text NOT NULL,
  PRIMARY KEY (at, writer, n));
ALTER TABLE hopgate.spend ADD COLUMN at bigint;
ALTER TABLE hopgate.spend ADD COLUMN writer text;
ALTER TABLE hopgate.spend ADD COLUMN n bigint;
ALTER TABLE hopgate.spend ADD COLUMN rev int;
ALTER TABLE hopgate.spend ADD COLUMN replica text;
CREATE INDEX hopgate.spend_reserved ON spend (writer, n) WHERE rev < 3;
`;

/** As in the file: what answers of a target have shown, kept over a restart. */
const DATABASE_JOURNAL = `
${MARKS}
CREATE TABLE hopgate.spend_learned (
  target text NOT NULL, stream int NOT NULL, bytes_per_token double precision NOT NULL, mean double precision NOT NULL,
  spread double precision NOT NULL, written bigint NOT NULL, PRIMARY KEY (target, stream));
`;

/** Statements that add a column, and its sum to each table of totals. */
function adding(
  { name, type, isSummed, isShared }: Column,
  rows: readonly string[],
  totals: readonly string[],
): string {
  const add = (table: string, what: string) =>
    `ALTER TABLE hopgate.${table} ADD COLUMN ${name} ${what};`;
  const column = isShared ? 'bigint' : type;
  return [
    '',
    ...rows.map((table) => add(table, column)),
    ...(isSummed ? totals.map((table) => add(table, 'bigint NOT NULL DEFAULT 0')) : []),
  ].join('\n');
}

const DATABASE_TOTALS = [
  ...['spend_totals', 'spend_session_totals', 'spend_moved_totals', 'spend_moved_sessions'],
];

/** Of files without added columns. */
const FILE_VERSION = 6;

export const spendSchema = (added: readonly Column[] = ADDED): SqlSchema => {
  const inFile = added.map((column) => adding(column, ['spend'], ['totals', 'session_totals']));
  return {
    room: 'spend',
    sqlite: {
      version: FILE_VERSION + added.length,
      create: FILE_TABLES + FILE_JOURNAL + inFile.join(''),
      upgrades: {
        4: FILE_JOURNAL,
        ...Object.fromEntries(inFile.map((sql, n) => [FILE_VERSION + n, sql])),
      },
    },
    postgres: [
      ...DATABASE_TABLES,
      DATABASE_JOURNAL,
      ...added.map((column) => adding(column, ['spend_rows', 'spend_kept'], DATABASE_TOTALS)),
    ],
  };
};

export interface HourTotals extends Sums {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly key: string;
  /** JSON. */
  readonly labels: string;
  readonly model: string;
  readonly target: string;
}

export interface SessionTotals extends Sums {
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly session: string;
  readonly key: string;
}

export const ROW_FILTERS = ['key', 'model', 'target', 'session', 'request', 'ended', 'client'];

/** Which rows are asked for. */
export interface RowsQuery {
  /** Milliseconds since 1970; `to` is not included. */
  readonly from: number;
  readonly to: number;
  /** By column, equal to these. */
  readonly filters: Readonly<Record<string, string>>;
  /** Only rows behind the page before, whose last one had this id, and this time where rows are in the order of time. */
  readonly before: number;
  readonly beforeTime?: number;
  readonly limit: number;
}

/** One row as it is stored: what is unknown is null, and texts stand beside their numbers. */
export type StoredRow = {
  readonly [name in Exclude<keyof SpendRow, 'labels' | 'price'>]-?: Stored<SpendRow[name]>;
} & {
  readonly id: number;
  /** JSON. */
  readonly labels_text: string;
  /** JSON. */
  readonly price_text: string | null;
  /** The machine; left out where there is one. */
  readonly replica?: string | null;
};

type Stored<T> = undefined extends T ? Exclude<T, undefined> | null : T;

/** What the same tables are called in the file and in the shared database, and what they do not have alike. */
export interface SpendNames {
  readonly rows: string;
  readonly totals: string;
  readonly sessionTotals: string;
  readonly texts: string;
  readonly learned: string;
  /** SQL: the beginning of the month of `start`. */
  readonly month: string;
  /** SQL: the texts of a JSON array, which is the value `names`. */
  readonly names: string;
}

export const FILE_NAMES: SpendNames = {
  rows: 'hopgate.spend',
  totals: 'hopgate.totals',
  sessionTotals: 'hopgate.session_totals',
  texts: 'hopgate.texts',
  learned: 'hopgate.learned',
  month: "CAST(strftime('%s', start / 1000, 'unixepoch', 'start of month') AS INTEGER) * 1000",
  names: '(SELECT value FROM json_each($names))',
};

export const DATABASE_NAMES: SpendNames = {
  rows: 'hopgate.spend_rows',
  totals: 'hopgate.spend_totals',
  sessionTotals: 'hopgate.spend_session_totals',
  texts: 'hopgate.spend_texts',
  learned: 'hopgate.spend_learned',
  month:
    "CAST(extract(epoch FROM date_trunc('month', to_timestamp(start / 1000) AT TIME ZONE 'UTC')) AS bigint) * 1000",
  names: '(SELECT jsonb_array_elements_text($names::jsonb))',
};

/** What reads what was spent. Values are named as in the SQL, without `$`. */
export interface SpendReader {
  readonly names: SpendNames;
  /** True: each question is a trip, and holds up nothing here. Left out: long answers are read in pieces. */
  readonly remote?: true;
  /** @throws SQLiteError, or GatewayError where the shared database is away */
  all<Row>(
    sql: string,
    values?: Readonly<Record<string, string | number>>,
  ): readonly Row[] | Promise<readonly Row[]>;
  /** Rows in the order of time, newest first, in pieces; left out: they are read by their ids. */
  scan?(query: RowsQuery): AsyncGenerator<readonly StoredRow[]>;
}

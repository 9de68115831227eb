/** Reads what was spent: from the file of a machine, or what all replicas have spent from the shared database. */

import { GatewayError } from '../conversation/errors.ts';
import { messageOf } from '../lib/text/thrown.ts';
import { EngineAway, type Sql, type SqlValue } from '../state/engines/engine.ts';
import { prepared } from '../state/sql/migrations.ts';
import { openFileToRead } from '../state/sql/sqlite.ts';
import { fileAt, openToRead } from '../state/versioned-store.ts';
import type { LearnedAnswers } from './estimate.ts';
import {
  columnsWith,
  DATABASE_NAMES,
  FILE_NAMES,
  type RowsQuery,
  type SpendReader,
  type StoredRow,
  spendSchema,
} from './schema.ts';

/** The file, of a gateway that may run; nothing is changed. It is opened with the first question, and anew where it is another one. */
export class FileReader implements SpendReader {
  readonly names = FILE_NAMES;
  #db: ReturnType<typeof openToRead> | undefined;
  #file = 0;
  /** Undoes what reading needed. */
  #onClose: (() => void) | undefined;

  readonly #copies: boolean;

  /** @param options copies: of a file of an older version, which no gateway of this one has used yet, a copy is read */
  constructor(
    private readonly path: string,
    { copies = false }: { readonly copies?: boolean } = {},
  ) {
    this.#copies = copies;
  }

  all<Row>(sql: string, values: Readonly<Record<string, string | number>> = {}): readonly Row[] {
    const text = sql.replaceAll('hopgate.', '');
    return this.open()
      .query<Row, [Record<string, string | number>]>(text)
      .all({ ...values });
  }

  /** @throws GatewayError where it cannot be read */
  open(): ReturnType<typeof openToRead> {
    try {
      const file = fileAt(this.path);
      if (this.#db !== undefined && file !== this.#file) this.close();
      this.#db ??= this.#open();
      this.#file = file;
      return this.#db;
    } catch (thrown) {
      const message = `The spend in ${this.path} cannot be read: ${messageOf(thrown)}`;
      throw new GatewayError('overloaded', message, { code: 'spend_unreadable', cause: thrown });
    }
  }

  #open(): ReturnType<typeof openToRead> {
    const db = openToRead(this.path);
    const schema = spendSchema();
    const { version } = db
      .query<{ version: number }, []>('SELECT user_version AS version FROM pragma_user_version')
      .get()!;
    if (version > 0 && (!this.#copies || version >= schema.sqlite.version)) return db;
    db.close();
    // Its disk was full when it was made, or a gateway makes it now.
    if (version === 0) throw new Error('there is nothing in it yet');
    const copy = openFileToRead(schema, this.path)!;
    this.#onClose = copy.onClose;
    return copy.db;
  }

  close(): void {
    this.#db?.close();
    this.#onClose?.();
    this.#db = undefined;
    this.#onClose = undefined;
  }
}

const DEADLINE_MS = 10_000;
/** A question that takes longer is ended by the server, which is no sign that the server is away. */
const STATEMENT_MS = 8000;
const CANCELLED = '57014';
const ROWS_AT_ONCE = 1000;

const COLUMNS = `s.id, ${columnsWith()
  .flatMap(({ name, isShared }) => (isShared ? [] : [`s.${name}`]))
  .join(', ')}, labels.text AS labels_text, prices.text AS price_text, s.replica`;

export function sharedSpendReader(database: Sql): Required<SpendReader> {
  const ready = prepared(database, 'spend', spendSchema().postgres);
  async function all<Row>(
    sql: string,
    named: Readonly<Record<string, string | number>> = {},
  ): Promise<readonly Row[]> {
    const { text, values } = numbered(sql, named);
    try {
      await ready();
      return await database.query<Row>(text, values, DEADLINE_MS, STATEMENT_MS);
    } catch (thrown) {
      throw asUnavailable(thrown);
    }
  }
  return {
    names: DATABASE_NAMES,
    remote: true,
    all,
    async *scan({ from, to, filters, before, beforeTime = to, limit }: RowsQuery) {
      const conditions = Object.keys(filters).map((name) => ` AND s.${name} = $${name}`);
      const sql = `SELECT ${COLUMNS} FROM (SELECT * FROM hopgate.spend_rows s
          WHERE s.time >= $from AND s.time < $to AND (s.time, s.id) < ($time, $id)${conditions.join('')}
          ORDER BY s.time DESC, s.id DESC LIMIT $most) s
        JOIN hopgate.spend_texts labels ON labels.id = s.labels
        LEFT JOIN hopgate.spend_texts prices ON prices.id = s.price
        ORDER BY s.time DESC, s.id DESC`;
      const most = Math.min(limit, ROWS_AT_ONCE);
      for (let place = { time: beforeTime, id: before }; ; ) {
        const rows = await all<StoredRow>(sql, { ...filters, from, to, ...place, most });
        yield rows;
        if (rows.length < most) return;
        place = rows.at(-1)!;
      }
    },
  };
}

/** `$name` becomes `$1`; each name is one value. */
function numbered(sql: string, named: Readonly<Record<string, string | number>>) {
  const places = new Map<string, number>();
  const text = sql.replaceAll(/\$([a-z_]\w*)/g, (_, name: string) => {
    const place = places.get(name) ?? places.size + 1;
    places.set(name, place);
    return `$${place}`;
  });
  const values = [...places.keys()].map((name): SqlValue => named[name]!);
  return { text, values };
}

function asUnavailable(thrown: unknown): unknown {
  const slow = (thrown as { code?: unknown } | null)?.code === CANCELLED;
  if (!slow && !(thrown instanceof EngineAway)) return thrown;
  const message = slow
    ? "The database took too long for this report. Ask for a shorter time ('from', 'to')."
    : 'The database with the spend of all replicas is away.';
  return new GatewayError('overloaded', message, {
    code: slow ? 'report_too_long' : 'database_away',
    cause: thrown,
  });
}

interface LearnedRow {
  readonly target: string;
  readonly stream: number;
  readonly bytes_per_token: number;
  readonly mean: number;
  readonly spread: number;
}

/** What earlier processes learned of targets, the newest first. */
export async function learnedIn(reader: SpendReader): Promise<readonly LearnedAnswers[]> {
  const rows = await reader.all<LearnedRow>(
    `SELECT * FROM ${reader.names.learned} ORDER BY written DESC`,
  );
  return rows.map((row) => ({
    target: row.target,
    stream: row.stream === 1,
    bytesPerToken: row.bytes_per_token,
    mean: row.mean,
    spread: row.spread,
  }));
}

/** Objects that vendors keep for clients: the owner of each file, batch and id, its place, and the tries still to settle. */

import type { Spent } from '../../conversation/account/payer.ts';
import { isObject, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { batchesOf } from '../../lib/loop/batches.ts';
import type { ListedRow, MovedTable } from '../../state/move/table-move.ts';
import {
  placeholders,
  rowPlaceholders,
  type SqlDatabase,
  type SqlSchema,
  type SqlValue,
} from '../../state/sql/sql.ts';
import type { TextSeal } from '../../state/text-seal.ts';

const TABLES = `
CREATE TABLE hopgate.vendor_objects (
  owner text NOT NULL, id text NOT NULL, kind text NOT NULL, api text NOT NULL, provider text NOT NULL,
  upstream_key text, made bigint NOT NULL, object bytea NOT NULL, models text, batch text, due text, settled text,
  PRIMARY KEY (owner, id)
);
CREATE INDEX vendor_objects_pages ON hopgate.vendor_objects (owner, kind, api, made, id);
CREATE INDEX vendor_objects_ids ON hopgate.vendor_objects (id);
`;

const ISSUED = `
CREATE INDEX vendor_objects_issued ON hopgate.vendor_objects (made) WHERE kind = 'issued';
`;

export const VENDOR_OBJECTS_SCHEMA: SqlSchema = {
  room: 'vendor_objects',
  sqlite: { version: 2, create: TABLES + ISSUED },
  postgres: [TABLES, ISSUED],
};

export interface BatchModel {
  /** As the client named it. */
  readonly asked: string;
  /** At the provider. */
  readonly model: string;
  readonly requests: number;
  readonly bytes: number;
  /** That one answer may have, on average; left out: some request does not say. */
  readonly maxTokens?: number;
  /** All that are asked for. */
  readonly answers: number;
}

/** Reserved for the requests to one model when their batch was made. */
export interface DueTry extends BatchModel {
  /** `req_…` of the exchange. */
  readonly request: string;
  readonly session?: string;
  readonly spent?: Spent;
  /** Milliseconds since 1970, before it was reserved. */
  readonly countedAt?: number;
}

export type VendorApi = 'openai' | 'anthropic';

export interface VendorObject {
  readonly owner: string;
  readonly id: string;
  /** `issued`: an answer has given out its id, and nothing else is known of it. */
  readonly kind: 'file' | 'batch' | 'issued';
  readonly api: VendorApi;
  readonly provider: string;
  /** The name of the provider's key that sees it. */
  readonly upstreamKey: string | undefined;
  /** Milliseconds since 1970. */
  readonly made: number;
  /** As the vendor gave it last. */
  readonly object: JsonObject;
  /** Of a file of requests. */
  readonly models?: readonly BatchModel[] | undefined;
  /** Of a file of results: the id of its batch. */
  readonly batch?: string | undefined;
  /** Tries of a batch that its results settle. */
  readonly due?: readonly DueTry[] | undefined;
}

export interface ObjectPage {
  readonly limit: number;
  /** The id of the last one of the page before, or of the first one of the page behind. */
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly oldestFirst?: boolean;
}

interface Row {
  readonly id: string;
  readonly kind: VendorObject['kind'];
  readonly api: VendorApi;
  readonly provider: string;
  readonly upstream_key: string | null;
  readonly made: number | string;
  readonly object: Uint8Array;
  readonly models: string | null;
  readonly batch: string | null;
  readonly due: string | null;
}

/** Containers of Anthropic live for 30 days (https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool). */
const ISSUED_MS = 90 * 24 * 60 * 60 * 1000;

/** Ids of one statement. */
const IDS_AT_ONCE = 1000;

const COLUMNS = 'id, kind, api, provider, upstream_key, made, object, models, batch, due';

export class VendorObjects {
  constructor(
    private readonly database: SqlDatabase,
    private readonly seal: TextSeal,
  ) {}

  /** Replaces the object; the other fields stay as they are. */
  async put(one: VendorObject): Promise<void> {
    const { owner, id, kind, api, provider, upstreamKey, made, object, models, batch, due } = one;
    await this.database.query(
      `INSERT INTO hopgate.vendor_objects
         (owner, id, kind, api, provider, upstream_key, made, object, models, batch, due)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
       ON CONFLICT (owner, id) DO UPDATE SET object = excluded.object`,
      [
        owner,
        id,
        kind,
        api,
        provider,
        upstreamKey ?? null,
        made,
        this.seal.seal(Buffer.from(JSON.stringify(object)), placeOf(owner, id)),
        models === undefined ? null : JSON.stringify(models),
        batch ?? null,
        due === undefined ? null : JSON.stringify(due),
      ],
    );
  }

  async get(owner: string, id: string): Promise<VendorObject | undefined> {
    const [row] = await this.database.query<Row>(
      `SELECT ${COLUMNS} FROM hopgate.vendor_objects WHERE owner = $1 AND id = $2`,
      [owner, id],
    );
    return row && this.#read(owner, row);
  }

  /** Ids that answers gave out; the first owner of one keeps it. */
  async addIssued(owner: string, ids: readonly string[], provider: string): Promise<void> {
    const made = Date.now();
    for (const id of ids) {
      const object = this.seal.seal(Buffer.from('{}'), placeOf(owner, id));
      await this.database.query(
        `INSERT INTO hopgate.vendor_objects (owner, id, kind, api, provider, made, object)
         SELECT CAST($1 AS text), CAST($2 AS text), 'issued', '', CAST($3 AS text), CAST($4 AS bigint), $5
         WHERE NOT EXISTS (SELECT 1 FROM hopgate.vendor_objects WHERE id = $2)
         ON CONFLICT (owner, id) DO NOTHING`,
        [owner, id, provider, made, object],
      );
    }
  }

  /** Forgets issued ids that no vendor keeps any more. */
  async removeOldIssued(): Promise<void> {
    await this.database.query(
      `DELETE FROM hopgate.vendor_objects WHERE kind = 'issued' AND made < $1`,
      [Date.now() - ISSUED_MS],
    );
  }

  /** Ids that another owner has, and this one has not. */
  async foreign(owner: string, ids: readonly string[]): Promise<readonly string[]> {
    const foreign: string[] = [];
    for (const some of batchesOf(ids, IDS_AT_ONCE)) {
      if (foreign.length > 0) break;
      const rows = await this.database.query<{ id: string; is_own: number }>(
        `SELECT id, max(CASE WHEN owner = $1 THEN 1 ELSE 0 END) AS is_own FROM hopgate.vendor_objects
         WHERE id IN (${placeholders(some.length, 2)}) GROUP BY id`,
        [owner, ...some],
      );
      for (const { id, is_own } of rows) if (is_own === 0) foreign.push(id);
    }
    return foreign;
  }

  /** One more than the page has room for shows that there is another page. */
  async page(
    owner: string,
    kind: VendorObject['kind'],
    api: VendorApi,
    { limit, after, before, oldestFirst = false }: ObjectPage,
  ): Promise<readonly VendorObject[]> {
    const cursor = after ?? before;
    // A page before another one is read backwards.
    const backwards = after === undefined && before !== undefined;
    const ascending = oldestFirst !== backwards;
    const where =
      cursor === undefined
        ? ''
        : `AND (made, id) ${ascending ? '>' : '<'} (SELECT made, id FROM hopgate.vendor_objects WHERE owner = $1 AND id = $5)`;
    const order = ascending ? 'ASC' : 'DESC';
    const rows = await this.database.query<Row>(
      `SELECT ${COLUMNS} FROM hopgate.vendor_objects
       WHERE owner = $1 AND kind = $2 AND api = $3 ${where}
       ORDER BY made ${order}, id ${order} LIMIT $4`,
      [owner, kind, api, limit + 1, ...(cursor === undefined ? [] : [cursor])],
    );
    return rows.map((row) => this.#read(owner, row));
  }

  async remove(owner: string, id: string): Promise<void> {
    await this.database.query('DELETE FROM hopgate.vendor_objects WHERE owner = $1 AND id = $2', [
      owner,
      id,
    ]);
  }

  /** Tries that its results settle; only the first caller gets them. */
  async takeDue(owner: string, id: string): Promise<readonly DueTry[] | undefined> {
    const [row] = await this.database.query<{ settled: string }>(
      `UPDATE hopgate.vendor_objects SET settled = due, due = NULL
       WHERE owner = $1 AND id = $2 AND due IS NOT NULL RETURNING settled`,
      [owner, id],
    );
    return row && dueIn(row.settled);
  }

  /** Undoes it: it could not be settled after all. */
  async giveBackDue(owner: string, id: string): Promise<void> {
    await this.database.query(
      `UPDATE hopgate.vendor_objects SET due = settled, settled = NULL
       WHERE owner = $1 AND id = $2 AND due IS NULL`,
      [owner, id],
    );
  }

  close(): void {
    this.database.close();
  }

  #read(owner: string, row: Row): VendorObject {
    const { id, kind, api, provider, upstream_key, made, models, batch, due } = row;
    const text = this.seal.open(row.object, placeOf(owner, id));
    const object = text && tryParse(Buffer.from(text).toString());
    return {
      owner,
      id,
      kind,
      api,
      provider,
      upstreamKey: upstream_key ?? undefined,
      made: Number(made),
      // Sealed with a secret that is gone: the vendor is asked for the rest.
      object: isObject(object) ? object : { id },
      models: models === null ? undefined : (JSON.parse(models) as readonly BatchModel[]),
      batch: batch ?? undefined,
      due: due === null ? undefined : dueIn(due),
    };
  }
}

const placeOf = (owner: string, id: string): string => `vendor_objects ${owner} ${id}`;

const dueIn = (text: string): readonly DueTry[] => JSON.parse(text) as readonly DueTry[];

interface MovedObject extends ListedRow {
  readonly object: Uint8Array;
  readonly due: string | null;
  readonly settled: string | null;
}

const MOVED_COLUMNS = [...['owner', ...COLUMNS.split(', ')], 'settled'];

/** Settling on one side counts for both sides after a move, so that a batch is booked once. */
export const MOVED_OBJECTS: MovedTable<MovedObject> = {
  name: 'files',
  item: 'vendor object',
  schema: VENDOR_OBJECTS_SCHEMA,
  table: 'vendor_objects',
  order: ['owner', 'id'],
  listed: () => `${MOVED_COLUMNS.join(', ')}, length(object) + coalesce(length(due), 0) AS bytes`,
  compared: ['due'],
  state: (ours, theirs) =>
    ours.due === null && ours.settled !== null && theirs.due !== null ? 'missing' : 'there',
  resealed(row, from, to) {
    const place = placeOf(row.owner, row.id);
    const text = from.open(row.object, place);
    return text && { ...row, object: to.seal(text, place) };
  },
  write: (inside, rows) =>
    inside.query(
      `INSERT INTO hopgate.vendor_objects (${MOVED_COLUMNS.join(', ')})
         VALUES ${rowPlaceholders(rows.length, MOVED_COLUMNS.length)}
         ON CONFLICT (owner, id) DO UPDATE SET due = excluded.due, settled = excluded.settled
         RETURNING owner, id`,
      rows.flatMap(({ row }) =>
        MOVED_COLUMNS.map((name) => row[name as keyof MovedObject] as SqlValue),
      ),
    ),
};

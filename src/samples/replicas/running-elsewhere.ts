/** Exchanges that run on other replicas: each tells the others over the cache, as hints that expire with it. */

import { isObject, tryParse } from '../../lib/json/json.ts';
import { randomBase36 } from '../../lib/text/ids.ts';
import type { KeyValue } from '../../state/engines/engine.ts';
import { type HashedName, nameHash } from '../../state/erasures.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../sample.ts';
import { ENTRIES, isId } from '../store/sample-files.ts';

const CHANNEL = '{hopgate}:running';
const PLACE = 'samples running';
const PUBLISH_MS = 100;
/** Changes are told together. */
const TOGETHER_MS = 200;
/** Everything that runs is told again so often, and forgotten where it was not. */
const AGAIN_MS = 5000;
const FORGOTTEN_MS = 15_000;
/** After its end, an exchange stays until its sample comes; one that is not recorded goes then. */
const AFTER_END_MS = 5000;
/** Exchanges of one message, and those that are held. */
const MAX_TOLD = 500;
const MAX_HELD = 5000;

export interface RunningElsewhereOptions {
  readonly cache: KeyValue;
  readonly seal: TextSeal;
  /** What this process records. */
  readonly watch: (watcher: SampleWatcher) => () => void;
}

interface Running {
  readonly row: SampleRow;
  readonly until: number;
}

export class RunningElsewhere {
  /** Tells the messages of this process from those of others. */
  readonly #name = randomBase36(12);
  readonly #own = new Map<string, SampleRow>();
  readonly #changed = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #others = new Map<string, Running>();
  readonly #watchers = new Set<SampleWatcher>();
  #telling: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setInterval> | undefined;
  #closing: (() => void)[] = [];

  constructor(private readonly options: RunningElsewhereOptions) {}

  open(): void {
    if (this.#again !== undefined) return;
    const { cache, watch } = this.options;
    this.#closing = [
      cache.watch(CHANNEL, (message) => this.#heard(message)),
      watch({ row: (row) => this.#row(row), gone: (ids) => this.#gone(ids) }),
    ];
    let ticks = 0;
    this.#again = setInterval(() => {
      this.#forget();
      if (++ticks % (AGAIN_MS / 1000) !== 0) return;
      for (const id of this.#own.keys()) this.#changed.add(id);
      this.#tellSoon();
    }, 1000).unref();
  }

  /** Newest first. */
  rows(): readonly SampleRow[] {
    return [...this.#others.values()].map(({ row }) => row).toSorted((a, b) => b.time - a.time);
  }

  /** What is known of an exchange; undefined: it does not run elsewhere. */
  find(id: string): SampleMeta | undefined {
    const row = this.#others.get(id)?.row;
    if (row === undefined) return undefined;
    return {
      id,
      entry: row.entry,
      state: 'open',
      time: row.time,
      ...(row.model !== '' && { model: row.model }),
      ...(row.target !== '' && { target: row.target }),
      stream: row.stream,
      notes: [],
      ...(row.session !== '' && { session: row.session }),
      ...(row.owner !== '' && { owner: row.owner }),
      masked: 0,
      edges: [],
    };
  }

  watch(watcher: SampleWatcher): () => void {
    this.#watchers.add(watcher);
    for (const { row } of this.#others.values()) watcher.row(row);
    return () => this.#watchers.delete(watcher);
  }

  /** Forgets exchanges of an erased memory space. */
  eraseSpace(space: HashedName): void {
    for (const [id, { row }] of this.#others) {
      const { memory_space: own = '' } = row;
      if (own !== '' && nameHash(own) === nameHash(space)) this.#others.delete(id);
    }
  }

  /** The sample of an exchange came: it is in the list. */
  settled(id: string): void {
    this.#others.delete(id);
  }

  close(): void {
    clearInterval(this.#again);
    clearTimeout(this.#telling);
    for (const end of this.#closing) end();
  }

  #row(row: SampleRow): void {
    if (row.state !== 'open') {
      this.#gone([row.id]);
      return;
    }
    // Under more load than that, the list is no use.
    if (this.#own.size >= MAX_TOLD && !this.#own.has(row.id)) return;
    this.#own.set(row.id, row);
    this.#changed.add(row.id);
    this.#tellSoon();
  }

  #gone(ids: readonly string[]): void {
    for (const id of ids) {
      if (!this.#own.delete(id)) continue;
      this.#changed.delete(id);
      this.#ended.add(id);
      this.#tellSoon();
    }
  }

  #tellSoon(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#tell();
    }, TOGETHER_MS);
    this.#telling.unref();
  }

  #tell(): void {
    const { cache, seal } = this.options;
    const rows = [...this.#changed].flatMap((id) => this.#own.get(id) ?? []);
    const ended = [...this.#ended];
    this.#changed.clear();
    this.#ended.clear();
    if (rows.length + ended.length === 0) return;
    const text = JSON.stringify({ from: this.#name, rows, ended });
    const sealed = Buffer.from(seal.seal(Buffer.from(text), PLACE)).toString('base64');
    cache.publish(CHANNEL, sealed, PUBLISH_MS).catch(() => {});
  }

  #heard(sealed: string | undefined): void {
    if (sealed === undefined) return;
    const text = this.options.seal.open(Buffer.from(sealed, 'base64'), PLACE);
    const said = text && tryParse(Buffer.from(text).toString('utf8'));
    if (!isObject(said) || said.from === this.#name) return;
    const now = performance.now();
    for (const one of Array.isArray(said.rows) ? said.rows : []) {
      const row = one as unknown as SampleRow;
      if (!isObject(one) || !isId(row.id) || !ENTRIES.includes(row.entry)) continue;
      if (this.#others.size >= MAX_HELD && !this.#others.has(row.id)) continue;
      this.#others.set(row.id, { row, until: now + FORGOTTEN_MS });
      for (const watcher of this.#watchers) watcher.row(row);
    }
    for (const id of Array.isArray(said.ended) ? said.ended : []) {
      const known = this.#others.get(String(id));
      if (known !== undefined) {
        this.#others.set(known.row.id, { row: known.row, until: now + AFTER_END_MS });
      }
    }
  }

  #forget(): void {
    const now = performance.now();
    const gone: string[] = [];
    for (const [id, { until }] of this.#others) if (until < now) gone.push(id);
    for (const id of gone) this.#others.delete(id);
    if (gone.length > 0) for (const watcher of this.#watchers) watcher.gone(gone);
  }
}

/** Samples of all replicas in every folder: uploads, follows, cleans and erases in the background, behind every request. */

import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import { Repeating } from '../../lib/loop/repeating.ts';
import { messageOf } from '../../lib/text/thrown.ts';
import { EngineAway, type KeyValue, type Objects, type Sql } from '../../state/engines/engine.ts';
import type { ReplicaErasures } from '../../state/erasures.ts';
import type { TextSeal } from '../../state/text-seal.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../sample.ts';
import type { Retention } from '../store/retention.ts';
import { BodyFetcher, removeBodies } from './bodies.ts';
import { LocalFolder, metaFrom, SharingStore } from './folder-store.ts';
import { type ListedSample, SampleList, type StoredObject } from './list.ts';
import { Uploader, type UploaderOptions } from './uploader.ts';

export interface SharingOptions {
  readonly root: string;
  readonly database: Sql;
  readonly objects: Objects;
  /** Carries hints, so that replicas learn of samples sooner than by asking. */
  readonly cache: KeyValue | undefined;
  readonly seal: TextSeal;
  readonly erasures: ReplicaErasures;
  readonly retention: () => Retention;
  /** Called once for each new problem. */
  readonly warn: (message: string) => void;
  /** How many finished samples wait for their upload. */
  readonly onPending?: ((count: number) => void) | undefined;
  /** Milliseconds between two rounds of cleaning. */
  readonly cleanMs?: number;
  readonly onStep?: UploaderOptions['onStep'];
}

const CHANNEL = '{hopgate}:samples';
const HINT_MS = 100;
const FOLLOW_MS = 2000;
const CLEAN_MS = 30_000;
/** What finished last is uploaded before the process ends, for so long. */
const LAST_MS = 5000;
/** Bytes of bodies that lie here although the object store has them, too. */
const LOCAL_BYTES = 2 ** 30;

export class Sharing {
  readonly #folder: LocalFolder;
  readonly #table: SampleList;
  readonly #uploader: Uploader;
  readonly #follower: Follower;
  readonly #cleaner: Cleaner;
  readonly #fetcher: BodyFetcher;
  readonly #watchers = new Set<SampleWatcher>();
  readonly #loops: {
    readonly upload: Repeating;
    readonly follow: Repeating;
    readonly clean: Repeating;
    readonly count: Repeating;
  };
  #unwatch: (() => void) | undefined;
  #followed = false;
  #lost = 0;
  #lastProblem = '';

  /** Opens what this folder knows of the others. @throws SQLiteError */
  constructor(private readonly options: SharingOptions) {
    const { root, database, objects, seal, erasures, retention, onStep } = options;
    const store = new SharingStore(root);
    const folder = new LocalFolder(root, store);
    const table = new SampleList(database, erasures);
    this.#folder = folder;
    this.#table = table;
    const onRemoved = (ids: readonly string[]) => {
      if (ids.length > 0) for (const watcher of this.#watchers) watcher.gone(ids);
    };
    const onProblem = (what: string, cause: unknown) => this.#problem(what, cause);
    this.#uploader = new Uploader({
      folder,
      table,
      objects,
      seal,
      onListed: () => this.#hint(),
      onRemoved,
      onProblem,
      ...(onStep !== undefined && { onStep }),
    });
    this.#follower = new Follower({
      folder,
      table,
      seal,
      onRow: (row) => {
        for (const watcher of this.#watchers) watcher.row(row);
      },
      onRemoved,
      onProblem,
    });
    this.#cleaner = new Cleaner({
      table,
      objects,
      replica: store.replica,
      retention,
      onChange: () => this.#hint(),
    });
    this.#fetcher = new BodyFetcher({ root, objects, seal, store });
    this.#loops = {
      upload: this.#loop('cannot be uploaded', FOLLOW_MS, () => this.#upload()),
      follow: this.#loop('cannot be followed', FOLLOW_MS, () => this.#follow()),
      clean: this.#loop('cannot be cleaned', options.cleanMs ?? CLEAN_MS, () => this.#clean()),
      // Beside the upload, which can hang on a store for as long as a part may take.
      count: this.#loop('cannot be counted', FOLLOW_MS, () => this.#countPending()),
    };
  }

  /** Begins, in the background. */
  open(): void {
    this.#unwatch ??= this.options.cache?.watch(CHANNEL, () => this.#loops.follow.wake());
    for (const loop of Object.values(this.#loops)) loop.wake();
  }

  /** Something was recorded. */
  wake(): void {
    this.#loops.upload.wake();
  }

  /** The watcher is told of samples of other replicas until the returned function is called. */
  watch(watcher: SampleWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /**
   * Resolves when the bodies of a sample lie in the folder.
   * @throws GatewayError not_found when they are gone, overloaded when they cannot be fetched now
   */
  fetch(meta: SampleMeta): Promise<void> {
    return this.#fetcher.fetch(meta);
  }

  /** Samples were removed because of a limit: those that were never uploaded are lost, which is told. */
  purged(ids: readonly string[]): void {
    const lost = ids.filter((id) => !this.#folder.store.knows(id)).length;
    if (lost === 0) return;
    this.#lost += lost;
    this.#problem(
      'dropped before they could be uploaded, since the limits were reached',
      this.#lost,
    );
  }

  /** Samples that were removed before they could be uploaded. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Removes samples of an erased memory space from the list and the object store, which lists none of them then.
   * @param hash of its name, as {@link ReplicaErasures.note} has it
   * @throws EngineAway: it goes on in the background then
   */
  async eraseSpace(hash: string): Promise<number> {
    await this.#table.ready();
    const count = await this.#cleaner.eraseSpace(hash);
    this.#loops.follow.wake();
    return count;
  }

  /** Uploads what is finished, as far as the engines answer. */
  async close(): Promise<void> {
    this.#unwatch?.();
    const { upload, ...others } = this.#loops;
    await Promise.all(Object.values(others).map((loop) => loop.close()));
    const mayUpload = this.#followed && this.#folder.store.leads();
    const last = mayUpload ? this.#uploader.run().catch(() => {}) : undefined;
    await Promise.race([last, Bun.sleep(LAST_MS)]);
    this.#uploader.close();
    await Promise.all([upload.close(), last]);
    this.#folder.close();
  }

  #loop(what: string, everyMs: number, work: () => Promise<void>): Repeating {
    const problem = `shared samples ${what}`;
    return new Repeating({
      everyMs,
      work: async () => {
        if (this.#folder.store.leads()) await work();
        // A problem that comes back is logged again.
        if (this.#lastProblem.startsWith(problem)) this.#lastProblem = '';
      },
      onProblem: (thrown) => {
        this.#follower.recheck();
        // The engine itself logs that it is away.
        if (!(thrown instanceof EngineAway)) this.#problem(`${problem} (${messageOf(thrown)})`);
      },
    });
  }

  async #upload(): Promise<void> {
    // Before that, it is not known what is uploaded.
    if (!this.#followed) return;
    await this.#uploader.run();
    this.#folder.evict(LOCAL_BYTES);
  }

  async #countPending(): Promise<void> {
    this.options.onPending?.(await this.#uploader.pending());
  }

  async #follow(): Promise<void> {
    await this.#table.ready();
    await this.#follower.run();
    if (this.#followed) return;
    this.#followed = true;
    this.#loops.upload.wake();
  }

  async #clean(): Promise<void> {
    await this.#table.ready();
    await this.#cleaner.run();
  }

  #hint(): void {
    this.options.cache?.publish(CHANNEL, '', HINT_MS).catch(() => {});
  }

  /** Logs a problem once, until there is another one. */
  #problem(what: string, detail?: unknown): void {
    if (this.#lastProblem === what) return;
    this.#lastProblem = what;
    this.options.warn(detail === undefined ? what : `${what} (${detail})`);
  }
}

export interface FollowerOptions
  extends Pick<UploaderOptions, 'folder' | 'table' | 'seal' | 'onRemoved' | 'onProblem'> {
  readonly onRow: (row: SampleRow) => void;
}

export class Follower {
  /** It was asked whether this folder was away for too long. */
  #checked = false;
  /** The list is followed from its beginning. */
  #startsOver = false;

  constructor(private readonly options: FollowerOptions) {}

  /** Takes in everything that changed by now. @throws EngineAway */
  async run(): Promise<void> {
    const { folder, table } = this.options;
    const { store } = folder;
    await this.#check();
    // What is here and not in the backup stays.
    if (store.position > 0 && (await table.isBehind(store.position))) store.position = 0;
    for (;;) {
      const rows = await table.changes(store.position);
      if (rows.length === 0) break;
      const gone: string[] = [];
      for (const row of rows) {
        if (row.state === 'gone') gone.push(row.id);
        else if (row.meta !== null) this.#take(row, row.meta);
      }
      if (gone.length > 0) this.options.onRemoved(await folder.remove(gone));
      store.position = rows.at(-1)!.seq;
    }
    if (!this.#startsOver) return;
    for (let lost = store.unseen(); lost.length > 0; lost = store.unseen()) {
      this.options.onRemoved(await folder.remove(lost.map(({ id }) => id)));
    }
    this.#startsOver = false;
  }

  /** The list forgets removed samples after a while: who was away for longer compares everything. */
  async #check(): Promise<void> {
    if (this.#checked) return;
    const { store } = this.options.folder;
    if (store.position > 0 && store.position < (await this.options.table.forgotten())) {
      store.startOver();
      this.#startsOver = true;
    }
    this.#checked = true;
  }

  /** To be called after the list could not be followed for a while. */
  recheck(): void {
    this.#checked = false;
  }

  #take({ id, replica }: ListedSample, sealed: Uint8Array): void {
    const { folder, seal, onRow, onProblem } = this.options;
    const meta = metaFrom(seal, id, sealed);
    if (meta === undefined) {
      onProblem(
        'samples of another replica cannot be read: is its secret in engines.seal?',
        `replica ${replica}`,
      );
      return;
    }
    const row = folder.take(meta);
    if (row !== undefined) onRow(row);
  }
}

export interface CleanerOptions {
  readonly table: SampleList;
  readonly objects: Objects;
  readonly replica: string;
  readonly retention: () => Retention;
  /** Other replicas have something to follow. */
  readonly onChange: () => void;
}

const CLEANED_AT_ONCE = 4;

export class Cleaner {
  constructor(private readonly options: CleanerOptions) {}

  /** Nothing happens where another replica does it. @throws EngineAway */
  async run(): Promise<void> {
    const { table, replica, retention } = this.options;
    const isMine = () => table.leads(replica);
    if (!(await isMine())) return;
    await this.#removeAll(() => table.erased(), isMine);
    await this.#removeAll(() => table.overdue(retention()), isMine);
    for (;;) {
      const left = await table.unchecked();
      if (left.length === 0 || !(await isMine())) break;
      await this.#clear(left);
    }
    await table.forget();
  }

  /**
   * Removes all samples of a memory space that began before it was erased; resolves when the object store lists nothing
   * of them. @throws EngineAway: then the cleaning replica goes on with it
   */
  async eraseSpace(hash: string): Promise<number> {
    return this.#removeAll(
      () => this.options.table.erased(hash),
      async () => true,
    );
  }

  async #removeAll(
    page: () => Promise<readonly string[]>,
    goesOn: () => Promise<boolean>,
  ): Promise<number> {
    const { table, onChange } = this.options;
    let count = 0;
    for (let ids = await page(); ids.length > 0; ids = await page()) {
      const removed = await table.remove(ids);
      count += removed.length;
      onChange();
      await this.#clear(removed);
      if (!(await goesOn())) break;
    }
    return count;
  }

  async #clear(removed: readonly StoredObject[]): Promise<void> {
    const { table, objects } = this.options;
    const limited = limitParallel(CLEANED_AT_ONCE);
    await Promise.all(removed.map((one) => limited(() => removeBodies(objects, one))));
    await table.checked(removed.map(({ id }) => id));
  }
}

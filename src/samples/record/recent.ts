/** The last exchanges in memory: a small ring that is filled by reference, and masked only when it is read. */

import type { RecordedExchange, Recording } from '../recording.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../sample.ts';
import { rowOf, shownMeta } from '../store/meta.ts';
import { Capture, type CaptureHooks, isOfSpace, type SpaceName } from './capture.ts';
import type { StageBody } from './stage-body.ts';

export interface RecentLimits {
  /** Most exchanges. */
  readonly count: number;
  /** Most bytes of all of them together. */
  readonly bytes: number;
  /** Most bytes of one body; a longer one is cut and marked. */
  readonly body: number;
  /** Exchanges that are taken in one second: under load a few of them are enough to look at, and cheap. */
  readonly perSecond: number;
}

export const RECENT_LIMITS: RecentLimits = {
  count: 50,
  bytes: 16_000_000,
  body: 1_000_000,
  perSecond: 20,
};

/** One exchange of the ring, masked: its meta, and its bodies by their stages. */
export interface RecentSample {
  readonly meta: SampleMeta;
  body(stage: string): Uint8Array | undefined;
}

/** The ring as the page reads it. */
export interface RecentSamples {
  readonly limits: RecentLimits;
  /** Newest first, running exchanges included; credentials are masked. */
  rows(): readonly SampleRow[];
  /** Masks what has come of an exchange since the last call, for {@link find}. */
  read(id: string): Promise<void>;
  /** What {@link read} has masked; undefined: the ring does not hold this exchange, or it was not read. */
  find(id: string): RecentSample | undefined;
}

interface Entry {
  readonly capture: Capture;
  readonly texts: StageTexts;
  /** Bytes that count against the limit. */
  held: number;
  /** The row of an exchange that is over. */
  row: SampleRow | undefined;
  sample: RecentSample | undefined;
  reading: Promise<void>;
}

export interface RecentOptions {
  readonly limits?: Partial<RecentLimits>;
  /** What captures for the ring share with recorded ones. */
  readonly hooks: Pick<CaptureHooks, 'literals' | 'blank' | 'now'>;
  /** The name of this process in metas of running exchanges. */
  readonly run: string;
  /** False: exchanges of this route are not held. */
  readonly holds: (route: string | undefined) => boolean;
  readonly watchers: ReadonlySet<SampleWatcher>;
}

export class RecentExchanges implements RecentSamples {
  readonly limits: RecentLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #hooks: CaptureHooks;
  #held = 0;
  #second = Number.NEGATIVE_INFINITY;
  #taken = 0;
  /** Entries that watchers have not seen yet. */
  readonly #untold = new Set<Entry>();

  constructor(private readonly options: RecentOptions) {
    this.limits = { ...RECENT_LIMITS, ...options.limits };
    this.#hooks = {
      ...options.hooks,
      bodyBytes: this.limits.body,
      hold: (capture, bytes) => this.#hold(capture, bytes),
      onRoute: (capture, route) => this.#routed(capture, route),
      onEnd: (capture) => this.#ended(capture),
    };
  }

  /** Begins to hold an exchange that the recorder does not want. Undefined: the second has its share already. */
  begin(exchange: RecordedExchange): Recording | undefined {
    if (!this.#admits()) return undefined;
    const capture = new Capture(exchange, this.#hooks);
    if (capture.dropped) return undefined;
    this.#add(capture, capture.held);
    return capture.dropped ? undefined : capture;
  }

  /** Takes over a finished exchange that the recorder collected and does not keep; false: it is not taken. */
  take(capture: Capture): boolean {
    if (!this.options.holds(capture.outcome?.route) || !this.#admits()) return false;
    for (const stage of capture.stages) stage.keepFirst(this.limits.body);
    this.#add(capture, capture.size);
    const entry = this.#entries.get(capture.id);
    if (entry === undefined) return false;
    this.#finish(entry);
    return true;
  }

  rows(): readonly SampleRow[] {
    return [...this.#entries.values()].map((entry) => this.#rowOf(entry)).reverse();
  }

  async read(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    // One reader at a time: masking takes the waiting bytes away.
    const done = entry.reading.then(() => this.#readEntry(entry));
    entry.reading = done.catch(() => {});
    await done;
  }

  find(id: string): RecentSample | undefined {
    return this.#entries.get(id)?.sample;
  }

  /** Removes all exchanges of a memory space that began until then; their number. */
  eraseSpace(space: SpaceName, until?: number): number {
    const found = [...this.#entries.values()].filter(({ capture }) =>
      isOfSpace(capture, space, until),
    );
    for (const entry of found) this.#remove(entry);
    return found.length;
  }

  clear(): void {
    for (const entry of [...this.#entries.values()]) this.#remove(entry);
  }

  /** At most so many in a second, so that load costs nothing here. */
  #admits(): boolean {
    const now = performance.now();
    if (now - this.#second >= 1000) {
      this.#second = now;
      this.#taken = 0;
    }
    return this.#taken++ < this.limits.perSecond;
  }

  #add(capture: Capture, held: number): void {
    const entry: Entry = {
      capture,
      texts: new Map(),
      held,
      row: undefined,
      sample: undefined,
      reading: Promise.resolve(),
    };
    this.#entries.set(capture.id, entry);
    this.#held += held;
    this.#makeRoom();
  }

  /** The bytes of a capture that is not in the ring yet count when it is added. */
  #hold(capture: Capture, bytes: number): boolean {
    capture.held += bytes;
    const entry = this.#entries.get(capture.id);
    if (entry === undefined) return true;
    entry.held += bytes;
    this.#held += bytes;
    this.#makeRoom();
    return !capture.dropped;
  }

  /** The oldest go first, the newest too where it alone is too large; those that run stay as long as others can go. */
  #makeRoom(): void {
    for (const running of [false, true]) {
      for (const entry of this.#entries.values()) {
        if (this.#entries.size <= this.limits.count && this.#held <= this.limits.bytes) return;
        if (running || entry.capture.outcome !== undefined) this.#remove(entry);
      }
    }
  }

  #remove(entry: Entry): void {
    const { capture } = entry;
    this.#entries.delete(capture.id);
    this.#untold.delete(entry);
    this.#held -= entry.held;
    capture.drop();
    for (const watcher of this.options.watchers) watcher.gone([capture.id]);
  }

  #routed(capture: Capture, route: string | undefined): void {
    const entry = this.#entries.get(capture.id);
    if (entry === undefined) return;
    if (!this.options.holds(route)) this.#remove(entry);
    else this.#tell(entry);
  }

  #ended(capture: Capture): void {
    const entry = this.#entries.get(capture.id);
    if (entry === undefined) return;
    if (!this.options.holds(capture.outcome?.route)) this.#remove(entry);
    else this.#finish(entry);
  }

  #finish(entry: Entry): void {
    // Chunks of a stream are views of larger buffers, which would stay in memory with them.
    for (const stage of entry.capture.stages) stage.compact();
    this.#tell(entry);
  }

  /** Tells watchers after this turn of the event loop: no answer waits for a list. */
  #tell(entry: Entry): void {
    if (this.options.watchers.size === 0) return;
    if (this.#untold.size === 0) setImmediate(() => this.#tellAll());
    this.#untold.add(entry);
  }

  #tellAll(): void {
    const entries = [...this.#untold];
    this.#untold.clear();
    for (const entry of entries) {
      const row = this.#rowOf(entry);
      for (const watcher of this.options.watchers) watcher.row(row);
    }
  }

  async #readEntry(entry: Entry): Promise<void> {
    const { capture, texts } = entry;
    await readStages(capture, texts);
    entry.sample = {
      meta: this.#metaOf(entry),
      body: (stage) => {
        const found = capture.stages.find((one) => one.stage === stage);
        return found && texts.get(found);
      },
    };
  }

  #rowOf(entry: Entry): SampleRow {
    if (entry.row !== undefined) return entry.row;
    const row: SampleRow = { ...rowOf(this.#metaOf(entry)), in_memory: true };
    if (entry.capture.outcome !== undefined) entry.row = row;
    return row;
  }

  #metaOf({ capture }: Entry): SampleMeta {
    const state = capture.outcome === undefined ? 'open' : 'done';
    return shownMeta(capture, state, this.options.run);
  }
}

/** What is masked so far, by stage. */
type StageTexts = Map<StageBody, Buffer>;

/** Masks the bytes that wait in a capture and appends them to its texts. One call at a time. */
async function readStages(capture: Capture, texts: StageTexts): Promise<void> {
  capture.prepare();
  for (const stage of [...capture.stages]) {
    if (!stage.dirty) continue;
    const { pieces, patches } = await stage.drain();
    const before = texts.get(stage);
    const whole = Buffer.concat(before === undefined ? pieces : [before, ...pieces]);
    for (const { at, bytes } of patches) whole.set(bytes, at);
    stage.written = whole.length;
    texts.set(stage, whole);
  }
}

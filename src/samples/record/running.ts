/** Exchanges that run, whatever becomes of them: the index of the disk has them when they are over. */

import { LinkedList } from '../../lib/loop/linked-list.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../sample.ts';
import { rowOf, shownMeta } from '../store/meta.ts';
import type { Capture } from './capture.ts';
import type { StageBody } from './stage-body.ts';

/** Milliseconds until watchers hear of an exchange: most are over by then. */
const TELL_AFTER = 250;
/** Rows that are made at once. */
const MAX_ROWS = 500;

/** Their bodies wait to be written, or to be forgotten; what a reader asks for is masked for it. */
export class RunningExchanges {
  /** All exchanges that run or wait to be written. */
  readonly open = new LinkedList<Capture>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #texts = new WeakMap<StageBody, Buffer>();

  /** @param run the name of this process in metas */
  constructor(
    private readonly run: string,
    private readonly watchers: ReadonlySet<SampleWatcher>,
  ) {}

  /** Newest first; credentials are masked. */
  rows(): readonly SampleRow[] {
    return this.#captures().map((capture) => this.#rowOf(capture));
  }

  /** Undefined: it does not run here, or its files can be read. */
  find(id: string): SampleMeta | undefined {
    const capture = this.#shown(id);
    return capture && shownMeta(capture, 'open', this.run);
  }

  /** Masks what has come of an exchange of which nothing is written yet, for {@link body}. */
  async read(capture: Capture): Promise<void> {
    // The route decides whether its bodies may be seen.
    if (!isShown(capture) || capture.model === undefined) return;
    capture.prepare();
    for (const stage of [...capture.stages]) {
      if (this.#texts.get(stage)?.length !== stage.bytes) {
        this.#texts.set(stage, await stage.peek());
      }
    }
  }

  /** What {@link read} has masked of a body. */
  body(id: string, name: string): Uint8Array | undefined {
    const stage = this.#shown(id)?.stages.find((one) => one.stage === name);
    return stage && this.#texts.get(stage);
  }

  /** Tells watchers of those that still run in a moment. */
  tellSoon(): void {
    if (this.watchers.size === 0 || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      for (const capture of this.#captures()) {
        if (capture.told || capture.announced) continue;
        capture.told = true;
        const row = this.#rowOf(capture);
        for (const watcher of this.watchers) watcher.row(row);
      }
    }, TELL_AFTER).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #shown(id: string): Capture | undefined {
    for (const capture of this.open.all()) {
      if (capture.id === id) return isShown(capture) && !capture.announced ? capture : undefined;
    }
    return undefined;
  }

  #captures(): readonly Capture[] {
    return [...this.open.all()].filter(isShown).reverse().slice(0, MAX_ROWS);
  }

  #rowOf(capture: Capture): SampleRow {
    const row = rowOf(shownMeta(capture, 'open', this.run));
    return capture.announced ? row : { ...row, in_memory: true };
  }
}

const isShown = ({ outcome, dropped, hidden }: Capture): boolean =>
  outcome === undefined && !dropped && !hidden;

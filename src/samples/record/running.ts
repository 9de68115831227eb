/** Exchanges that run, whatever becomes of them: the index of the disk has them when they are over. */

import { LinkedList } from '../../lib/loop/linked-list.ts';
import type { SampleMeta, SampleRow, SampleWatcher } from '../sample.ts';
import { metaOf, metaText, rowOf } from '../store/meta.ts';
import type { Capture } from './capture.ts';

/** Milliseconds until watchers hear of an exchange: most are over by then. */
const TELL_AFTER = 250;
/** Rows that are made at once. */
const MAX_ROWS = 500;

/** Of each only the meta is known: its bodies wait to be written, or to be forgotten. */
export class RunningExchanges {
  /** All exchanges that run or wait to be written. */
  readonly open = new LinkedList<Capture>();
  #timer: ReturnType<typeof setTimeout> | undefined;

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
    for (const capture of this.open.all()) {
      if (capture.id !== id) continue;
      return isShown(capture) && !capture.announced ? this.#metaOf(capture) : undefined;
    }
    return undefined;
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

  #captures(): readonly Capture[] {
    return [...this.open.all()].filter(isShown).reverse().slice(0, MAX_ROWS);
  }

  #rowOf(capture: Capture): SampleRow {
    const row = rowOf(this.#metaOf(capture));
    return capture.announced ? row : { ...row, in_memory: true };
  }

  #metaOf(capture: Capture): SampleMeta {
    capture.prepare();
    return metaText(metaOf(capture, 'open', this.run), capture.secrets.literals).meta;
  }
}

const isShown = ({ outcome, dropped, hidden }: Capture): boolean =>
  outcome === undefined && !dropped && !hidden;

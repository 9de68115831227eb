/** Fills in missing vectors of events in the background, in batches that are leased to one process each. */

import { GatewayError } from '../../../conversation/errors.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import type { VectorsStatus } from '../backend.ts';
import type { Embedder } from './embedder.ts';
import type { EventWithoutVector, Vectors } from './vectors.ts';

export interface BackFill {
  /** Starts a pass, since there may be events without a vector. */
  wake(): void;
  status(): VectorsStatus;
  close(): Promise<void>;
}

export interface BackFillOptions {
  /** The events that still need vectors. */
  readonly work: Pick<Vectors, 'next' | 'put'>;
  readonly embedder: Embedder;
  /** Called for a failure; the batch is tried again later. */
  readonly onFailure: (thrown: unknown) => void;
  /** Milliseconds before the first batch after `wake`, and before a retry (doubled with each failure). */
  readonly after?: number;
  readonly retryAfter?: number;
}

const BATCH = 32;
const MAX_PAUSE = 600_000;
/** Statuses for texts that the endpoint will never accept. */
const REFUSED = new Set([400, 413, 422]);

export function backFill(options: BackFillOptions): BackFill {
  const { work, embedder, onFailure, after: delayMs = 200, retryAfter = 5000 } = options;
  const stop = new AbortController();
  let behind = 0;
  let pause = 0;
  let refused = 0;
  let failure: VectorsStatus['failure'] = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;

  const schedule = (ms: number) => {
    if (stop.signal.aborted || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      running = batches().finally(() => {
        running = undefined;
      });
    }, ms).unref();
  };

  async function batches(): Promise<void> {
    try {
      for (;;) {
        if (stop.signal.aborted) return;
        const { events, again, ...next } = await work.next(embedder.name, behind, BATCH);
        if (stop.signal.aborted) return;
        if (events.length > 0) await work.put(embedder.name, await vectorsOf(events));
        behind = next.behind;
        if (events.length === 0) {
          if (again === undefined) return;
          behind = again.behind;
          return schedule(again.after);
        }
        pause = 0;
        failure = null;
      }
    } catch (thrown) {
      if (stop.signal.aborted) return;
      onFailure(thrown);
      failure = { time: new Date().toISOString(), message: messageOf(thrown) };
      pause = Math.min(MAX_PAUSE, pause === 0 ? retryAfter : pause * 2);
      schedule(pause);
    }
  }

  /** Splits a refused batch, so that one refused text does not keep the others from their vectors. */
  async function vectorsOf(
    events: readonly EventWithoutVector[],
  ): Promise<ReadonlyMap<number, Float32Array | undefined>> {
    try {
      const texts = events.map(({ text, source }) => (source === '' ? text : `${source}: ${text}`));
      const all = await embedder.embed(texts, stop.signal);
      return new Map(events.map(({ row }, at) => [row, all[at]]));
    } catch (thrown) {
      if (!(thrown instanceof GatewayError && REFUSED.has(thrown.status))) throw thrown;
      if (events.length === 1) {
        refused++;
        return new Map([[events[0]!.row, undefined]]);
      }
      const half = Math.ceil(events.length / 2);
      const first = await vectorsOf(events.slice(0, half));
      return new Map([...first, ...(await vectorsOf(events.slice(half)))]);
    }
  }

  return {
    status: () => ({ refused, failure }),
    wake() {
      if (running === undefined) schedule(pause === 0 ? delayMs : pause);
      else void running.then(() => schedule(delayMs));
    },
    async close() {
      stop.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

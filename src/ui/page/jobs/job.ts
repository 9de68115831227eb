/** Follows a job of the gateway (replay or bisection) for a view. */

import type { JobEvent } from '../../api/api.ts';
import { cancelJob, followJob } from '../kit/api-calls.ts';
import { announce } from '../kit/copy.tsx';
import { failureText } from '../kit/fetching.ts';

export interface Followed {
  close(): void;
}

/** @param changed all events so far, oldest first; `problem`: the feed broke */
export function follow(
  job: string,
  changed: (events: readonly JobEvent[], problem: string | undefined) => void,
): Followed {
  const stop = new AbortController();
  const events: JobEvent[] = [];
  let timer = 0;
  // Frequent events are drawn together.
  const soon = () => {
    if (timer !== 0) return;
    timer = window.setTimeout(() => {
      timer = 0;
      changed(events, undefined);
    }, 50);
  };
  void (async () => {
    try {
      for await (const event of followJob(job, stop.signal)) {
        events.push(event);
        soon();
      }
    } catch (thrown) {
      const message = failureText(thrown);
      if (message !== undefined) changed(events, message);
    }
  })();
  return {
    close: () => {
      clearTimeout(timer);
      stop.abort();
    },
  };
}

/** The final event of a job, if it has ended. */
export const endOf = (events: readonly JobEvent[]) =>
  events.find((event): event is JobEvent & { readonly type: 'end' } => event.type === 'end');

/** The latest state of the job. */
export const latest = (events: readonly JobEvent[]) =>
  events.findLast(
    (event): event is Exclude<JobEvent, { readonly type: 'note' }> => event.type !== 'note',
  )?.job;

export async function cancel(job: string): Promise<void> {
  try {
    await cancelJob(job);
  } catch (thrown) {
    announce(failureText(thrown) ?? '');
  }
}

export const stateWords = (state: string): string =>
  ({ running: 'Running', done: 'Done', failed: 'Failed', cancelled: 'Stopped' })[state] ?? state;

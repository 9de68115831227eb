/** Follows a job of the gateway (replay or bisection) for a view. */

import { useLayoutEffect, useState } from 'preact/hooks';
import type { JobEvent } from '../../api/api.ts';
import { followJob } from '../kit/api-calls.ts';
import { failureText } from '../kit/fetching.ts';
import { t } from '../kit/language.ts';

export interface JobSoFar {
  /** Oldest first. */
  readonly events: readonly JobEvent[];
  /** The final event, if it has ended. */
  readonly end: (JobEvent & { readonly type: 'end' }) | undefined;
  readonly running: boolean;
  /** The feed broke. */
  readonly problem?: string | undefined;
}

const NOTHING: JobSoFar = { events: [], end: undefined, running: true };

export function useJob(job: string): JobSoFar {
  const [soFar, setSoFar] = useState(NOTHING);
  useLayoutEffect(() => {
    const stop = new AbortController();
    const events: JobEvent[] = [];
    let timer = 0;
    const show = (problem?: string) => {
      timer = 0;
      const end = events.find((event) => event.type === 'end');
      const running = end === undefined && problem === undefined;
      setSoFar({ events: [...events], end, running, problem });
    };
    const follow = async () => {
      try {
        for await (const event of followJob(job, stop.signal)) {
          events.push(event);
          // Frequent events are drawn together.
          if (timer === 0) timer = window.setTimeout(show, 50);
        }
      } catch (thrown) {
        const problem = failureText(thrown);
        if (problem !== undefined) show(problem);
      }
    };
    void follow();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [job]);
  return soFar;
}

/** The latest state of the job. */
export const latest = (events: readonly JobEvent[]) =>
  events.findLast(
    (event): event is Exclude<JobEvent, { readonly type: 'note' }> => event.type !== 'note',
  )?.job;

export const stateWords = (state: string): string =>
  ({ running: t`Running`, done: t`Done`, failed: t`Failed`, cancelled: t`Stopped` })[state] ??
  state;

/** The tab that replay and bisection share: starts a job on an exchange and shows its progress. */

import type { Info, JobEvent, JobView, SampleDetail } from '../../api/api.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { currentRoute, go, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { cancel, endOf, type Followed, follow, latest, stateWords } from './job.ts';
import { type Choice, choiceFields, earlierJobs } from './job-form.ts';

/** The state of a job so far. */
export interface JobSoFar {
  readonly events: readonly JobEvent[];
  readonly end: ReturnType<typeof endOf>;
  readonly running: boolean;
}

export interface JobTabOptions {
  readonly kind: JobView['kind'];
  /** The label of the start button. */
  readonly label: string;
  /** A text above the form. */
  readonly lead?: string;
  /** Form fields besides the shared ones. */
  readonly fields: readonly Child[];
  start(choice: Choice & { readonly id: string }): Promise<{ readonly job: string }>;
  /** The progress, shown after the state. */
  progress(view: JobView, job: JobSoFar): readonly Child[];
  /** The results so far. */
  found(job: JobSoFar): readonly Child[];
}

export function jobTab(
  detail: SampleDetail,
  info: Info,
  options: JobTabOptions,
): View<ExchangeRoute> {
  let followed: Followed | undefined;
  let shown = '';
  const choice = choiceFields(detail, info);
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const start = h('button', { type: 'submit', class: 'primary' }, options.label);
  const form = h(
    'form',
    {
      class: 'jobform',
      on: {
        submit: (event) => {
          event.preventDefault();
          void send();
        },
      },
    },
    choice.nodes,
    [...options.fields],
    h('div', { class: 'submit' }, start),
    problem,
  );
  const result = h('div', { class: 'job-result' });
  const node = h(
    'div',
    { class: `${options.kind}-tab` },
    detail.sendable.length === 0
      ? h('p', { class: 'same-words' }, 'This exchange has no request that can be sent again.')
      : [
          options.lead !== undefined && h('p', { class: 'soft lead' }, options.lead),
          form,
          earlierJobs(detail, options.kind),
        ],
    result,
  );

  async function send(): Promise<void> {
    start.disabled = true;
    problem.hidden = true;
    try {
      const { job } = await options.start({ id: detail.row.id, ...choice.read() });
      const route = currentRoute();
      if (route.name === 'exchange') go(withQuery(route, { job }));
    } catch (thrown) {
      problem.hidden = false;
      replace(problem, failureText(thrown));
    }
    start.disabled = false;
  }

  function draw(id: string, events: readonly JobEvent[], broken: string | undefined): void {
    const end = endOf(events);
    const view = latest(events);
    const job = { events, end, running: end === undefined && broken === undefined };
    const wrong = broken ?? end?.error?.message;
    replace(
      result,
      h(
        'p',
        { class: 'progress', role: 'status' },
        job.running && h('i', { class: 'spinner' }),
        view === undefined
          ? 'Starting'
          : [`${stateWords(view.state)}: `, ...options.progress(view, job)],
        job.running && button('Stop', () => void cancel(id), { class: 'tiny' }),
      ),
      wrong !== undefined && h('p', { class: 'problem', role: 'alert' }, wrong),
      [...options.found(job)],
    );
  }

  return {
    node,
    show({ query }) {
      const job = query.job ?? '';
      if (job === shown) return;
      shown = job;
      followed?.close();
      replace(result);
      if (job !== '') followed = follow(job, (events, broken) => draw(job, events, broken));
    },
    close: () => followed?.close(),
  };
}

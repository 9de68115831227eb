/** The tab that replay and bisection share: starts a job on an exchange and shows its progress. */

import type { Info, JobEvent, JobView, SampleDetail, SpendPlan } from '../../api/api.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { currentRoute, go, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { cancel, endOf, type Followed, follow, latest, stateWords } from './job.ts';
import { type Choice, choiceFields, earlierJobs } from './job-form.ts';
import { spendText } from './spend-text.ts';

/** The state of a job so far. */
export interface JobSoFar {
  readonly events: readonly JobEvent[];
  readonly end: ReturnType<typeof endOf>;
  readonly running: boolean;
}

type ChoiceOf = Choice & { readonly id: string };

/** Milliseconds after the last key until the cost is asked for. */
const PAUSE = 300;

export interface JobTabOptions {
  readonly kind: JobView['kind'];
  /** The label of the start button. */
  readonly label: string;
  /** A text above the form. */
  readonly lead?: string;
  /** Form fields besides the shared ones. */
  readonly fields: readonly Child[];
  start(choice: ChoiceOf): Promise<{ readonly job: string }>;
  /** What it would cost, or why it cannot be; asked while the form is filled in. */
  plan(choice: ChoiceOf, signal: AbortSignal): Promise<SpendPlan>;
  /** Many requests: a person is asked before they are sent. */
  readonly asks: boolean;
  /** Called with the stage that is chosen. */
  staged?(stage: string): void;
  /** A text in place of the form until it is asked for, for exchanges that it does not suit. */
  readonly instead?: string;
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
  const spend = h('p', { class: 'spend', role: 'status' });
  const question = h('div', {
    class: 'ask',
    role: 'alertdialog',
    'aria-label': 'Cost',
    hidden: true,
  });
  let planning = new AbortController();
  let timer = 0;
  const start = h('button', { type: 'submit', class: 'primary' }, options.label);
  const form = h(
    'form',
    {
      class: 'jobform',
      on: {
        submit: (event) => {
          event.preventDefault();
          if (options.asks) void ask();
          else void send();
        },
        input: () => later(),
        change: () => later(),
      },
    },
    choice.nodes,
    [...options.fields],
    h('div', { class: 'submit' }, start, spend),
    problem,
    question,
  );
  const result = h('div', { class: 'job-result' });
  const node = h(
    'div',
    { class: `${options.kind}-tab` },
    detail.sendable.length === 0
      ? h('p', { class: 'same-words' }, 'This exchange has no request that can be sent again.')
      : [
          options.lead !== undefined && h('p', { class: 'soft lead' }, options.lead),
          options.instead === undefined ? form : notFirst(options.instead),
          earlierJobs(detail, options.kind),
        ],
    result,
  );

  function notFirst(text: string): HTMLElement {
    const details = h('details', { class: 'notfirst' }, h('summary', null, text), form);
    return details;
  }

  const chosen = () => ({ id: detail.row.id, ...choice.read() });

  function later(): void {
    question.hidden = true;
    clearTimeout(timer);
    timer = window.setTimeout(() => void plan(), PAUSE);
  }

  /** The cost as text beside the button; what is wrong with the form below it. */
  async function plan(): Promise<SpendPlan | undefined> {
    clearTimeout(timer);
    planning.abort();
    planning = new AbortController();
    options.staged?.(choice.read().stage);
    try {
      const found = await options.plan(chosen(), planning.signal);
      replace(spend, spendText(found, options.asks));
      problem.hidden = true;
      return found;
    } catch (thrown) {
      const text = failureText(thrown);
      if (text === undefined) return undefined;
      replace(spend);
      problem.hidden = false;
      replace(problem, text);
      return undefined;
    }
  }

  async function ask(): Promise<void> {
    const found = await plan();
    if (found === undefined) return;
    const begin = button(
      'Begin',
      () => {
        question.hidden = true;
        void send();
      },
      { class: 'primary' },
    );
    replace(
      question,
      h('p', null, spendText(found, true), ' Begin?'),
      begin,
      button('Cancel', () => {
        question.hidden = true;
        start.focus();
      }),
    );
    question.hidden = false;
    begin.focus();
  }

  async function send(): Promise<void> {
    start.disabled = true;
    problem.hidden = true;
    try {
      const { job } = await options.start(chosen());
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
      if (detail.sendable.length > 0 && spend.textContent === '') void plan();
      const job = query.job ?? '';
      if (job === shown) return;
      shown = job;
      followed?.close();
      replace(result);
      if (job !== '') followed = follow(job, (events, broken) => draw(job, events, broken));
    },
    close() {
      followed?.close();
      planning.abort();
      clearTimeout(timer);
    },
  };
}

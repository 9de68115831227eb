/** The form fields that replay and bisection share, and links to earlier jobs. */

import type { Info, JobView, SampleDetail } from '../../api/api.ts';
import { stageTitle } from '../exchange/stages.ts';
import { getJobs } from '../kit/api-calls.ts';
import { h, replace } from '../kit/dom.ts';
import { clock, count } from '../kit/format.ts';
import { currentRoute, filtersOf, hashOf } from '../kit/route.ts';
import { stateWords } from './job.ts';

export interface Choice {
  readonly stage: string;
  readonly to: string | undefined;
  readonly repair: boolean | undefined;
}

export interface ChoiceFields {
  readonly nodes: readonly HTMLElement[];
  read(): Choice;
}

export const field = (label: string, control: HTMLElement, hint?: string): HTMLElement =>
  h(
    'label',
    { class: 'field' },
    h('span', null, label),
    control,
    hint !== undefined && h('small', null, hint),
  );

export function choiceFields({ sendable, row }: SampleDetail, { targets }: Info): ChoiceFields {
  const stage = h(
    'select',
    { name: 'stage' },
    sendable.map((one) => h('option', { value: one }, stageTitle(one))),
  );
  const models = targets.flatMap((target) => target.models);
  const to = h('input', {
    name: 'to',
    list: 'targets',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: row.target === '' ? 'as routed' : `as routed (${row.target})`,
  });
  const list = h(
    'datalist',
    { id: 'targets' },
    models.map((model) => h('option', { value: model })),
  );
  const repair = h('input', { type: 'checkbox', name: 'repair', checked: true });
  const check = h(
    'label',
    { class: 'field check' },
    repair,
    h('span', null, 'Repair'),
    h('small', null, 'off: nothing is repaired'),
  );
  return {
    nodes: [
      field(
        'Send',
        stage,
        'a client request passes the whole gateway, a vendor request goes to the vendor unchanged',
      ),
      h('div', null, field('To', to, 'provider/model'), list),
      check,
    ],
    read: () => ({
      stage: stage.value,
      to: to.value.trim() === '' ? undefined : to.value.trim(),
      repair: repair.checked ? undefined : false,
    }),
  };
}

/** Links to earlier jobs of this exchange; empty until they are loaded. */
export function earlierJobs({ row }: SampleDetail, kind: JobView['kind']): HTMLElement {
  const box = h('p', { class: 'earlier' });
  void getJobs()
    .then(({ jobs }) => {
      const mine = jobs.filter((job) => job.sample === row.id && job.kind === kind);
      if (mine.length === 0) return;
      const query = filtersOf(currentRoute().query);
      const link = (job: JobView) =>
        h(
          'a',
          {
            href: hashOf({
              name: 'exchange',
              id: row.id,
              tab: kind,
              query: { ...query, job: job.id },
            }),
          },
          `${clock(job.started)} ${stateWords(job.state).toLowerCase()} (${count(job.done)})`,
        );
      replace(box, h('span', { class: 'soft' }, 'Earlier:'), mine.slice(0, 8).map(link));
    })
    // Without the list there are no links; starting a job reports the problem.
    .catch(() => {});
  return box;
}

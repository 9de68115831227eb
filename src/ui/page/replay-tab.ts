/** Sends an exchange again and shows what comes back, beside what came back then. */

import type { Info, JobEvent, ReplayResult, ReplayRun, SampleDetail } from '../api.ts';
import { startReplay } from './api-calls.ts';
import { button, type Child, h, replace } from './dom.ts';
import { failureText } from './fetching.ts';
import { count, millis, percent, several } from './format.ts';
import { cancel, endOf, type Followed, follow, latest, stateWords } from './job.ts';
import { choiceFields, earlierJobs, field } from './job-form.ts';
import { noteTag } from './notes-manual.ts';
import { currentRoute, go, withQuery } from './route.ts';
import type { ExchangeRoute, View } from './view.ts';

export function createReplayTab(detail: SampleDetail, info: Info): View<ExchangeRoute> {
  let followed: Followed | undefined;
  let shown = '';
  const choice = choiceFields(detail, info);
  const repeat = h('input', {
    type: 'number',
    name: 'repeat',
    min: 1,
    max: info.limits.runs,
    value: 1,
  });
  const first = h('input', {
    name: 'compare-a',
    placeholder: 'repair=on',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const second = h('input', {
    name: 'compare-b',
    placeholder: 'repair=off',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const start = h('button', { type: 'submit', class: 'primary' }, 'Replay');
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
    field('Times', repeat),
    h(
      'details',
      { class: 'compare' },
      h('summary', null, 'Compare two settings'),
      h('div', { class: 'fields' }, field('First', first), field('Second', second)),
      h(
        'p',
        { class: 'soft' },
        'Each is KEY=VALUE: profile.shortToolResults=true, profile=NAME, to=provider/model, repair=on, body.temperature=0. Repeat some ten times to tell a difference from chance.',
      ),
    ),
    h('div', { class: 'submit' }, start),
    problem,
  );
  const result = h('div', { class: 'job-result' });
  const node = h(
    'div',
    { class: 'replay-tab' },
    detail.sendable.length === 0
      ? h('p', { class: 'same-words' }, 'Nothing of this exchange can be sent again.')
      : [form, earlierJobs(detail, 'replay')],
    result,
  );

  async function send(): Promise<void> {
    start.disabled = true;
    problem.hidden = true;
    try {
      const settings = [first.value.trim(), second.value.trim()].filter((one) => one !== '');
      const { job } = await startReplay({
        id: detail.row.id,
        ...choice.read(),
        repeat: Number(repeat.value) || 1,
        ...(settings.length > 0 && { compare: settings }),
      });
      const route = currentRoute();
      if (route.name === 'exchange') go(withQuery(route, { job }));
    } catch (thrown) {
      problem.hidden = false;
      replace(problem, failureText(thrown));
    }
    start.disabled = false;
  }

  function draw(job: string, events: readonly JobEvent[], broken: string | undefined): void {
    const runs = events.flatMap((event) => (event.type === 'run' ? [event.run] : []));
    const end = endOf(events);
    const view = latest(events);
    const outcome = end?.result?.kind === 'replay' ? end.result.result : undefined;
    const running = end === undefined && broken === undefined;
    replace(
      result,
      h(
        'p',
        { class: 'progress', role: 'status' },
        running && h('i', { class: 'spinner' }),
        view === undefined
          ? 'Starting'
          : `${stateWords(view.state)}: ${several(view.done, 'request')} of ${count(view.total)}`,
        running &&
          view !== undefined &&
          h('progress', { max: view.total, value: view.done, 'aria-label': 'Requests sent' }),
        running && button('Stop', () => void cancel(job), { class: 'tiny' }),
      ),
      (broken ?? end?.error?.message) !== undefined &&
        h('p', { class: 'problem', role: 'alert' }, broken ?? end?.error?.message),
      outcome !== undefined && comparison(outcome),
      runs.length > 0 && table(runs),
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

const said = (status: number, error: ReplayRun['error']): string =>
  error === null ? String(status) : `${status} ${error.how === 'error' ? error.kind : error.how}`;

function table(runs: readonly ReplayRun[]): HTMLElement {
  const compared = runs.some(({ setting }) => setting !== undefined);
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const num = (...content: Child[]) => h('td', { class: 'num' }, ...content);
  const head = [
    '#',
    compared && 'Setting',
    'Status',
    'Error',
    'Tokens in',
    'out',
    'First byte',
    'Total',
    'Target',
    'Notes',
  ];
  const right = new Set(['#', 'Tokens in', 'out', 'First byte', 'Total']);
  return h(
    'div',
    { class: 'tablebox' },
    h(
      'table',
      { class: 'runs' },
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head.map(
            (text) =>
              text !== false &&
              h('th', { scope: 'col', class: right.has(text) ? 'num' : undefined }, text),
          ),
        ),
      ),
      h(
        'tbody',
        null,
        before !== undefined &&
          h(
            'tr',
            { class: 'recorded', 'data-tone': before.error === null ? 'ok' : 'bad' },
            h('th', { scope: 'row', class: 'num' }, 'then'),
            compared && h('td'),
            h(
              'td',
              null,
              h(
                'span',
                { class: 'pill-status', 'data-tone': before.error === null ? 'ok' : 'bad' },
                said(before.status, before.error),
              ),
            ),
            h('td', { class: 'message' }, before.error?.message ?? ''),
            num(count(before.prompt_tokens)),
            num(count(before.output_tokens)),
            num(),
            num(),
            h('td'),
            h('td'),
          ),
        runs.map((run) =>
          h(
            'tr',
            { 'data-tone': run.error === null ? 'ok' : 'bad' },
            h('th', { scope: 'row', class: 'num' }, run.run),
            compared && h('td', null, run.setting ?? ''),
            h(
              'td',
              null,
              h(
                'span',
                { class: 'pill-status', 'data-tone': run.error === null ? 'ok' : 'bad' },
                said(run.status, run.error),
              ),
            ),
            h('td', { class: 'message' }, run.error?.message ?? ''),
            num(count(run.prompt_tokens)),
            num(count(run.output_tokens)),
            num(millis(run.first_byte_ms)),
            num(millis(run.ms)),
            h('td', null, run.target),
            h(
              'td',
              null,
              run.notes === ''
                ? ''
                : run.notes.split(',').map((note) => noteTag(note.split('=')[0]!)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Failure rates with their intervals, and whether they differ by more than chance. */
function comparison({ settings, p, more_than_chance }: ReplayResult): Child {
  if (settings.every(({ runs }) => runs < 2) && settings.length < 2) return null;
  const part = (rate: number) => `${(rate * 100).toFixed(1)}%`;
  return h(
    'div',
    { class: 'rates' },
    settings.map((one) =>
      h(
        'div',
        { class: 'rate' },
        h('span', { class: 'rate-name' }, one.setting || 'as it is'),
        h(
          'span',
          {
            class: 'rate-bar',
            'aria-hidden': 'true',
            vars: {
              '--rate': part(one.failure_rate),
              '--low': part(one.interval[0]),
              '--high': part(one.interval[1]),
            },
          },
          h('i', { class: 'filled' }),
          h('i', { class: 'interval' }),
        ),
        h(
          'span',
          null,
          h('b', null, `${one.failed} of ${one.runs} failed`),
          ` (${percent(one.failure_rate)}, 95 % interval ${percent(one.interval[0])} to ${percent(one.interval[1])})`,
        ),
        h(
          'span',
          { class: 'soft' },
          `${count(one.prompt_tokens)} tokens in, ${count(one.output_tokens)} out, ${millis(one.ms)}`,
        ),
      ),
    ),
    p !== undefined &&
      h(
        'p',
        { class: more_than_chance === true ? 'verdict sure' : 'verdict' },
        more_than_chance === true
          ? 'The difference is more than chance'
          : 'The difference may be chance: repeat more often to know',
        ` (Fisher’s exact test, p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)}).`,
      ),
  );
}

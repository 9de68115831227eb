/** The replay tab: sends a request again and compares the new answers with the recorded one. */

import type { Info, ReplayResult, ReplayRun, SampleDetail } from '../../api/api.ts';
import { startReplay } from '../kit/api-calls.ts';
import { type Child, h } from '../kit/dom.ts';
import { count, millis, percent, several } from '../kit/format.ts';
import { noteTag } from '../kit/notes-manual.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { field } from './job-form.ts';
import { jobTab } from './job-tab.ts';

/** Answers that are shown in full. */
const ANSWERS = 6;

export function createReplayTab(detail: SampleDetail, info: Info): View<ExchangeRoute> {
  const repeat = h('input', {
    type: 'number',
    name: 'repeat',
    min: 1,
    max: info.limits.runs,
    value: 1,
  });
  const setting = (name: string, placeholder: string) =>
    h('input', { name, placeholder, autocomplete: 'off', spellcheck: 'false' });
  const first = setting('compare-a', 'repair=on');
  const second = setting('compare-b', 'repair=off');
  return jobTab(detail, info, {
    kind: 'replay',
    label: 'Replay',
    fields: [
      field('Repeat', repeat),
      h(
        'details',
        { class: 'compare' },
        h('summary', null, 'Compare two settings'),
        h('div', { class: 'fields' }, field('First', first), field('Second', second)),
        h(
          'p',
          { class: 'soft' },
          'Each is KEY=VALUE: profile.shortToolResults=true, profile=NAME, to=provider/model, repair=on, body.temperature=0. About ten repeats show whether a difference is more than chance.',
        ),
      ),
    ],
    start: (choice) => {
      const settings = [first.value.trim(), second.value.trim()].filter((one) => one !== '');
      return startReplay({
        ...choice,
        repeat: Number(repeat.value) || 1,
        ...(settings.length > 0 && { compare: settings }),
      });
    },
    progress: ({ done, total }, { running }) => [
      `${several(done, 'request')} of ${count(total)}`,
      running && h('progress', { max: total, value: done, 'aria-label': 'Requests sent' }),
    ],
    found: ({ events, end }) => {
      const runs = events.flatMap((event) => (event.type === 'run' ? [event.run] : []));
      return [
        end?.result?.kind === 'replay' && comparison(end.result.result),
        runs.length > 0 && table(runs),
        runs.length > 0 && answers(runs),
      ];
    },
  });
}

const statusText = (status: number, error: ReplayRun['error']): string =>
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
            h('th', { scope: 'row', class: 'num' }, 'recorded'),
            compared && h('td'),
            h(
              'td',
              null,
              h(
                'span',
                { class: 'pill-status', 'data-tone': before.error === null ? 'ok' : 'bad' },
                statusText(before.status, before.error),
              ),
            ),
            h('td', { class: 'message' }, before.error?.message ?? ''),
            num(count(before.prompt_tokens)),
            num(count(before.output_tokens)),
            num(),
            num(millis(before.ms)),
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
                statusText(run.status, run.error),
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

/** The recorded answer and the new answers, side by side. */
function answers(runs: readonly ReplayRun[]): Child {
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const box = (title: string, text: string | null | undefined, error?: ReplayRun['error']) =>
    h(
      'section',
      { class: 'answer' },
      h('h3', null, title),
      text === null || text === undefined
        ? h('p', { class: 'soft' }, error?.message ?? 'No answer')
        : h('pre', { class: 'answer-text', tabindex: 0, dir: 'auto' }, text || '(empty)'),
    );
  const shown = runs.slice(0, ANSWERS);
  return h(
    'div',
    { class: 'answers' },
    before !== undefined && box('Recorded answer', before.answer, before.error),
    shown.map((run) => {
      const setting = run.setting === undefined ? '' : `, ${run.setting}`;
      const same = run.answer !== null && run.answer === before?.answer;
      const title = `Answer ${runs.length > 1 ? run.run : 'now'}${setting}${same ? ' (the same text)' : ''}`;
      return box(title, run.answer, run.error);
    }),
    runs.length > ANSWERS &&
      h('p', { class: 'soft' }, `${runs.length - ANSWERS} more answers are not shown.`),
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

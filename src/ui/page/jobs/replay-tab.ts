/** The replay tab: sends a request again and compares the new answers with the recorded one. */

import type { Info, ReplayRequest, ReplayResult, ReplayRun, SampleDetail } from '../../api/api.ts';
import { cost } from '../exchange/money.ts';
import { planReplay, startReplay } from '../kit/api-calls.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { count, millis, percent, several } from '../kit/format.ts';
import { noteTag } from '../kit/notes-manual.ts';
import { boxedTable } from '../kit/table.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { bench } from './bench.ts';
import { editFields } from './edit-fields.ts';
import { type Choice, field } from './job-form.ts';
import { jobTab } from './job-tab.ts';

/** Targets besides the first. */
const MORE_TARGETS = 5;

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
  const others: HTMLInputElement[] = [];
  const targets = h('div', { class: 'more-targets' });
  const add = button(
    '+ another target',
    () => {
      const input = h('input', {
        name: `to-${others.length + 2}`,
        list: 'targets',
        autocomplete: 'off',
        spellcheck: 'false',
        placeholder: 'provider/model',
      });
      others.push(input);
      targets.insertBefore(field(`To (${others.length + 1})`, input), add);
      add.hidden = others.length >= MORE_TARGETS;
      input.focus();
    },
    { class: 'tiny' },
  );
  targets.append(add);
  const edits = editFields(detail, () =>
    targets.dispatchEvent(new Event('input', { bubbles: true })),
  );
  const request = ({ to, ...choice }: Choice & { readonly id: string }): ReplayRequest => {
    const settings = [first.value.trim(), second.value.trim()].filter((one) => one !== '');
    const more = others.map(({ value }) => value.trim()).filter((one) => one !== '');
    // Beside others, an empty first target is the one that its placeholder names.
    const own = to ?? (more.length > 0 ? detail.row.target : '');
    const all = own === '' ? more : [own, ...more];
    const changed = edits.read();
    return {
      ...choice,
      repeat: Number(repeat.value) || 1,
      ...(all.length === 1 && { to: all[0]! }),
      ...(all.length > 1 && { targets: all }),
      ...(changed.length > 0 && { edits: changed }),
      ...(settings.length > 0 && { compare: settings }),
    };
  };
  return jobTab(detail, info, {
    kind: 'replay',
    label: 'Replay',
    asks: false,
    plan: (choice, signal) => planReplay(request(choice), signal),
    staged: (stage) => edits.show(stage),
    fields: [
      field('Repeat', repeat),
      targets,
      edits.node,
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
    start: (choice) => startReplay(request(choice)),
    progress: ({ done, total }, { running }) => [
      `${several(done, 'request')} of ${count(total)}`,
      running && h('progress', { max: total, value: done, 'aria-label': 'Requests sent' }),
    ],
    found: ({ events, end }) => {
      const runs = events.flatMap((event) => (event.type === 'run' ? [event.run] : []));
      return [
        end?.result?.kind === 'replay' && comparison(end.result.result),
        runs.length > 0 && bench(runs, detail),
        runs.length > 0 && table(runs),
      ];
    },
  });
}

const statusText = (status: number, error: ReplayRun['error']): string =>
  error === null ? String(status) : `${status} ${error.how === 'error' ? error.kind : error.how}`;

/** What came of a run, or of the recorded exchange. */
type RunOutcome = NonNullable<ReplayRun['recorded']>;

function table(runs: readonly ReplayRun[]): HTMLElement {
  const compared = runs.some(({ setting }) => setting !== undefined);
  const before = runs.find(({ recorded }) => recorded !== undefined)?.recorded;
  const num = (...content: Child[]) => h('td', { class: 'num' }, ...content);
  const outcome = (one: RunOutcome): Child => [
    h(
      'td',
      null,
      h(
        'span',
        { class: 'pill-status', 'data-tone': one.error === null ? 'ok' : 'bad' },
        statusText(one.status, one.error),
      ),
    ),
    h('td', { class: 'message' }, one.error?.message ?? ''),
    num(count(one.prompt_tokens)),
    num(count(one.output_tokens)),
    num(millis(one.first_byte_ms)),
    num(millis(one.ms)),
    num(cost(one.cost)),
  ];
  const head = [
    '#',
    compared && 'Setting',
    'Status',
    'Error',
    'Tokens in',
    'out',
    'First byte',
    'Total',
    'Cost',
    'Target',
    'Notes',
  ];
  const right = new Set(['#', 'Tokens in', 'out', 'First byte', 'Total', 'Cost']);
  return boxedTable(
    head.map(
      (text) =>
        text !== false &&
        h('th', { scope: 'col', class: right.has(text) ? 'num' : undefined }, text),
    ),
    [
      before !== undefined &&
        h(
          'tr',
          { class: 'recorded', 'data-tone': before.error === null ? 'ok' : 'bad' },
          h('th', { scope: 'row', class: 'num' }, 'recorded'),
          compared && h('td'),
          outcome(before),
          h('td'),
          h('td'),
        ),
      runs.map((run) =>
        h(
          'tr',
          { 'data-tone': run.error === null ? 'ok' : 'bad' },
          h('th', { scope: 'row', class: 'num' }, run.run),
          compared && h('td', null, run.setting ?? ''),
          outcome(run),
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
    ],
    { class: 'runs' },
  );
}

/** Failure rates with their intervals, and whether they differ by more than chance. */
function comparison({ settings, p, more_than_chance }: ReplayResult): Child {
  if (settings.every(({ runs }) => runs < 2)) return null;
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

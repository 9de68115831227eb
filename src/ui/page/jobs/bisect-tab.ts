/** The bisect tab: searches the smallest request that still fails, and shows the search while it runs. */

import type { Json } from '../../../lib/json/json.ts';
import type { BisectProbe, BisectResult, Info, JobEvent, SampleDetail } from '../../api/api.ts';
import { planBisect, startBisect } from '../kit/api-calls.ts';
import { copyButton } from '../kit/copy-dom.ts';
import { type Child, h } from '../kit/dom.ts';
import { bytes, count, percent } from '../kit/format.ts';
import { jsonTree } from '../kit/json-tree.ts';
import { currentRoute, filtersOf, hashOf } from '../kit/route.ts';
import { boxedTable } from '../kit/table.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { bisectCurve, smallestSoFar } from './bisect-curve.ts';
import { field } from './job-form.ts';
import { jobTab } from './job-tab.ts';

export function createBisectTab(detail: SampleDetail, info: Info): View<ExchangeRoute> {
  const budget = h('input', {
    type: 'number',
    name: 'budget',
    min: 1,
    max: info.limits.budget,
    value: Math.min(20, info.limits.budget),
  });
  return jobTab(detail, info, {
    kind: 'bisect',
    label: 'Bisect',
    lead: 'Sends parts of this request to find the smallest one that still fails in the same way. Every request goes to the vendor and is billed as usual.',
    fields: [field('Request limit', budget)],
    asks: true,
    ...(detail.row.error === '' &&
      detail.row.status < 400 &&
      detail.row.state === 'done' && {
        instead:
          'This exchange did not fail, so there is nothing to look for. Open this to look for a failure that comes and goes.',
      }),
    start: (choice) => startBisect({ ...choice, budget: Number(budget.value) || undefined }),
    plan: (choice, signal) =>
      planBisect({ ...choice, budget: Number(budget.value) || undefined }, signal),
    progress: (view, { events, running }) => {
      const probes = probesOf(events);
      const least = smallestSoFar(probes).at(-1) ?? 0;
      const last = probes.at(-1);
      return [
        `${count(view.done)} of at most ${count(view.total)} requests`,
        least > 0 && `, smallest that fails ${bytes(least)}`,
        running && last !== undefined && h('span', { class: 'soft' }, ` leaving out ${last.phase}`),
      ];
    },
    found: ({ events, end }) => {
      const probes = probesOf(events);
      const notes = events.flatMap((event) => (event.type === 'note' ? [event.text] : []));
      return [
        notes.map((text) => h('p', { class: 'soft' }, text)),
        end?.result?.kind === 'bisect' && outcome(end.result.result),
        probes.length > 0 && [bisectCurve(probes), probeLog(probes)],
      ];
    },
  });
}

const probesOf = (events: readonly JobEvent[]): readonly BisectProbe[] =>
  events.flatMap((event) => (event.type === 'probe' ? [event.probe] : []));

const RESULTS = {
  minimal: 'Nothing more can be left out',
  partial: 'Stopped before the smallest was found: run it again to continue',
  'does-not-fail': 'It no longer fails',
} as const;

function outcome(result: BisectResult): HTMLElement {
  const query = filtersOf(currentRoute().query);
  const sample = (id: string | null, text: string): Child =>
    id !== null &&
    h(
      'a',
      { class: 'button', href: hashOf({ name: 'exchange', id, tab: 'messages', query }) },
      text,
    );
  const { cause, failure } = result;
  const place = (label: string, ...content: Child[]) =>
    h('div', null, h('dt', null, label), h('dd', null, ...content));
  return h(
    'div',
    { class: 'found', 'data-result': result.result },
    h('p', { class: 'words' }, result.words),
    h(
      'dl',
      { class: 'facts' },
      place('Result', RESULTS[result.result]),
      failure !== null &&
        place('Fails with', [failure.kind, failure.message].filter(Boolean).join(': ')),
      result.failure_rate < 1 &&
        result.failure_rate > 0 &&
        place('How often', percent(result.failure_rate)),
      place('Requests', count(result.probes)),
      cause !== null && place('At', h('code', null, cause.at || '/')),
      cause !== null && place('Enough to fail', `${bytes(cause.enough)} of ${bytes(cause.bytes)}`),
    ),
    h(
      'p',
      { class: 'buttons' },
      sample(result.samples.minimal, 'The smallest that fails'),
      sample(result.samples.passing, 'The nearest that passes'),
      copyButton('Copy the smallest', () => JSON.stringify(result.minimal, null, 2), {
        class: 'button',
      }),
    ),
    cause !== null && matters(result.minimal, cause.in_minimal),
    h(
      'details',
      { open: JSON.stringify(result.minimal).length < 4000 },
      h('summary', null, 'The smallest request that fails'),
      jsonTree(result.minimal, {
        depth: 3,
        marks: new Map(cause === null ? [] : [[cause.in_minimal, 'this']]),
      }),
    ),
  );
}

/** The value that makes the request fail, as text. */
function matters(minimal: BisectResult['minimal'], at: string): HTMLElement {
  const value = valueAt(minimal, at);
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return h(
    'section',
    { class: 'matters' },
    h('h3', null, 'The bytes that matter'),
    h('pre', { class: 'answer-text', tabindex: 0, dir: 'auto' }, text),
  );
}

function valueAt(value: Json, pointer: string): Json | undefined {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>(
      (inner, part) =>
        typeof inner === 'object' && inner !== null
          ? (inner as Readonly<Record<string, Json>>)[part]
          : undefined,
      value,
    );
}

const VERDICTS = { same: 'fails', passes: 'passes', other: 'fails differently' } as const;

/** The values of the curve as a table. */
function probeLog(probes: readonly BisectProbe[]): HTMLElement {
  const least = smallestSoFar(probes);
  return h(
    'details',
    { class: 'probelog' },
    h('summary', null, 'All requests as a table'),
    boxedTable(
      ['#', 'Leaving out', 'Result', 'Size', 'Smallest so far'].map((text) =>
        h('th', { scope: 'col' }, text),
      ),
      probes.map((probe, i) =>
        h(
          'tr',
          null,
          h('td', { class: 'num' }, probe.spent),
          h('td', null, probe.phase),
          h('td', null, VERDICTS[probe.verdict]),
          h('td', { class: 'num' }, bytes(probe.bytes)),
          h('td', { class: 'num' }, bytes(least[i]!)),
        ),
      ),
    ),
  );
}

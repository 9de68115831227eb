/** The health of providers, targets and keys: what rests, why and until when, what the vendor says is left, last errors. */

import { type Child, h, replace } from '../kit/dom.ts';
import { count, several, short } from '../kit/format.ts';
import { dataTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import { when } from '../kit/when.ts';
import { adminJson } from './admin-api.ts';
import { emptyState, pageFrame, reloadingView } from './page-frame.ts';

type State = 'serving' | 'no_model' | 'half_open' | 'resting';

interface RestView {
  readonly reason: string;
  readonly status: number;
  readonly since: string;
  readonly until: string;
  readonly probing: boolean;
}

interface Quota {
  readonly kind: string;
  readonly limit: number | null;
  readonly remaining: number;
  readonly resets_at: string | null;
}

interface PlaceView {
  readonly key: string | null;
  readonly state: State;
  readonly rest: RestView | null;
  readonly waiting: number;
  readonly quotas_seen: string | null;
  readonly quotas: readonly Quota[];
  readonly last_failure: {
    readonly time: string;
    readonly status: number;
    readonly kind: string;
    readonly message: string;
  } | null;
}

interface ProviderHealth {
  readonly provider: string;
  readonly protocol: string;
  /** Of the configuration; 0: it needs none. */
  readonly keys: number;
  readonly resting_keys: readonly (RestView & { readonly key: string | null })[];
  readonly targets: readonly {
    readonly target: string;
    readonly state: State;
    readonly rest: RestView | null;
    readonly places: readonly PlaceView[];
  }[];
}

interface Health {
  readonly data: readonly ProviderHealth[];
  readonly workers: number;
}

const RELOAD_AFTER = 3000;

const REASONS: Readonly<Record<string, string>> = {
  rate_limit: 'rate limit of the vendor',
  overloaded: 'the vendor has no capacity',
  key_refused: 'the vendor refuses the key',
  quota: 'plan or balance is used up',
  failures: 'failures in a row',
};

const STATES: Readonly<Record<State, readonly [text: string, tone: string]>> = {
  serving: ['serving', 'ok'],
  no_model: ['no such model', 'warn'],
  half_open: ['being tried again', 'warn'],
  resting: ['resting', 'bad'],
};

export function createHealthPage(): View {
  const frame = pageFrame({
    title: 'Health',
    about:
      'Which vendors are serving, and which are resting and until when. Routing skips a resting vendor while another one can answer.',
  });

  function draw({ data, workers }: Health): void {
    const scrolled = frame.node.closest('.page-pane')?.scrollTop;
    replace(
      frame.body,
      workers > 1 &&
        h(
          'p',
          { class: 'soft admin-filter' },
          `As one of ${count(workers)} processes sees it; each learns for itself.`,
        ),
      data.length === 0
        ? emptyState(
            'No provider is configured',
            h(
              'p',
              null,
              'Requests go to providers. ',
              h(
                'a',
                { href: '/docs/configuration', target: '_blank', rel: 'noopener' },
                'Configure one',
              ),
              '.',
            ),
          )
        : data.map(providerPanel),
    );
    if (scrolled !== undefined) frame.node.closest('.page-pane')!.scrollTop = scrolled;
  }

  return reloadingView(frame, RELOAD_AFTER, async (signal) =>
    draw(await adminJson<Health>('/health', { signal })),
  );
}

/** One line for a key of a target. */
interface Line extends PlaceView {
  readonly target: string;
  readonly targetRest: RestView | null;
  readonly keyRest: RestView | null;
}

function providerPanel({
  provider,
  protocol,
  keys,
  resting_keys,
  targets,
}: ProviderHealth): HTMLElement {
  const lines = targets.flatMap(({ target, rest, places }) =>
    places.map(
      (place): Line => ({
        ...place,
        target: target.slice(provider.length + 1),
        targetRest: rest,
        keyRest: resting_keys.find(({ key }) => key === place.key) ?? null,
      }),
    ),
  );
  // A name that some client made up says nothing of the others.
  const states = targets.map(({ state }) => state).filter((one) => one !== 'no_model');
  const state: State | undefined =
    states.length === 0
      ? targets[0]?.state
      : states.every((one) => one === 'resting')
        ? 'resting'
        : states.every((one) => one === 'serving')
          ? 'serving'
          : 'half_open';
  return h(
    'section',
    { class: 'panel provider', 'aria-label': provider },
    h(
      'header',
      null,
      h('h2', null, provider),
      state === undefined
        ? h('span', { class: 'state' }, 'not used yet')
        : h(
            'span',
            { class: 'state', 'data-tone': STATES[state][1] },
            state === 'half_open' ? 'serving in part' : STATES[state][0],
          ),
      h('span', { class: 'soft' }, protocol),
      h('span', { class: 'soft' }, keys === 0 ? 'needs no key' : several(keys, 'key')),
    ),
    lines.length === 0
      ? h('p', { class: 'soft' }, 'No request has been sent here since the gateway started.')
      : dataTable({
          caption: `Targets of ${provider}`,
          rows: lines,
          columns: [
            { title: 'Model', cell: ({ target }) => target, class: 'wraps' },
            {
              title: 'Key',
              cell: ({ key }) =>
                key === null
                  ? h('span', { class: 'soft' }, 'none')
                  : h('code', { class: 'nowrap' }, key),
            },
            { title: 'State', cell: lineState },
            { title: 'Left at the vendor', cell: quotaCell },
            { title: 'Last error', cell: failureCell, class: 'wide' },
          ],
        }),
  );
}

function lineState({ state, rest, targetRest, keyRest, waiting }: Line): Child {
  const [text, tone] = STATES[state];
  const rests = [rest, targetRest, keyRest].filter((one) => one !== null);
  return [
    h('span', { class: 'state', 'data-tone': tone }, text),
    waiting > 0 && h('span', { class: 'soft' }, ` · ${several(waiting, 'request')} waiting`),
    rests.map((one) =>
      h(
        'div',
        { class: 'soft small' },
        REASONS[one.reason] ?? one.reason,
        one.status > 0 && ` (${one.status})`,
        one.probing ? ', one request is trying it' : [', until ', when(one.until)],
      ),
    ),
  ];
}

const KINDS: Readonly<Record<string, string>> = {
  requests: 'requests',
  tokens: 'tokens',
  input_tokens: 'input tokens',
  output_tokens: 'output tokens',
  all: 'of its limit',
};

function quotaCell({ quotas, quotas_seen }: Line): Child {
  if (quotas_seen === null) return h('span', { class: 'soft' }, 'not said');
  return [
    quotas.map(({ kind, limit, remaining, resets_at }) =>
      h(
        'div',
        { class: 'quota', 'data-low': limit !== null && remaining < limit / 10 ? '' : undefined },
        h('b', null, short(remaining)),
        limit !== null && ` of ${short(limit)}`,
        ` ${KINDS[kind] ?? kind}`,
        resets_at !== null &&
          Date.parse(resets_at) > Date.now() &&
          h('span', { class: 'soft' }, ', whole ', when(resets_at)),
      ),
    ),
    h('div', { class: 'soft small' }, 'seen ', when(quotas_seen)),
  ];
}

function failureCell({ last_failure: failure }: Line): Child {
  if (failure === null) return h('span', { class: 'soft' }, 'none');
  const { time, status, kind, message } = failure;
  return [
    h('div', { class: 'wraps' }, message),
    h('div', { class: 'soft small' }, when(time), `, ${status > 0 ? `${status} ` : ''}${kind}`),
  ];
}

/** The first tab: what was asked and what was answered, side by side; "v" shows both as the vendor saw them. */

import type { ConversationView, Info, SampleDetail, TurnView } from '../../api/api.ts';
import { getConversation } from '../kit/api-calls.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { count, millis, several, worded } from '../kit/format.ts';
import { highlight } from '../kit/highlight.ts';
import { jsonTree } from '../kit/json-tree.ts';
import { currentRoute, go, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { allTurns, answerBlocks, oneTurn, systemBlocks, type Told, tools } from './conversation.ts';
import { picturesOf } from './picture.ts';
import { stageInfoOf } from './stages.ts';
import { totalInput, totalOutput } from './usage.ts';

/** Milliseconds between two loads of the answer while it grows. */
const RELOAD_AFTER = 700;
/** Characters of each text. */
const TEXT = 60_000;

export function createTalkTab(detail: SampleDetail, _info: Info): View<ExchangeRoute> {
  const { meta, row } = detail;
  const stop = new AbortController();
  const { signal } = stop;
  let shown = '';
  let words = '';
  let timer = 0;
  const asked = h('section', { class: 'speaker', 'aria-label': 'Asked' });
  const answered = h('section', { class: 'speaker', 'aria-label': 'Answered' });
  const bar = h('div', { class: 'bar talk-bar' });
  const halves = h('div', { class: 'speakers' }, asked, answered);
  const node = h('div', { class: 'talk-tab' }, bar, halves);

  const toldOf = (stage: string): Told => ({
    notes: meta.notes,
    again: (chars) => getConversation(row.id, stage, chars),
    pictures: picturesOf(row.id, stage, signal),
    q: words,
  });

  async function drawAsked(stage: string): Promise<void> {
    if (stageInfoOf(meta, stage) === undefined) {
      replace(asked, h('p', { class: 'soft' }, 'The request was not recorded.'));
      return;
    }
    const view = await getConversation(row.id, stage, TEXT, signal);
    replace(asked, question(view, toldOf(stage)));
  }

  async function drawAnswered(stage: string | undefined): Promise<void> {
    const running = row.state === 'open';
    if (stage === undefined || stageInfoOf(meta, stage) === undefined) {
      replace(
        answered,
        heading('Answered'),
        running ? waiting(row.time) : missing(meta.error?.message),
      );
    } else {
      const view = await getConversation(row.id, stage, TEXT, signal);
      replace(answered, answer(view, detail, toldOf(stage)), running && waiting(row.time));
    }
    if (running) timer = window.setTimeout(() => void again(stage), RELOAD_AFTER);
  }

  /** The answer of a running exchange grows; what has not begun is looked for by the page itself. */
  async function again(stage: string | undefined): Promise<void> {
    await drawAnswered(stage).catch(() => {});
  }

  async function fill(vendor: boolean, q: string): Promise<void> {
    clearTimeout(timer);
    words = q;
    halves.setAttribute('aria-busy', 'true');
    const last = detail.hops.at(-1)?.tries.at(-1);
    const stages = vendor
      ? { request: last?.request ?? '', response: last?.response ?? undefined }
      : { request: 'client-request', response: 'client-response' };
    const parts = await Promise.allSettled([
      drawAsked(stages.request),
      drawAnswered(stages.response),
    ]);
    if (signal.aborted) return;
    for (const [i, part] of parts.entries()) {
      if (part.status === 'fulfilled') continue;
      const problem = failureText(part.reason);
      if (problem === undefined) continue;
      replace([asked, answered][i]!, h('p', { class: 'problem', role: 'alert' }, problem));
    }
    halves.removeAttribute('aria-busy');
    highlight(halves, q, true);
  }

  const toggle = () => {
    const route = currentRoute();
    if (route.name !== 'exchange') return;
    go(withQuery(route, { as: route.query.as === 'vendor' ? '' : 'vendor' }), true);
  };

  return {
    node,
    show(route) {
      const vendor = route.query.as === 'vendor';
      const q = route.query.q ?? '';
      const next = `${vendor} ${q}`;
      if (next === shown) return;
      shown = next;
      replace(
        bar,
        h(
          'div',
          { class: 'segments', role: 'group', 'aria-label': 'Side' },
          button('As the client sent it', () => vendor && toggle(), {
            'aria-pressed': String(!vendor),
          }),
          button('As the vendor got it', () => vendor || toggle(), {
            'aria-pressed': String(vendor),
            'aria-keyshortcuts': 'v',
          }),
        ),
      );
      void fill(vendor, q);
    },
    press(event) {
      if (event.key !== 'v') return false;
      toggle();
      return true;
    },
    close: () => {
      stop.abort();
      clearTimeout(timer);
    },
  };
}

const heading = (text: string, ...more: Child[]) =>
  h('header', { class: 'speaker-head' }, h('h2', null, text), ...more);

const missing = (problem: string | undefined): Child =>
  problem === undefined
    ? h('p', { class: 'soft' }, 'The answer was not recorded.')
    : h('p', { class: 'banner', role: 'note' }, problem);

function waiting(since: number): HTMLElement {
  const elapsed = Math.max(0, Date.now() - since);
  return h(
    'p',
    { class: 'growing', role: 'status' },
    h('i', { class: 'dot' }),
    `running for ${millis(elapsed)}`,
  );
}

function question(view: ConversationView, told: Told): Child {
  const from = newFrom(view.turns);
  const earlier = view.turns.slice(0, from);
  const system = view.system.reduce(
    (sum, one) => sum + ('text' in one ? (one.chars ?? one.text.length) : 0),
    0,
  );
  return [
    heading('Asked', h('span', { class: 'soft' }, view.model)),
    view.problem !== null && h('p', { class: 'banner', role: 'note' }, view.problem.message),
    settings(view.settings as Readonly<Record<string, unknown>>),
    view.system.length > 0 &&
      folded(['System prompt', `${count(system)} characters`], () =>
        h('div', { class: 'said' }, systemBlocks(view.system, told)),
      ),
    tools(view.tools),
    earlier.length > 0 &&
      folded([several(earlier.length, 'earlier turn'), 'said before this exchange'], () =>
        allTurns(earlier, told),
      ),
    view.turns.slice(from).map((turn, i) => oneTurn(turn, from + i, told)),
  ];
}

/**
 * The first turn that this exchange is about: after the last answer, but with the calls whose results the
 * request brings.
 */
function newFrom(turns: readonly TurnView[]): number {
  const last = turns.findLastIndex(({ role }) => role === 'assistant');
  const brings = turns
    .slice(last + 1)
    .some(({ blocks }) => blocks.some(({ type }) => type === 'tool-result'));
  if (!brings) return last + 1;
  let from = last;
  while (from > 0 && turns[from - 1]!.role === 'assistant') from--;
  return Math.max(0, from);
}

/** Its content is drawn when it is opened for the first time. */
function folded([title, about]: readonly [string, string], draw: () => HTMLElement): HTMLElement {
  let drawn = false;
  const node: HTMLDetailsElement = h(
    'details',
    {
      class: 'folded',
      on: {
        toggle: () => {
          if (!node.open || drawn) return;
          drawn = true;
          node.append(draw());
        },
      },
    },
    h('summary', null, h('b', null, title), h('span', { class: 'soft' }, ` ${about}`)),
  );
  return node;
}

function settings(all: Readonly<Record<string, unknown>>): Child {
  const { rest, stream, ...named } = all;
  const plain = Object.entries(named).filter(([, value]) => typeof value !== 'object');
  const deep = {
    ...Object.fromEntries(Object.entries(named).filter(([, value]) => typeof value === 'object')),
    ...(typeof rest === 'object' && rest),
  };
  return [
    h(
      'p',
      { class: 'talk-facts' },
      stream === true && h('span', { class: 'setting' }, 'streamed'),
      plain.map(([name, value]) =>
        h('span', { class: 'setting' }, `${worded(name)} `, h('b', null, String(value))),
      ),
    ),
    Object.keys(deep).length > 0 &&
      folded(['Other parameters', Object.keys(deep).map(worded).join(', ')], () =>
        jsonTree(deep as never, { depth: 2 }),
      ),
  ];
}

const FINISHES: Readonly<Record<string, string>> = {
  stop: 'ended by itself',
  length: 'cut at the token limit',
  'tool-calls': 'asks for tools',
  tool_calls: 'asks for tools',
  'tool-use': 'asks for tools',
  refusal: 'refused',
  'content-filter': 'stopped by a filter',
};

function answer(view: ConversationView, { row }: SampleDetail, told: Told): Child {
  const blocks = view.turns.flatMap((turn) => turn.blocks);
  const { finish, usage } = view;
  return [
    heading(
      'Answered',
      h(
        'span',
        { class: 'soft' },
        [
          finish === null ? '' : (FINISHES[finish] ?? finish),
          usage === null ? '' : `${count(totalInput(usage))} → ${count(totalOutput(usage))} tokens`,
          row.total_ms === null ? '' : millis(row.total_ms),
        ]
          .filter((part) => part !== '')
          .join(' · '),
      ),
    ),
    view.problem !== null &&
      h(
        'div',
        { class: 'banner', role: 'note' },
        h('b', null, [view.problem.status, view.problem.kind].filter(Boolean).join(' ')),
        h('span', { class: 'said' }, view.problem.message),
      ),
    !view.complete &&
      view.problem === null &&
      row.state !== 'open' &&
      h('p', { class: 'soft' }, 'The answer is not complete.'),
    h('div', { class: 'said answer' }, answerBlocks(blocks, told)),
  ];
}

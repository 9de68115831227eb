/** One session: its conversations turn by turn, with tokens, cost and cache of each, and all of it on one time line. */

import type { SessionStep, SessionView } from '../../api/api.ts';
import { answerBlocks, oneTurn } from '../exchange/conversation.ts';
import { cost } from '../exchange/money.ts';
import { getConversation, getSession } from '../kit/api-calls.ts';
import { copyButton } from '../kit/copy-dom.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { clock, count, day, millis, percent, several, short } from '../kit/format.ts';
import { hashOf } from '../kit/route.ts';
import type { View } from '../kit/view.ts';
import { statusLabel, toneOf } from '../list/status.ts';
import { moveFocus } from './move-focus.ts';
import { timeLine } from './time-line.ts';

/** Milliseconds between two loads while an exchange of the session runs. */
const RELOAD_AFTER = 1500;

export function createSessionPage(id: string): View {
  const stop = new AbortController();
  let timer = 0;
  let thread: number | undefined;
  let view: SessionView | undefined;
  let shown = '';
  const head = h('header', { class: 'session-head' });
  const steps = h('div', { class: 'steps' });
  const node = h(
    'section',
    { class: 'session-page', 'aria-label': `Session ${id}`, 'aria-busy': 'true' },
    head,
    steps,
  );

  const choose = (next: number | undefined) => {
    thread = next;
    shown = '';
    draw();
  };
  const goTo = (exchange: string) => {
    if (thread !== undefined) choose(undefined);
    const step = node.querySelector<HTMLElement>(`#step-${exchange}`);
    step?.scrollIntoView({ block: 'start' });
    step?.querySelector('a')?.focus({ preventScroll: true });
  };

  function draw(): void {
    if (view === undefined) return;
    const { threads } = view;
    replace(
      head,
      h(
        'div',
        { class: 'headline' },
        h('a', { class: 'back', href: '#/sessions', 'aria-label': 'All sessions' }, '←'),
        h('h1', null, title(view)),
        h(
          'a',
          { class: 'button', href: hashOf({ name: 'list', query: { session: id } }) },
          'As a list',
        ),
      ),
      h(
        'p',
        { class: 'idline' },
        h('code', null, id),
        copyButton('copy', () => id, { class: 'tiny', 'aria-label': 'Copy the id' }),
      ),
      facts(view),
      threads.length > 1 &&
        h(
          'div',
          { class: 'threads', role: 'group', 'aria-label': 'Conversations' },
          button('All', () => choose(undefined), { 'aria-pressed': String(thread === undefined) }),
          threads.map((one, i) =>
            button(
              [
                h('i', { class: 'thread-mark', 'data-thread': i % 6 }),
                `${i === 0 ? 'Main' : `Side ${i}`}: ${one.title || '–'} `,
                h('small', null, count(one.exchanges)),
              ],
              () => choose(i),
              { 'aria-pressed': String(thread === i), title: one.title },
            ),
          ),
        ),
      timeLine(view, goTo),
    );
    replace(
      steps,
      view.steps
        .filter((step) => thread === undefined || step.thread === thread)
        .map((step) => drawStep(step, threads.length > 1)),
      view.more &&
        h('p', { class: 'soft' }, `Only the first ${view.steps.length} exchanges are shown here.`),
    );
  }

  async function load(): Promise<void> {
    try {
      view = await getSession(id, stop.signal);
      const now = JSON.stringify(view);
      if (now !== shown) draw();
      shown = now;
      if (view.steps.some(({ row }) => row.state === 'open')) {
        timer = window.setTimeout(() => void load(), RELOAD_AFTER);
      }
    } catch (thrown) {
      const problem = failureText(thrown);
      if (problem !== undefined) {
        replace(
          steps,
          h('p', { class: 'problem', role: 'alert' }, problem),
          h('a', { href: '#/sessions' }, 'All sessions'),
        );
      }
    }
    node.removeAttribute('aria-busy');
  }
  void load();
  return {
    node,
    show: () => {},
    press: ({ key }) => moveFocus(node.querySelectorAll<HTMLElement>('.step'), key),
    close: () => {
      stop.abort();
      clearTimeout(timer);
    },
  };
}

function title({ steps }: SessionView): string {
  const row = steps[0]?.row;
  if (row === undefined) return 'Session';
  return `${row.client || 'Session'} · ${day(row.time)} ${clock(row.time)}`;
}

const fact = (name: string, ...value: Child[]) =>
  h('div', null, h('dt', null, name), h('dd', null, ...value));

function facts({ steps, totals }: SessionView): HTMLElement {
  const first = steps[0]?.row.time ?? 0;
  const last = Math.max(...steps.map(({ row }) => row.time + (row.total_ms ?? 0)));
  const lost = steps.filter(({ cache }) => cache?.lost != null);
  const tokensLost = lost.reduce((sum, { cache }) => sum + cache!.lost!.tokens, 0);
  const tones = steps.map(({ row }) => toneOf(row));
  const failed = tones.filter((tone) => tone === 'bad').length;
  const retried = tones.filter((tone) => tone === 'warn').length;
  const owner = steps[0]?.row.owner ?? '';
  return h(
    'dl',
    { class: 'facts' },
    fact('Exchanges', count(steps.length)),
    failed > 0 && fact('Failed', count(failed)),
    retried > 0 && fact('Retried', count(retried)),
    fact('Time', millis(last - first)),
    fact('Tokens', count(totals.input_tokens), ' → ', count(totals.output_tokens)),
    totals.input_tokens > 0 &&
      fact('From the cache', percent(totals.cached_tokens / totals.input_tokens)),
    lost.length > 0 &&
      fact('Cache lost', `${several(lost.length, 'time')}, ${short(tokensLost)} tokens`),
    totals.cost !== null && fact('Cost', cost(totals.cost)),
    owner !== '' && fact('Key', owner),
  );
}

function drawStep(step: SessionStep, many: boolean): HTMLElement {
  const { row, added, answered, cache, problem } = step;
  const [status, text] = statusLabel(row);
  const link = hashOf({
    name: 'exchange',
    id: row.id,
    tab: 'talk',
    query: { session: row.session },
  });
  const again = (stage: string) => (chars: number) => getConversation(row.id, stage, chars);
  return h(
    'article',
    {
      class: 'step',
      id: `step-${row.id}`,
      'data-thread': many ? step.thread % 6 : null,
      'data-tone': toneOf(row),
      'aria-label': `Exchange at ${clock(row.time)}`,
    },
    h(
      'header',
      { class: 'step-head' },
      h('a', { href: link }, clock(row.time)),
      h('i', { class: 'dot' }),
      h('span', { class: 'target' }, row.target || row.model),
      (row.status !== 200 || text !== '') && h('b', { class: 'step-status' }, `${status} ${text}`),
      h('span', null, millis(row.total_ms)),
      row.input_tokens !== null &&
        h('span', null, `${short(row.input_tokens)} in, ${short(row.output_tokens)} out`),
      cache !== null && h('span', { class: 'cache' }, `${percent(cache.share)} from the cache`),
      row.cost !== null && h('span', null, cost(row.cost)),
    ),
    cache?.lost != null &&
      h(
        'p',
        { class: 'cache-lost', 'data-change': cache.lost.change },
        h('b', null, `The cache of ${short(cache.lost.tokens)} tokens was not used. `),
        cache.lost.text,
      ),
    added.map((turn) => oneTurn(turn, turn.index, { again: again('client-request') })),
    answered.length > 0 &&
      h(
        'section',
        { class: 'turn', 'data-role': 'assistant', 'aria-label': 'answer' },
        h('div', { class: 'who' }, h('b', null, 'assistant')),
        h('div', { class: 'said' }, answerBlocks(answered, { again: again('client-response') })),
      ),
    problem !== null && h('p', { class: 'problem' }, problem),
  );
}

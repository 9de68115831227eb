/** The list of sessions: who worked when, on which models, at what cost, with how much of it from the cache. */

import type { SessionRow } from '../../api/api.ts';
import { cost } from '../exchange/money.ts';
import { getSessions, getStories } from '../kit/api-calls.ts';
import { h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { clock, count, day, millis, percent, short } from '../kit/format.ts';
import { hashOf } from '../kit/route.ts';
import type { View } from '../kit/view.ts';
import { moveFocus } from './move-focus.ts';

export function createSessionsPage(): View {
  const stop = new AbortController();
  const body = h('div', { class: 'sessions-body', 'aria-busy': 'true' });
  const node = h(
    'section',
    { class: 'sessions-page', 'aria-label': 'Sessions' },
    h('h1', null, 'Sessions'),
    body,
  );
  const load = async () => {
    try {
      const { sessions } = await getSessions(stop.signal);
      replace(body, sessions.length === 0 ? none() : list(sessions));
      void tell(sessions, body, stop.signal);
    } catch (thrown) {
      const problem = failureText(thrown);
      if (problem !== undefined) {
        replace(body, h('p', { class: 'problem', role: 'alert' }, problem));
      }
    }
    body.removeAttribute('aria-busy');
  };
  void load();
  return {
    node,
    show: () => {},
    press: ({ key }) => moveFocus(node.querySelectorAll<HTMLElement>('.session-card'), key),
    close: () => stop.abort(),
  };
}

const none = () =>
  h(
    'div',
    { class: 'blank' },
    h('h2', null, 'No sessions yet'),
    h(
      'p',
      null,
      'Agents such as Claude Code and Codex send the id of their session with each request. Their exchanges appear here as one conversation.',
    ),
  );

/** Sessions whose first words are asked for, and of one request. */
const MAX_TOLD = 200;
const BATCH = 25;

/** Puts into each card what its session began with. */
async function tell(
  sessions: readonly SessionRow[],
  body: HTMLElement,
  signal: AbortSignal,
): Promise<void> {
  const cards = new Map(
    [...body.querySelectorAll<HTMLElement>('[data-first]')].map((one) => [one.dataset.first, one]),
  );
  try {
    for (let at = 0; at < Math.min(sessions.length, MAX_TOLD); at += BATCH) {
      const ids = sessions.slice(at, at + BATCH).map(({ first }) => first);
      const { stories } = await getStories(ids, signal);
      for (const { id, asked } of stories) if (asked !== '') replace(cards.get(id)!, asked);
    }
  } catch {
    // The cards stand without their first words.
  }
}

const list = (sessions: readonly SessionRow[]) =>
  h(
    'ol',
    { class: 'session-cards' },
    sessions.map((one) => h('li', null, card(one))),
  );

function card(one: SessionRow): HTMLElement {
  const { totals } = one;
  const fact = (name: string, value: string) => h('span', null, h('b', null, value), ` ${name}`);
  return h(
    'a',
    { class: 'session-card', href: hashOf({ name: 'session', id: one.id, query: {} }) },
    h(
      'span',
      { class: 'session-title' },
      h('b', null, one.client || 'Session'),
      one.key !== '' && h('span', { class: 'by' }, `key ${one.key}`),
      h('code', null, one.id),
    ),
    h(
      'span',
      { class: 'soft when' },
      `${day(one.from)} ${clock(one.from)}, ${millis(one.until - one.from)}`,
    ),
    h('span', { class: 'begins', 'data-first': one.first }),
    h('span', { class: 'soft models' }, one.models.join(', ')),
    h(
      'span',
      { class: 'session-facts' },
      fact(one.exchanges === 1 ? 'exchange' : 'exchanges', count(one.exchanges)),
      one.failed > 0 && h('span', { class: 'problem' }, `${count(one.failed)} failed`),
      one.retried > 0 && fact('retried', count(one.retried)),
      fact('in', short(totals.input_tokens)),
      fact('out', short(totals.output_tokens)),
      totals.input_tokens > 0 &&
        fact('cached', percent(totals.cached_tokens / totals.input_tokens)),
      totals.cost !== null && h('b', null, cost(totals.cost)),
    ),
  );
}

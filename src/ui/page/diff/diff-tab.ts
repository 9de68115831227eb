/** The diff tab: changes between any two bodies of an exchange, and the rule behind each. */

import type { ChangeView, DiffView, MeaningDiff, SampleDetail } from '../../api/api.ts';
import { parsedBody } from '../exchange/bodies.ts';
import { inOrder, isStream, stageInfoOf, stageSelect, stageTitle } from '../exchange/stages.ts';
import { getDiff } from '../kit/api-calls.ts';
import { button, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { count, several } from '../kit/format.ts';
import { meaningOf, noteLink } from '../kit/notes-manual.ts';
import { currentRoute, go, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { diffRows } from './diff-rows.ts';
import { changeList, diffLines } from './diff-view.ts';
import { meaningView } from './meaning-view.ts';

/** What is shown: what both sides say, or their JSON. */
type Picture = 'meaning' | 'side' | 'list';
const PICTURES = [
  ['meaning', 'Meaning'],
  ['side', 'JSON side by side'],
  ['list', 'List'],
] as const;

/** Two protocols write everything differently: there, what they say is the better picture. */
function pictureOf(as: string, { meaning, identical }: DiffView): Picture {
  const chosen = PICTURES.find(([value]) => value === as)?.[0];
  if (identical || meaning === null) return chosen === 'list' ? 'list' : 'side';
  return chosen ?? (meaning.translated ? 'meaning' : 'side');
}

/** Changes without a note, such as those that codecs make between protocols. */
const UNNAMED = '';

export function createDiffTab(detail: SampleDetail): View<ExchangeRoute> {
  const { meta, row } = detail;
  const stages = inOrder(meta).map(({ stage }) => stage);
  const bar = h('div', { class: 'bar' });
  const rules = h('div', { class: 'rulebar' });
  const content = h('div', { class: 'content' });
  const node = h('div', { class: 'diff-tab' }, bar, rules, content);
  let shown = '';
  let current = -1;
  let stop = new AbortController();
  let picture: Picture = 'side';

  const known = (stage: string | undefined, fallback: string | undefined) =>
    stages.find((one) => one === stage) ?? fallback ?? stages[0] ?? '';
  const pairOf = ({ query }: ExchangeRoute) => ({
    a: known(query.a, detail.diff?.a),
    b: known(query.b, detail.diff?.b ?? stages.at(-1)),
  });

  async function load(a: string, b: string, as: string): Promise<void> {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    content.setAttribute('aria-busy', 'true');
    try {
      const diff = await getDiff(row.id, a, b, signal);
      const side = (stage: string) => {
        const stageInfo = stageInfoOf(meta, stage);
        return parsedBody(row.id, stage, stageInfo !== undefined && isStream(stageInfo), signal);
      };
      if (signal.aborted) return;
      picture = pictureOf(as, diff);
      showPicture();
      const values =
        picture !== 'side' || diff.identical || diff.changes.length < diff.total
          ? undefined
          : (await Promise.all([side(a), side(b)])).map(({ value }) => value);
      if (signal.aborted) return;
      if (picture === 'meaning' && diff.meaning !== null) {
        drawMeaning(diff.meaning);
        return;
      }
      draw(
        diff,
        values?.[0] !== undefined && values[1] !== undefined
          ? diffLines(diffRows(values[0], values[1], diff.changes))
          : changeList(diff.changes),
      );
    } catch (thrown) {
      const text = failureText(thrown);
      if (text !== undefined) replace(content, h('p', { class: 'problem', role: 'alert' }, text));
    }
    content.removeAttribute('aria-busy');
  }

  function drawMeaning(meaning: MeaningDiff): void {
    current = -1;
    const changes = meaning.parts.flatMap((part) => part.changes);
    replace(
      rules,
      h('span', { class: 'counts', role: 'status' }, several(changes.length, 'difference')),
      [...tally(changes)].map(([rule, times]) => ruleButton(rule, times)),
    );
    replace(content, meaningView(meaning));
    content.removeAttribute('aria-busy');
    const route = currentRoute();
    if (route.name === 'exchange') mark(route.query.rule);
  }

  function showPicture(): void {
    for (const one of bar.querySelectorAll<HTMLElement>('[data-as]')) {
      one.setAttribute('aria-pressed', String(one.dataset.as === picture));
    }
  }

  function draw(diff: DiffView, picture: HTMLElement): void {
    current = -1;
    const byRule = tally(diff.changes);
    replace(
      rules,
      h('span', { class: 'counts', role: 'status' }, summary(diff)),
      [...byRule].map(([rule, times]) => ruleButton(rule, times)),
    );
    const only = diff.identical || diff.changes.length === 0;
    replace(
      content,
      only &&
        h(
          'p',
          { class: 'same-words' },
          diff.identical ? 'Byte for byte the same.' : 'The same values, written differently.',
        ),
      diff.changes.length < diff.total &&
        h(
          'p',
          { class: 'soft' },
          `The first ${count(diff.changes.length)} of ${count(diff.total)} changes.`,
        ),
      !only && picture,
    );
    const route = currentRoute();
    if (route.name === 'exchange') mark(route.query.rule);
  }

  function ruleButton(rule: string, times: number): HTMLElement {
    const name = rule === UNNAMED ? 'no rule noted' : rule;
    const node = button(
      [name, h('b', null, ` ${times}`)],
      () => {
        const route = currentRoute();
        if (route.name !== 'exchange') return;
        go(withQuery(route, { rule: route.query.rule === rule ? '' : rule }), true);
      },
      { class: 'rule', 'data-rule': rule, 'aria-pressed': 'false' },
    );
    if (rule === UNNAMED) {
      node.disabled = true;
      return node;
    }
    void meaningOf(rule).then((text) => {
      if (text !== undefined) node.title = text;
    });
    return h(
      'span',
      { class: 'ruleset' },
      node,
      h(
        'a',
        {
          href: noteLink(rule),
          target: '_blank',
          rel: 'noopener',
          'aria-label': `${rule} in the manual`,
        },
        '?',
      ),
    );
  }

  /** Highlights the changes of one rule and scrolls to the first. */
  function mark(rule: string | undefined): void {
    for (const one of rules.querySelectorAll<HTMLElement>('.rule')) {
      if (one.dataset.rule !== '')
        one.setAttribute('aria-pressed', String(one.dataset.rule === rule));
    }
    const marked = rule === undefined ? [] : changesOf(rule);
    for (const one of content.querySelectorAll('.picked')) one.classList.remove('picked');
    for (const one of marked) one.classList.add('picked');
    marked[0]?.scrollIntoView({ block: 'center' });
  }

  const changesOf = (rule?: string): HTMLElement[] =>
    [...content.querySelectorAll<HTMLElement>('[data-change],.changelist > li')].filter(
      (one) => rule === undefined || (one.dataset.rules ?? '').split(' ').includes(rule),
    );

  function step(by: 1 | -1): void {
    const { query } = currentRoute();
    const all = changesOf(query.rule);
    if (all.length === 0) return;
    current = Math.max(0, Math.min(all.length - 1, current + by));
    const target = all[current]!;
    for (const one of content.querySelectorAll('.here')) one.classList.remove('here');
    target.classList.add('here');
    target.scrollIntoView({ block: 'center' });
  }

  return {
    node,
    show(route) {
      const { a, b } = pairOf(route);
      const as = route.query.as ?? '';
      const next = JSON.stringify([a, b, as]);
      if (next === shown) {
        mark(route.query.rule);
        return;
      }
      shown = next;
      const choose = (name: 'a' | 'b') => (stage: string) =>
        go(withQuery(route, { a, b, rule: '', [name]: stage }), true);
      replace(
        bar,
        h(
          'span',
          { class: 'pickers' },
          stageSelect('From', stages, a, choose('a')),
          h('span', { 'aria-hidden': 'true' }, '→'),
          stageSelect('To', stages, b, choose('b')),
          button('⇄', () => go(withQuery(route, { a: b, b: a, rule: '' }), true), {
            class: 'tiny',
            'aria-label': 'Swap both sides',
          }),
        ),
        h('h2', { class: 'sr' }, `${stageTitle(a)} against ${stageTitle(b)}`),
        h(
          'span',
          { class: 'segments', role: 'group', 'aria-label': 'View' },
          PICTURES.map(([value, text]) =>
            button(text, () => go(withQuery(route, { as: value }), true), {
              'data-as': value,
              'aria-pressed': 'false',
            }),
          ),
        ),
        h(
          'span',
          { class: 'stepper' },
          button('↑', () => step(-1), { 'aria-label': 'Previous change (p)', class: 'tiny' }),
          button('↓', () => step(1), { 'aria-label': 'Next change (n)', class: 'tiny' }),
        ),
      );
      void load(a, b, as);
    },
    press(event) {
      if (event.key === 'v') {
        const route = currentRoute();
        if (route.name !== 'exchange') return false;
        go(withQuery(route, { as: picture === 'meaning' ? 'side' : 'meaning' }), true);
        return true;
      }
      if (event.key !== 'n' && event.key !== 'p') return false;
      step(event.key === 'n' ? 1 : -1);
      return true;
    },
    close: () => stop.abort(),
  };
}

function tally(changes: readonly Pick<ChangeView, 'rules'>[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const { rules } of changes) {
    for (const rule of rules.length === 0 ? [UNNAMED] : rules)
      all.set(rule, (all.get(rule) ?? 0) + 1);
  }
  return new Map([...all].sort((x, y) => y[1] - x[1]));
}

function summary({ changes, total, identical }: DiffView): string {
  if (identical) return 'no change';
  const of = (kind: ChangeView['kind']) => changes.filter((change) => change.kind === kind).length;
  const parts = [
    ['added', of('added')],
    ['removed', of('removed')],
    ['changed', of('changed')],
  ] as const;
  const text = parts
    .filter(([, times]) => times > 0)
    .map(([word, times]) => `${count(times)} ${word}`);
  return text.length === 0 ? several(total, 'change') : text.join(', ');
}

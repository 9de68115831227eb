/** The audit: who changed which key, what changed, and whether the chain of entries is whole. */

import { copyButton } from '../kit/copy.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { count, several } from '../kit/format.ts';
import { currentRoute, go, hashOf } from '../kit/route.ts';
import { dataTable } from '../kit/table.ts';
import type { View } from '../kit/view.ts';
import { minuteOf, when } from '../kit/when.ts';
import { adminJson } from './admin-api.ts';
import { emptyState, pageFrame } from './page-frame.ts';
import { changesBetween, type Fields } from './value-changes.ts';

interface AuditEntry {
  readonly seq: number;
  readonly time: string;
  readonly actor: string;
  readonly action: string;
  /** The id of a key. */
  readonly target: string;
  readonly before: Fields | null;
  readonly after: Fields | null;
  readonly hash: string;
}

interface AuditPageData {
  readonly data: readonly AuditEntry[];
  readonly next: number | null;
}

interface ChainReport {
  readonly valid: boolean;
  readonly entries: number;
  readonly head: string;
  readonly fault: string | null;
}

const ON_PAGE = 100;

const ACTIONS: Readonly<Record<string, string>> = {
  'key.create': 'made a key',
  'key.update': 'changed a key',
  'key.rotate': 'rotated a key',
  'key.revoke': 'revoked a key',
};

export function createAuditPage(): View {
  const chain = h('p', { class: 'chain', role: 'status' });
  const frame = pageFrame({
    title: 'Audit',
    about: 'Every change to a key, and who made it. Each entry seals the one before it.',
  });
  let entries: readonly AuditEntry[] = [];
  let next: number | null = null;
  let shown: string | undefined;

  const page = (key: string, before: number | undefined, signal: AbortSignal) =>
    adminJson<AuditPageData>('/audit', { query: { limit: ON_PAGE, key, before }, signal });

  const load = (key: string) =>
    frame.run(async (signal) => {
      const [found, report] = await Promise.all([
        page(key, undefined, signal),
        adminJson<ChainReport>('/audit/verify', { signal }),
      ]);
      entries = found.data;
      next = found.next;
      replace(chain, chainLine(report));
      draw(key);
    });

  const more = (key: string) =>
    frame.run(async (signal) => {
      const found = await page(key, next ?? undefined, signal);
      entries = [...entries, ...found.data];
      next = found.next;
      draw(key);
    });

  function draw(key: string): void {
    replace(
      frame.body,
      chain,
      key !== '' &&
        h(
          'p',
          { class: 'admin-filter' },
          'Only the key ',
          h('code', null, key),
          ' ',
          button('Show all', () => go({ name: 'admin', page: 'audit', id: '', query: {} }), {
            class: 'tiny',
          }),
        ),
      entries.length === 0
        ? emptyState(
            'Nothing was changed yet',
            h(
              'p',
              null,
              'Every key that is made, changed, rotated or revoked appears here, whether it was done on this page or with ',
              h('code', null, 'hopgate keys'),
              '.',
            ),
          )
        : table(entries),
      next !== null &&
        h(
          'p',
          { class: 'admin-more' },
          button('Older entries', () => void more(key)),
        ),
    );
  }

  return {
    node: frame.node,
    show(route) {
      const key = route.query.key ?? '';
      if (key === shown) return;
      shown = key;
      void load(key);
    },
    press(event) {
      if (event.key !== 'r') return false;
      void load(currentRoute().query.key ?? '');
      return true;
    },
    close: frame.close,
  };
}

function chainLine({ valid, entries, head, fault }: ChainReport): Child {
  if (!valid) {
    return h('span', { class: 'state', 'data-tone': 'bad' }, `The chain is broken: ${fault}.`);
  }
  if (entries === 0) return h('span', { class: 'state' }, 'No entries yet.');
  return [
    h(
      'span',
      { class: 'state', 'data-tone': 'ok' },
      `Verified: ${several(entries, 'entry', 'entries')}, none changed, none missing.`,
    ),
    h('span', { class: 'soft' }, ' Last hash ', h('code', { title: head }, head.slice(0, 12)), ' '),
    copyButton('Copy', () => head, {
      class: 'tiny',
      'aria-label': 'Copy the hash of the last entry',
    }),
  ];
}

const table = (entries: readonly AuditEntry[]) =>
  dataTable({
    caption: 'Audit entries, newest first',
    rows: entries,
    columns: [
      { title: 'Entry', cell: ({ seq }) => count(seq), num: true },
      { title: 'Time', cell: ({ time }) => when(time, minuteOf) },
      { title: 'Who', cell: ({ actor }) => h('code', null, actor), class: 'nowrap' },
      { title: 'What', cell: ({ action }) => ACTIONS[action] ?? action, class: 'nowrap' },
      { title: 'Key', cell: keyCell, class: 'wraps' },
      { title: 'Changes', cell: changesCell, class: 'wide' },
    ],
  });

function keyCell({ target, before, after }: AuditEntry): Child {
  const name = (after ?? before)?.name;
  return h(
    'a',
    { href: hashOf({ name: 'admin', page: 'keys', id: target, query: {} }), title: target },
    typeof name === 'string' ? name : target,
  );
}

function changesCell({ before, after }: AuditEntry): Child {
  const changes = changesBetween(before ?? {}, after ?? {});
  if (changes.length === 0) return h('span', { class: 'soft' }, '–');
  return h(
    'ul',
    { class: 'changes' },
    changes.map(({ name, from, to }) =>
      h(
        'li',
        null,
        h('span', { class: 'soft' }, `${name} `),
        from !== undefined && [h('del', null, from), ' → '],
        to === undefined ? h('span', { class: 'soft' }, 'taken away') : h('ins', null, to),
      ),
    ),
  );
}

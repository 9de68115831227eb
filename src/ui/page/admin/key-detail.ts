/** One key: its settings as a form, a new secret shown once, and what can be done with it. */

import { announce, copyButton } from '../kit/copy.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText, Refused } from '../kit/fetching.ts';
import { count, several } from '../kit/format.ts';
import { go, hashOf } from '../kit/route.ts';
import type { View } from '../kit/view.ts';
import { when } from '../kit/when.ts';
import { type BudgetReport, budgetLine, getBudgets } from './budgets-api.ts';
import { ask } from './dialogs.ts';
import { keyFields, LIMITS, labelsText } from './key-fields.ts';
import {
  changeKey,
  createKey,
  getKey,
  type KeyView,
  revokeKey,
  rotateKey,
  stateOf,
} from './keys-api.ts';
import { pageFrame } from './page-frame.ts';
import { getUsage, type UsageGroup } from './usage-api.ts';
import { usd } from './usd.ts';

/** Secrets that were just issued, until their page is left. */
const issued = new Map<string, string>();

const GRACES = [
  ['0', 'not at all'],
  ['3600', 'for 1 hour'],
  ['86400', 'for 24 hours'],
  ['604800', 'for 7 days'],
] as const;

const keys = () => h('a', { href: '#/keys' }, 'Keys');

/** @param id `new`: a form for a key that is not there yet */
export const keyDetail = (id: string): View => (id === 'new' ? newKey() : oneKey(id));

function newKey(): View {
  const frame = pageFrame({
    title: 'New key',
    about: ['All of this can be changed later. ', keys()],
  });
  const form = settingsForm(
    { id: '', source: 'admin', name: '' },
    'Make the key',
    async (fields) => {
      const made = await createKey(fields);
      issued.set(made.id, made.key);
      go({ name: 'admin', page: 'keys', id: made.id, query: {} }, true);
    },
  );
  replace(frame.body, h('div', { class: 'key-grid' }, h('section', { class: 'panel' }, form)));
  return {
    node: frame.node,
    show: () => queueMicrotask(() => form.querySelector('input')?.focus()),
    close: frame.close,
  };
}

function oneKey(id: string): View {
  const frame = pageFrame({ title: 'Key', about: keys() });
  const title = frame.node.querySelector('h1')!;
  const about = frame.node.querySelector('.admin-head .soft')!;

  const load = () =>
    frame.run(async (signal) => {
      const [key, usage, budgets] = await Promise.all([
        getKey(id, signal),
        getUsage({ by: 'model', from: '30d', key: id, limit: 8 }, signal),
        getBudgets(signal),
      ]);
      draw(
        key,
        usage.data,
        budgets.data.filter((budget) => budget.key === id || sharedBy(budget, key)),
      );
    });

  function draw(
    key: KeyView,
    usage: readonly UsageGroup[],
    budgets: readonly BudgetReport[],
  ): void {
    const [text, tone] = stateOf(key);
    replace(title, key.name);
    document.title = `${key.name} · hopgate`;
    replace(about, keys(), ' / ', h('code', null, key.id));
    const secret = issued.get(id);
    const changeable = key.source === 'admin' && key.revoked === undefined;
    replace(
      frame.body,
      secret !== undefined && secretBox(secret),
      h(
        'div',
        { class: 'key-grid' },
        h(
          'section',
          { class: 'panel', 'aria-label': 'Settings' },
          changeable ? editForm(key) : fixedSettings(key),
        ),
        h(
          'div',
          { class: 'key-side' },
          h(
            'section',
            { class: 'panel' },
            h('h2', null, 'State'),
            h('p', null, h('span', { class: 'state', 'data-tone': tone }, text)),
            facts(key),
            changeable && actions(key),
          ),
          budgets.length > 0 &&
            h(
              'section',
              { class: 'panel' },
              h('h2', null, 'Budgets'),
              budgets.map((budget) => [
                budget.key === null && h('p', { class: 'soft' }, `${budget.name} (shared)`),
                budgetLine(budget),
              ]),
            ),
          usagePanel(key, usage),
        ),
      ),
    );
  }

  const editForm = (key: KeyView) =>
    settingsForm(key, 'Save', async (fields) => {
      await changeKey(key, fields);
      announce('Saved.');
      await load();
    });

  function actions(key: KeyView): Child {
    const blocked = key.blocked === true;
    return h(
      'div',
      { class: 'key-actions' },
      button('Rotate', () => askRotate(key)),
      button(blocked ? 'Unblock' : 'Block', () => void block(key, !blocked)),
      button('Revoke', () => askRevoke(key), { class: 'danger' }),
    );
  }

  const block = (key: KeyView, blocked: boolean) =>
    frame.run(async () => {
      await changeKey(key, { blocked });
      announce(blocked ? 'The key is blocked.' : 'The key works again.');
      queueMicrotask(() => void load());
    });

  function askRotate(key: KeyView): void {
    const grace = h(
      'select',
      { id: 'grace' },
      GRACES.map(([value, text]) => h('option', { value }, text)),
    );
    grace.value = '86400';
    ask({
      title: `Rotate the key ${key.name}?`,
      body: [
        h(
          'p',
          null,
          'It gets a new secret, which is shown once. Its limits, its budgets and what was spent stay.',
        ),
        h('label', { for: 'grace' }, 'The old secret still works '),
        grace,
      ],
      does: 'Rotate',
      async run() {
        const { key: secret } = await rotateKey(key, Number(grace.value));
        issued.set(id, secret);
        await load();
      },
    });
  }

  function askRevoke(key: KeyView): void {
    ask({
      title: `Revoke the key ${key.name}?`,
      body: h(
        'p',
        null,
        'It never works again. To stop it for a while, block it. What was spent stays on record.',
      ),
      does: 'Revoke',
      dangerous: true,
      async run() {
        await revokeKey(key);
        announce('The key is revoked.');
        await load();
      },
    });
  }

  return {
    node: frame.node,
    show: () => void load(),
    close() {
      issued.delete(id);
      frame.close();
    },
  };

  function secretBox(secret: string): HTMLElement {
    return h(
      'section',
      { class: 'secret', 'aria-label': 'The new key' },
      h('h2', null, 'Copy this key now'),
      h('p', null, 'It is shown this once. The gateway keeps only a digest of it.'),
      h(
        'div',
        { class: 'snippet' },
        h('code', { class: 'secret-text' }, secret),
        copyButton('Copy', () => secret, { class: 'primary' }),
      ),
      button(
        'I have it',
        () => {
          issued.delete(id);
          frame.node.querySelector('.secret')?.remove();
        },
        { class: 'tiny' },
      ),
    );
  }
}

function settingsForm(
  key: KeyView,
  does: string,
  save: (fields: Readonly<Record<string, unknown>>) => Promise<void>,
): HTMLFormElement {
  const fields = keyFields(key);
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const submit = h('button', { type: 'submit', class: 'primary' }, does);
  async function run(): Promise<void> {
    problem.hidden = true;
    submit.disabled = true;
    try {
      await save(fields.read());
    } catch (thrown) {
      problem.hidden = false;
      const stale = thrown instanceof Refused && thrown.code === 'version_mismatch';
      replace(
        problem,
        stale
          ? 'Another administrator has changed this key meanwhile. Reload the page to see the change.'
          : failureText(thrown),
      );
    }
    submit.disabled = false;
  }
  return h(
    'form',
    {
      class: 'key-form',
      on: {
        submit: (event) => {
          event.preventDefault();
          void run();
        },
      },
    },
    fields.node,
    problem,
    h('div', { class: 'form-end' }, submit),
  );
}

/** A shared budget counts for every key that has its labels. */
const sharedBy = ({ key: owner, labels }: BudgetReport, { labels: own = {} }: KeyView): boolean =>
  owner === null && Object.entries(labels ?? {}).every(([label, value]) => own[label] === value);

const fact = (name: string, value: Child) =>
  h('div', null, h('dt', null, name), h('dd', null, value));

function facts(key: KeyView): Child {
  const old = key.secrets?.filter(({ until }) => until !== null) ?? [];
  return h(
    'dl',
    { class: 'fact-list' },
    key.expires !== undefined && fact('Expires', when(key.expires)),
    key.created !== undefined && fact('Made', when(key.created)),
    key.updated !== undefined && key.updated !== key.created && fact('Changed', when(key.updated)),
    key.revoked !== undefined && fact('Revoked', when(key.revoked)),
    old.map(({ until }) => fact('Old secret ends', when(until!))),
    key.source === 'admin' &&
      fact(
        'Audit',
        h(
          'a',
          { href: hashOf({ name: 'admin', page: 'audit', id: '', query: { key: key.id } }) },
          'its changes',
        ),
      ),
  );
}

/** A key that cannot be changed here. */
function fixedSettings(key: KeyView): Child {
  const list = (values: readonly string[] | undefined) => values?.join(', ') ?? 'all';
  const { limits = {} } = key;
  return [
    h(
      'p',
      { class: 'soft' },
      key.revoked === undefined
        ? 'This key stands in the configuration. Change it there; the gateway takes it over without a restart.'
        : 'This key was revoked and never works again.',
    ),
    h(
      'dl',
      { class: 'fact-list' },
      fact('Labels', labelsText(key.labels ?? {}) || 'none'),
      fact('Models', list(key.models)),
      fact('Server tools', list(key.tools)),
      fact('Routes', list(key.routes)),
      fact('Memory spaces', list(key.spaces)),
      LIMITS.map((limit) => fact(limit.fact, count(limits[limit.name] ?? null))),
      fact(
        'Budgets',
        key.budgets?.map(({ usd: amount, per }) => `${usd(amount)} per ${per}`).join(', ') ||
          'none',
      ),
    ),
  ];
}

function usagePanel(key: KeyView, usage: readonly UsageGroup[]): Child {
  const query = { by: 'model', key: key.id };
  return h(
    'section',
    { class: 'panel' },
    h('h2', null, 'Last 30 days'),
    usage.length === 0
      ? h('p', { class: 'soft' }, 'Nothing was used.')
      : h(
          'dl',
          { class: 'fact-list' },
          usage.map(({ name, cost_usd, tries }) =>
            fact(name || '(no model)', `${usd(cost_usd)}, ${several(tries, 'try', 'tries')}`),
          ),
        ),
    h(
      'p',
      null,
      h('a', { href: hashOf({ name: 'admin', page: 'usage', id: '', query }) }, 'Usage over time'),
    ),
  );
}

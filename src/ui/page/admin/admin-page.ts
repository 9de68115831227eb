/** The pages that take an admin key: asks for it once, says how to switch the admin API on, then shows the page. */

import { h, replace } from '../kit/dom.ts';
import { adminKey } from '../kit/fetching.ts';
import { keyForm } from '../kit/key-form.ts';
import { type AdminPage, currentRoute, type Route } from '../kit/route.ts';
import type { View } from '../kit/view.ts';
import { type Closed, whenClosed } from './admin-api.ts';
import { createAuditPage } from './audit-page.ts';
import { createBudgetsPage } from './budgets-page.ts';
import { createHealthPage } from './health-page.ts';
import { createKeysPage } from './keys-page.ts';
import { createUsagePage } from './usage-page.ts';

const PAGES: Readonly<Record<AdminPage, () => View>> = {
  keys: createKeysPage,
  budgets: createBudgetsPage,
  usage: createUsagePage,
  health: createHealthPage,
  audit: createAuditPage,
};

export function createAdminPage(page: AdminPage): View {
  const node = h('section', { class: 'admin-page' });
  let view: View | undefined;

  function leave(): void {
    view?.close();
    view = undefined;
  }

  function open(route: Route): void {
    if (view === undefined) {
      view = PAGES[page]();
      replace(node, view.node);
    }
    view.show(route);
  }

  whenClosed((closed) => {
    if (view === undefined) return;
    leave();
    adminKey.set('');
    replace(node, closed.why === 'off' ? switchedOff() : ask(closed));
  });

  const ask = ({ why, message }: Closed) =>
    h(
      'div',
      { class: 'admin-closed' },
      keyForm({
        title: 'Admin key',
        label: 'Admin key of this gateway',
        help: 'One of auth.admin_keys in its configuration. It is kept in this tab until the tab is closed.',
        problem: why === 'missing' ? undefined : message,
        entered(entered) {
          adminKey.set(entered);
          open(currentRoute());
        },
      }),
    );

  return {
    node,
    show: open,
    press: (event) => view?.press?.(event) ?? false,
    close() {
      whenClosed(() => {});
      leave();
    },
  };
}

function switchedOff(): HTMLElement {
  return h(
    'div',
    { class: 'blank' },
    h('h2', null, 'The admin API is off'),
    h(
      'p',
      null,
      'Keys, budgets, usage, health and the audit need an admin key. Set the variable, add this to the configuration and restart the gateway:',
    ),
    h(
      'div',
      { class: 'snippet' },
      h('pre', null, `auth:\n  admin_keys: ["\${HOPGATE_ADMIN_KEY}"]`),
    ),
    h(
      'p',
      { class: 'soft' },
      'From then on clients need a key, too. ',
      h('a', { href: '/docs/keys', target: '_blank', rel: 'noopener' }, 'Keys in the manual'),
    ),
  );
}

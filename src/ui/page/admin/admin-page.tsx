/** The pages that take an admin key: asks for it once, says how to switch the admin API on, then shows the page. */

import type { VNode } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Snippet } from '../kit/copy.tsx';
import { adminKey } from '../kit/fetching.ts';
import { KeyForm } from '../kit/form.tsx';
import { rich, t } from '../kit/language.ts';
import { ADMIN_PLACES } from '../kit/places.ts';
import { type AdminRoute, hashOf, type AdminPage as PageName } from '../kit/route.ts';
import { Blank, DocLink, Tabs } from '../kit/ui.tsx';
import { type Closed, whenClosed } from './api.ts';
import { AuditPage } from './audit-page.tsx';
import { HealthPage } from './health-page.tsx';
import { KeysPage } from './keys-page.tsx';
import { UsagePage } from './usage-page.tsx';

const PAGES: Readonly<Record<PageName, (props: { route: AdminRoute }) => VNode>> = {
  keys: KeysPage,
  usage: UsagePage,
  health: HealthPage,
  audit: AuditPage,
};

interface AdminPageProps {
  readonly route: AdminRoute;
  /** The other pages for administrators are shown as tabs. */
  readonly tabs: boolean;
}

export function AdminPage({ route, tabs }: AdminPageProps) {
  const [closed, setClosed] = useState<Closed>();
  useLayoutEffect(() => {
    whenClosed((next) => {
      adminKey.set('');
      setClosed(next);
    });
    return () => whenClosed(() => {});
  }, []);
  const Page = PAGES[route.page];
  return (
    <section class="admin-page">
      {tabs && (
        <Tabs
          label={t`Administration`}
          links={ADMIN_PLACES.map((place) => [
            place.title,
            hashOf(place.at({})),
            place.holds(route),
          ])}
        />
      )}
      {closed === undefined ? (
        <Page route={route} />
      ) : closed.why === 'off' ? (
        <Off />
      ) : (
        <div class="admin-closed">
          <KeyForm
            title={t`Admin key`}
            label={t`Admin key of this gateway`}
            help={t`One of auth.admin_keys in its configuration. It is kept in this tab until the tab is closed.`}
            problem={closed.why === 'missing' ? undefined : closed.message}
            entered={(entered) => {
              adminKey.set(entered);
              setClosed(undefined);
              // What the navigation shows depends on it.
              dispatchEvent(new HashChangeEvent('hashchange'));
            }}
          />
        </div>
      )}
    </section>
  );
}

const Off = () => (
  <Blank title={t`The admin API is off`}>
    <p>{t`Keys, budgets and the audit need an admin key. Set the variable, add this to the configuration and restart the gateway:`}</p>
    <Snippet text={`auth:\n  admin_keys: ["\${HOPGATE_ADMIN_KEY}"]`} />
    <p class="soft">
      {rich`From then on clients need a key, too. ${<DocLink to="keys">{t`Keys in the manual`}</DocLink>}`}
    </p>
  </Blank>
);

/** The head of the pages for administrators: title, actions, and what went wrong. */

import { type Loaded, useKeys } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { Banner, type Child } from '../kit/ui.tsx';

interface PageFrameProps {
  readonly title: string;
  /** One line that says what the page is for. */
  readonly about: Child;
  readonly actions?: Child;
  /** What the page shows; the key r loads it again. */
  readonly loaded?: Pick<Loaded<unknown>, 'problem' | 'busy' | 'reload'>;
  readonly children: Child;
}

export function PageFrame({ title, about, actions, loaded, children }: PageFrameProps) {
  useKeys({ r: () => loaded?.reload() });
  return (
    <div class="admin-frame" aria-busy={loaded?.busy || undefined}>
      <header class="admin-head">
        <div>
          <h1>{title}</h1>
          <p class="soft">{about}</p>
        </div>
        {actions && <div class="admin-actions">{actions}</div>}
      </header>
      {loaded?.problem !== undefined && (
        <Banner title={t`Failed`} text={loaded.problem} role="alert" />
      )}
      <div class="admin-body">{children}</div>
    </div>
  );
}

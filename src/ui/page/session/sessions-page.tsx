/** The list of sessions: who worked when, on which models, at what cost, with how much of it from the cache. */

import { useLayoutEffect } from 'preact/hooks';
import type { SessionRow } from '../../api/api.ts';
import { clock, count, day, millis, percent, several, short, usd } from '../kit/format.ts';
import { moveFocus, useGet, useKeys } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { sessionLink } from '../kit/route.ts';
import { Blank, Problem } from '../kit/ui.tsx';
import { useStories } from '../list/stories.ts';

export function SessionsPage() {
  const { data, problem, busy } = useGet('/sessions');
  const stories = useStories();
  useLayoutEffect(() => {
    const firsts = data?.sessions.slice(0, MAX_ASKED).map(({ first }) => first) ?? [];
    stories.want(firsts.map((id) => ({ id, state: 'done' })));
  }, [data]);
  useKeys(({ key }) => moveFocus('.session-card', key));
  return (
    <section class="sessions-page" aria-label={t`Sessions`}>
      <h1>{t`Sessions`}</h1>
      <div class="sessions-body" aria-busy={busy || undefined}>
        <Problem text={problem} />
        {data?.sessions.length === 0 && (
          <Blank title={t`No sessions yet`}>
            <p>{t`Agents such as Claude Code and Codex send the id of their session with each request. Their exchanges appear here as one conversation.`}</p>
          </Blank>
        )}
        <ol class="session-cards">
          {data?.sessions.map((one) => (
            <li key={one.id}>
              <Card one={one} asked={stories.of({ id: one.first })?.asked ?? ''} />
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

/** Sessions whose first words are asked for. */
const MAX_ASKED = 200;

function Card({ one, asked }: { one: SessionRow; asked: string }) {
  const { totals } = one;
  return (
    <a class="session-card" href={sessionLink(one.id)}>
      <span class="session-title">
        <b>{one.client || t`Session`}</b>
        {one.key !== '' && <span class="by">{t`key ${one.key}`}</span>}
        <code>{one.id}</code>
      </span>
      <span class="soft when">
        {`${day(one.from)} ${clock(one.from)}, ${millis(one.until - one.from)}`}
      </span>
      <span class="begins">{asked}</span>
      <span class="soft models">{one.models.join(', ')}</span>
      <span class="session-facts">
        <span>{several(one.exchanges, 'exchange')}</span>
        {one.failed > 0 && <span class="problem">{t`${count(one.failed)} failed`}</span>}
        {one.retried > 0 && <span>{t`${count(one.retried)} retried`}</span>}
        <span>{t`${short(totals.input_tokens)} in`}</span>
        <span>{t`${short(totals.output_tokens)} out`}</span>
        {totals.input_tokens > 0 && (
          <span>{t`${percent(totals.cached_tokens / totals.input_tokens)} cached`}</span>
        )}
        {totals.cost !== null && <b>{usd(totals.cost)}</b>}
      </span>
    </a>
  );
}

/** The sessions: who worked when, on which models, at what cost; and one of them, its conversations turn by turn. */

import { useLayoutEffect, useState } from 'preact/hooks';
import type { SessionRow, SessionStep, SessionView } from '../../api/api.ts';
import { Blocks, SourceContext, Turn, TurnBox } from '../exchange/conversation.tsx';
import { Id } from '../kit/copy.tsx';
import { clock, count, day, millis, percent, several, short, usd } from '../kit/format.ts';
import { moveFocus, useGet, useKeys } from '../kit/hooks.ts';
import { listed, said, t } from '../kit/language.ts';
import { exchangeLink, hashOf, sessionLink } from '../kit/route.ts';
import { Blank, Button, type Fact, Facts, Problem } from '../kit/ui.tsx';
import { statusLabel, toneOf } from '../list/status.ts';
import { useStories } from '../list/stories.ts';

const RELOAD_AFTER_MS = 1500;
/** Sessions whose first words are asked for. */
const MAX_ASKED = 200;

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

function Card({ one, asked }: { one: SessionRow; asked: string }) {
  const { input_tokens: sent, output_tokens: got, cached_tokens: cached, cost } = one.totals;
  return (
    <a class="session-card" href={sessionLink(one.id)}>
      <span class="session-title">
        <b>{one.client || t`Session`}</b>
        {one.key !== '' && <span class="by">{t`key ${one.key}`}</span>}
        <code>{one.id}</code>
      </span>
      <span class="soft when">
        {listed([`${day(one.from)} ${clock(one.from)}`, millis(one.until - one.from)])}
      </span>
      <span class="begins">{asked}</span>
      <span class="soft models">{one.models.join(', ')}</span>
      <span class="session-facts">
        <span>{several(one.exchanges, 'exchange')}</span>
        {one.failed > 0 && <span class="problem">{t`${count(one.failed)} failed`}</span>}
        {one.retried > 0 && <span>{t`${count(one.retried)} retried`}</span>}
        {sent > 0 && <span>{t`${short(sent)} in`}</span>}
        {sent > 0 && <span>{t`${short(got)} out`}</span>}
        {sent > 0 && <span>{t`${percent(cached / sent)} cached`}</span>}
        {cost !== null && <b>{usd(cost)}</b>}
      </span>
    </a>
  );
}

export function SessionPage({ id }: { id: string }) {
  const [thread, setThread] = useState<number>();
  const { data: view, problem } = useGet('/sessions/:id', { id }, ({ steps }) =>
    steps.some(({ row }) => row.state === 'open') ? RELOAD_AFTER_MS : undefined,
  );
  useKeys(({ key }) => moveFocus('.step', key));
  return (
    <section
      class="session-page"
      aria-label={t`Session ${id}`}
      aria-busy={(!view && problem === undefined) || undefined}
    >
      {view && (
        <header class="session-head">
          <div class="headline">
            <a class="back" href="#/sessions" aria-label={t`All sessions`}>
              ←
            </a>
            <h1>{`${view.client || t`Session`} · ${day(view.from)} ${clock(view.from)}`}</h1>
            <a
              class="button"
              href={hashOf({ name: 'list', query: { session: id } })}
            >{t`As a list`}</a>
          </div>
          <p class="idline">
            <Id id={id} />
          </p>
          <Facts class="facts" items={factsOf(view)} />
          <Threads view={view} thread={thread} choose={setThread} />
        </header>
      )}
      <div class="steps">
        <Problem text={problem} />
        {problem !== undefined && <a href="#/sessions">{t`All sessions`}</a>}
        {view?.steps
          .filter((step) => thread === undefined || step.thread === thread)
          .map((step) => (
            <Step key={step.row.id} step={step} many={view.threads.length > 1} />
          ))}
        {view?.more && (
          <p class="soft">{t`Only the first ${view.steps.length} exchanges are shown here.`}</p>
        )}
      </div>
    </section>
  );
}

const COLOURS = ['blue', 'violet', 'teal', 'gold', 'pink', 'green'];

const colourOf = (thread: number) => ({
  '--thread': `var(--${COLOURS[thread % COLOURS.length]})`,
});

interface ThreadsProps {
  readonly view: SessionView;
  readonly thread: number | undefined;
  readonly choose: (thread: number | undefined) => void;
}

const Threads = ({ view: { threads }, thread, choose }: ThreadsProps) =>
  threads.length < 2 ? null : (
    <div class="threads" role="group" aria-label={t`Conversations`}>
      <Button
        aria-pressed={thread === undefined}
        onClick={() => choose(undefined)}
      >{t`All`}</Button>
      {threads.map((one, i) => (
        <Button key={i} aria-pressed={thread === i} title={one.title} onClick={() => choose(i)}>
          <i class="thread-mark" style={colourOf(i)} />
          {t`${i === 0 ? t`Main` : t`Side ${i}`}: ${one.title || '–'}`}
          <small>{` ${count(one.exchanges)}`}</small>
        </Button>
      ))}
    </div>
  );

function factsOf(view: SessionView): readonly Fact[] {
  const { exchanges, failed, retried, from, until, key } = view;
  const { input_tokens: sent, output_tokens: got, cached_tokens: cached, cost } = view.totals;
  const lost = view.steps.flatMap(({ cache }) => cache?.lost ?? []);
  const tokensLost = lost.reduce((sum, { tokens }) => sum + tokens, 0);
  return [
    [t`Exchanges`, count(exchanges)],
    failed > 0 && [t`Failed`, count(failed)],
    retried > 0 && [t`Retried`, count(retried)],
    [t`Time`, millis(until - from)],
    sent > 0 && [t`Tokens`, `${count(sent)} → ${count(got)}`],
    sent > 0 && [t`From the cache`, percent(cached / sent)],
    lost.length > 0 && [
      t`Cache lost`,
      t`${several(lost.length, 'time')}, ${short(tokensLost)} tokens`,
    ],
    cost !== null && [t`Cost`, usd(cost)],
    key !== '' && [t`Key`, key],
  ];
}

function Step({ step, many }: { step: SessionStep; many: boolean }) {
  const { row, added, answered, cache, problem } = step;
  const [status, text] = statusLabel(row);
  return (
    <article
      class="step"
      data-thread={many ? step.thread : undefined}
      style={many ? colourOf(step.thread) : undefined}
      data-tone={toneOf(row)}
      aria-label={t`Exchange at ${clock(row.time)}`}
    >
      <header class="step-head">
        <a href={exchangeLink(row.id, 'talk', { session: row.session })}>{clock(row.time)}</a>
        <i class="dot" />
        <span class="target">{row.target || row.model}</span>
        {(row.status !== 200 || text !== '') && <b class="step-status">{`${status} ${text}`}</b>}
        <span>{millis(row.total_ms)}</span>
        {row.input_tokens !== null && (
          <span>{t`${short(row.input_tokens)} in, ${short(row.output_tokens)} out`}</span>
        )}
        {cache !== null && <span class="cache">{t`${percent(cache.share)} from the cache`}</span>}
        {row.cost !== null && <span>{usd(row.cost)}</span>}
      </header>
      {cache?.lost != null && (
        <p class="cache-lost" data-change={cache.lost.change}>
          <b>{t`The cache of ${short(cache.lost.tokens)} tokens was not used. `}</b>
          {said(cache.lost.text)}
        </p>
      )}
      <SourceContext.Provider value={{ id: row.id, stage: 'client-request' }}>
        {added.map((turn) => (
          <Turn key={turn.index} {...turn} />
        ))}
      </SourceContext.Provider>
      {answered.length > 0 && (
        <SourceContext.Provider value={{ id: row.id, stage: 'client-response' }}>
          <TurnBox who="assistant">
            <Blocks blocks={answered} at={0} />
          </TurnBox>
        </SourceContext.Provider>
      )}
      {problem !== null && <p class="problem">{problem}</p>}
    </article>
  );
}

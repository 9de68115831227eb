/** One session: its conversations turn by turn, with tokens, cost and cache of each. */

import { useState } from 'preact/hooks';
import type { SessionStep, SessionView } from '../../api/api.ts';
import { Blocks, SourceContext, Turn, TurnBox } from '../exchange/conversation.tsx';
import { Id } from '../kit/copy.tsx';
import { clock, count, day, millis, percent, several, short, usd } from '../kit/format.ts';
import { moveFocus, useGet, useKeys } from '../kit/hooks.ts';
import { said, t } from '../kit/language.ts';
import { exchangeLink, hashOf } from '../kit/route.ts';
import { Button, type Fact, Facts, Problem } from '../kit/ui.tsx';
import { keyOf } from '../list/row-cells.tsx';
import { statusLabel, toneOf } from '../list/status.ts';

const RELOAD_AFTER_MS = 1500;

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
            <h1>{title(view)}</h1>
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

function title({ steps }: SessionView): string {
  const row = steps[0]?.row;
  if (row === undefined) return t`Session`;
  return `${row.client || t`Session`} · ${day(row.time)} ${clock(row.time)}`;
}

function factsOf({ steps, totals }: SessionView): readonly Fact[] {
  const first = steps[0]?.row.time ?? 0;
  const last = Math.max(...steps.map(({ row }) => row.time + (row.total_ms ?? 0)));
  const lost = steps.filter(({ cache }) => cache?.lost != null);
  const tokensLost = lost.reduce((sum, { cache }) => sum + cache!.lost!.tokens, 0);
  const tones = steps.map(({ row }) => toneOf(row));
  const failed = tones.filter((tone) => tone === 'bad').length;
  const retried = tones.filter((tone) => tone === 'warn').length;
  const key = steps[0] === undefined ? '' : keyOf(steps[0].row);
  return [
    [t`Exchanges`, count(steps.length)],
    failed > 0 && [t`Failed`, count(failed)],
    retried > 0 && [t`Retried`, count(retried)],
    [t`Time`, millis(last - first)],
    [t`Tokens`, `${count(totals.input_tokens)} → ${count(totals.output_tokens)}`],
    totals.input_tokens > 0 && [
      t`From the cache`,
      percent(totals.cached_tokens / totals.input_tokens),
    ],
    lost.length > 0 && [
      t`Cache lost`,
      t`${several(lost.length, 'time')}, ${short(tokensLost)} tokens`,
    ],
    totals.cost !== null && [t`Cost`, usd(totals.cost)],
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

/** The first tab: what was asked and what was answered, side by side, as the client saw it. */

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ConversationView, SampleDetail, TurnView, UiRow } from '../../api/api.ts';
import { get } from '../kit/fetching.ts';
import { millis, several } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { highlight } from '../kit/text.tsx';
import { type Child, Problem, Soft } from '../kit/ui.tsx';
import { picturesOf } from './bodies.tsx';
import {
  Blocks,
  CONVERSATION,
  Failure,
  Folded,
  Incomplete,
  outcomeOf,
  Prompt,
  Settings,
  type Source,
  SourceContext,
  Tools,
  Turn,
  Turns,
} from './conversation.tsx';
import { stageInfoOf, type ViewProps } from './stages.tsx';

const RELOAD_AFTER_MS = 700;
const MAX_CHARS = 60_000;

export function TalkTab({ detail, route }: ViewProps) {
  const { row, meta } = detail;
  const { q = '' } = route.query;
  const running = row.state === 'open';
  const asked = useBody(detail, 'client-request');
  const answered = useBody(detail, 'client-response', running ? RELOAD_AFTER_MS : undefined);
  const halves = useRef<HTMLDivElement>(null);
  const ready = asked.data !== undefined && answered.data !== undefined;
  useLayoutEffect(() => {
    if (ready) highlight(halves.current!, q);
  }, [ready, q]);
  return (
    <div class="talk-tab">
      <div class="speakers" ref={halves} aria-busy={asked.busy || undefined}>
        <section class="speaker" aria-label={t`Asked`}>
          <Problem text={asked.problem} />
          {asked.data && (
            <SourceContext.Provider value={{ ...asked.of, q }}>
              <Question {...asked.data} />
            </SourceContext.Provider>
          )}
          {!asked.recorded && <p class="soft">{t`The request was not recorded.`}</p>}
        </section>
        <section class="speaker" aria-label={t`Answered`}>
          <Problem text={answered.problem} />
          {answered.data && (
            <SourceContext.Provider value={{ ...answered.of, q }}>
              <Answer view={answered.data} row={row} />
            </SourceContext.Provider>
          )}
          {!answered.recorded && (
            <>
              <Heading title={t`Answered`} />
              {!running && meta.error === undefined && (
                <p class="soft">{t`The answer was not recorded.`}</p>
              )}
              {!running && <Failure of={meta.error} row={row} />}
            </>
          )}
          {running && (
            <p class="growing" role="status">
              <i class="dot" />
              {t`running for ${millis(Math.max(0, Date.now() - row.time))}`}
            </p>
          )}
        </section>
      </div>
    </div>
  );
}

function useBody({ row, meta }: SampleDetail, stage: string, every?: number) {
  const recorded = stageInfoOf(meta, stage) !== undefined;
  const loaded = useLoad(
    async (signal) => {
      const params = { id: row.id, stage, text: MAX_CHARS };
      return recorded ? await get(CONVERSATION, params, signal) : undefined;
    },
    [recorded, row.state],
    every,
  );
  const pictures = useMemo(() => picturesOf(row.id, stage), []);
  const of: Source = { id: row.id, stage, notes: meta.notes, pictures };
  return { ...loaded, recorded, of };
}

const Heading = ({ title, children }: { title: string; children?: Child }) => (
  <header class="speaker-head">
    <h2>{title}</h2>
    {children}
  </header>
);

function Question(view: ConversationView) {
  const from = newFrom(view.turns);
  const earlier = view.turns.slice(0, from);
  return (
    <>
      <Heading title={t`Asked`}>
        <Soft>{view.model}</Soft>
      </Heading>
      <Failure of={view.problem} />
      <Settings all={view.settings} />
      {view.system.length > 0 && <Prompt blocks={view.system} at="system" />}
      <Tools all={view.tools} />
      {earlier.length > 0 && (
        <Folded
          title={several(earlier.length, 'earlier turn')}
          about={t`said before this exchange`}
        >
          {() => <Turns all={earlier} />}
        </Folded>
      )}
      {view.turns.slice(from).map((turn, i) => (
        <Turn key={from + i} {...turn} index={from + i} />
      ))}
    </>
  );
}

/**
 * The first turn that this exchange is about: after the last answer, but with the calls whose results the
 * request brings.
 */
function newFrom(turns: readonly TurnView[]): number {
  const last = turns.findLastIndex(({ role }) => role === 'assistant');
  const brings = turns
    .slice(last + 1)
    .some(({ blocks }) => blocks.some(({ type }) => type === 'tool-result'));
  if (!brings) return last + 1;
  let from = last;
  while (from > 0 && turns[from - 1]!.role === 'assistant') from--;
  return Math.max(0, from);
}

function Answer({ view, row }: { view: ConversationView; row: UiRow }) {
  const facts = [...outcomeOf(view), ...(row.total_ms === null ? [] : [millis(row.total_ms)])];
  return (
    <>
      <Heading title={t`Answered`}>
        <Soft>{facts.join(' · ')}</Soft>
      </Heading>
      <Failure of={view.problem} row={row} />
      {row.state !== 'open' && <Incomplete {...view} />}
      <div class="said answer">
        <Blocks blocks={view.turns.flatMap((turn) => turn.blocks)} at={0} />
      </div>
    </>
  );
}

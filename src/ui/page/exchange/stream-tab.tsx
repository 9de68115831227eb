/** The events of a stream: incoming and outgoing ones side by side, with a slider to step through them. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { tryParse } from '../../../lib/json/json.ts';
import type { EventView, SampleDetail } from '../../api/api.ts';
import { get } from '../kit/fetching.ts';
import { count, millis } from '../kit/format.ts';
import { useKeys, useLoad } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { currentRoute, type ExchangeRoute, refine } from '../kit/route.ts';
import { Button, Problem } from '../kit/ui.tsx';
import { RawSides } from './raw-tab.tsx';
import { isStream, stageInfoOf, stageTitle, type ViewProps } from './stages.tsx';
import {
  eventName,
  eventText,
  type Spoken,
  type Step,
  spoken,
  stepsOf,
  type Tape,
  tapeOf,
} from './tape.ts';

const MAX_EVENTS = 50_000;
const LINES_BEFORE = 9;
const LINES_BEHIND = 5;
/** Characters of the output so far that are shown, from its end. */
const SAID = 20_000;
const PLAY_EVERY_MS = 60;

interface Tapes {
  readonly left: Tape;
  readonly right: Tape;
  readonly steps: readonly Step[];
}

async function read(id: string, stage: string, signal: AbortSignal) {
  const events: EventView[] = [];
  for (;;) {
    const params = { id, stage, from: events.length, limit: 2000 };
    const page = await get('/samples/:id/edges/:stage/events', params, signal);
    events.push(...page.events);
    if (page.events.length === 0 || events.length >= Math.min(page.total, MAX_EVENTS)) {
      return { stage, events };
    }
  }
}

/** Undefined: nothing was streamed. */
async function load({ meta, row, hops }: SampleDetail, signal: AbortSignal) {
  const streamed = (stage: string | null | undefined): stage is string => {
    const info = stage ? stageInfoOf(meta, stage) : undefined;
    return info !== undefined && isStream(info);
  };
  const inward = hops.map(({ tries }) => tries.find(({ counted }) => counted)?.response);
  const tape = async (stages: readonly (string | null | undefined)[]) =>
    tapeOf(await Promise.all(stages.filter(streamed).map((stage) => read(row.id, stage, signal))));
  const [left, right] = await Promise.all([tape(inward), tape(['client-response'])]);
  return { left, right, steps: stepsOf(left, right) };
}

export function StreamTab({ detail, route }: ViewProps) {
  const { state } = detail.row;
  const { data, problem, busy } = useLoad((signal) => load(detail, signal), [state]);
  const empty = data?.steps.length === 0;
  return (
    <div class="stream-tab" aria-busy={busy || undefined}>
      {data && !empty ? (
        <Scrubber {...data} route={route} />
      ) : (
        <div class="bar">
          <RawSides route={route} />
        </div>
      )}
      <Problem text={problem} />
      {empty && (
        <p class="same-words" role="status">
          {state === 'open'
            ? t`This exchange is still running. Its events appear here when it ends.`
            : t`This exchange was not streamed.`}
        </p>
      )}
    </div>
  );
}

function Scrubber({ left, right, steps, route }: Tapes & { readonly route: ExchangeRoute }) {
  const slider = useRef<HTMLInputElement>(null);
  const [playing, setPlaying] = useState(false);
  const clamp = (n: number) => Math.max(0, Math.min(steps.length, n));
  /** Read when it is needed: keys and the clock come faster than the page is drawn. */
  const at = () => {
    const { n } = currentRoute().query;
    return n === undefined || !/^\d+$/.test(n) ? steps.length : clamp(Number(n));
  };
  const moveTo = (n: number) => refine({ n: String(clamp(n)) });
  const moveBy = (by: number) => moveTo(at() + by);
  useLayoutEffect(() => {
    if (!playing) return;
    if (at() >= steps.length) moveTo(0);
    const timer = setInterval(() => {
      if (at() >= steps.length) setPlaying(false);
      else moveBy(1);
    }, PLAY_EVERY_MS);
    return () => clearInterval(timer);
  }, [playing]);
  useKeys((event) => {
    const { key, shiftKey, target } = event;
    if (target === slider.current) return false;
    if (key === 'ArrowRight') moveBy(shiftKey ? 10 : 1);
    else if (key === 'ArrowLeft') moveBy(shiftKey ? -10 : -1);
    else if (key === 'Home') moveTo(0);
    else if (key === 'End') moveTo(steps.length);
    else if (key === ' ' && !(target instanceof HTMLButtonElement)) setPlaying(!playing);
    else return false;
    return true;
  }, 2);
  const n = at();
  const now = steps[n - 1] ?? { left: 0, right: 0 };
  const before = steps[n - 2] ?? { left: 0, right: 0 };
  const side = (which: 'left' | 'right', title: string, tape: Tape) => (
    <Side
      title={title}
      tape={tape}
      upto={now[which]}
      moved={now[which] > before[which]}
      choose={(events) => moveTo(steps.findIndex((step) => step[which] === events) + 1)}
    />
  );
  const control = (text: string, label: string, press: () => void) => (
    <Button class="tiny" aria-label={label} onClick={press}>
      {text}
    </Button>
  );
  return (
    <>
      <div class="bar scrub">
        <RawSides route={route} />
        {control('|◀', t`To the beginning (Home)`, () => moveTo(0))}
        {control('◀', t`One event back (←)`, () => moveBy(-1))}
        {control(playing ? '❚❚' : '▶', playing ? t`Stop` : t`Play`, () => setPlaying(!playing))}
        {control('▶|', t`One event on (→)`, () => moveBy(1))}
        <input
          ref={slider}
          type="range"
          min={0}
          max={steps.length}
          value={n}
          aria-label={t`Position in the stream`}
          aria-valuetext={t`event ${n} of ${steps.length}`}
          onInput={({ currentTarget }) => moveTo(Number(currentTarget.value))}
        />
        <output class="place">{`${count(n)} / ${count(steps.length)}`}</output>
      </div>
      <div class="sides">
        {side('left', t`In: from the vendor`, left)}
        {side('right', t`Out: to the client`, right)}
      </div>
    </>
  );
}

interface SideProps {
  readonly title: string;
  readonly tape: Tape;
  readonly upto: number;
  readonly moved: boolean;
  /** Goes to the step after which so many events are over. */
  readonly choose: (events: number) => void;
}

function Side({ title, tape, upto, moved, choose }: SideProps) {
  const said = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    said.current!.scrollTop = said.current!.scrollHeight;
  }, [upto]);
  const { events } = tape;
  const current = events[upto - 1];
  const from = Math.max(
    0,
    Math.min(upto - LINES_BEFORE, events.length - LINES_BEFORE - LINES_BEHIND),
  );
  return (
    <section class="tape" aria-label={title}>
      <h2>
        {title}
        <small>{t` ${count(upto)} of ${count(events.length)} events`}</small>
      </h2>
      <div class="spoken" ref={said} tabIndex={0} aria-label={t`Output so far`} role="group">
        <Speech parts={spoken(tape, upto)} />
      </div>
      <ol class="tape-lines">
        {events.slice(from, Math.max(from, upto) + LINES_BEHIND).map((event, i) => {
          const number = from + i + 1;
          const state = number === upto ? 'now' : number < upto ? 'over' : 'to-come';
          return (
            <>
              {event.stage !== events[from + i - 1]?.stage && (
                <li class="tape-stage" aria-hidden="true">
                  {stageTitle(event.stage)}
                </li>
              )}
              <li class="tape-line" data-state={state} data-moved={String(moved)}>
                <Button
                  aria-current={state === 'now' ? 'step' : undefined}
                  onClick={() => choose(number)}
                >
                  <span class="n">{number}</span>
                  <span class="event">{eventName(event)}</span>
                  <span class="words">{eventText(event).slice(0, 200)}</span>
                  {event.at !== undefined && <span class="at">{millis(event.at)}</span>}
                </Button>
              </li>
            </>
          );
        })}
      </ol>
      <pre class="frame" tabIndex={0} aria-label={t`Current event`}>
        {current === undefined ? '' : pretty(current)}
      </pre>
    </section>
  );
}

function pretty({ raw }: EventView): string {
  if (raw.chars !== undefined) return `${raw.text}\n${t`… ${count(raw.chars)} characters in all`}`;
  const value = tryParse(raw.text);
  return value === undefined ? raw.text : JSON.stringify(value, null, 2);
}

const Speech = ({ parts }: { parts: readonly Spoken[] }) =>
  parts.length === 0 ? (
    <p class="soft">{t`No output yet.`}</p>
  ) : (
    parts.map(({ of, text, name }, i) => (
      <div key={i} class="speech" data-of={of} dir="auto">
        {of !== 'text' && <b>{name === undefined ? of : `${of} ${name}`}</b>}
        {text.length > SAID ? `…${text.slice(-SAID)}` : text}
      </div>
    ))
  );

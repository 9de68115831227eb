/** The stream tab: incoming and outgoing events side by side, with a slider to step through them. */

import type { EventView, SampleDetail } from '../../api/api.ts';
import { getEvents } from '../kit/api-calls.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { count, millis } from '../kit/format.ts';
import { currentRoute, go, withQuery } from '../kit/route.ts';
import type { ExchangeRoute, View } from '../kit/view.ts';
import { isStream, stageInfoOf, stageTitle } from './stages.ts';
import { eventText, type Spoken, type Step, spoken, stepsOf, type Tape, tapeOf } from './tape.ts';

/** Most events that are loaded of one stage. */
const MAX = 50_000;
/** Lines of the tape before and after the current event. */
const BEFORE = 9;
const BEHIND = 5;
/** Characters of the output so far that are shown, from its end. */
const SAID = 20_000;
/** Milliseconds between two events during playback. */
const PACE = 60;

export function createStreamTab(detail: SampleDetail): View<ExchangeRoute> {
  const { meta, row } = detail;
  const stop = new AbortController();
  let left: Tape = { events: [] };
  let right: Tape = { events: [] };
  let steps: readonly Step[] = [];
  let playing = 0;

  const slider = h('input', {
    type: 'range',
    min: 0,
    value: 0,
    'aria-label': 'Position in the stream',
    on: { input: () => moveTo(Number(slider.value)) },
  });
  const place = h('output', { class: 'place' });
  const play = button('▶', () => toggle(), { class: 'tiny', 'aria-label': 'Play' });
  const controls = h(
    'div',
    { class: 'bar scrub' },
    button('|◀', () => moveTo(0), { class: 'tiny', 'aria-label': 'To the beginning (Home)' }),
    button('◀', () => moveBy(-1), { class: 'tiny', 'aria-label': 'One event back (←)' }),
    play,
    button('▶|', () => moveBy(1), { class: 'tiny', 'aria-label': 'One event on (→)' }),
    slider,
    place,
  );
  const sides = h('div', { class: 'sides' });
  const node = h('div', { class: 'stream-tab', 'aria-busy': 'true' }, controls, sides);

  const at = (): number => {
    const { query } = currentRoute();
    const wanted = query.n === undefined ? steps.length : Number(query.n);
    return Math.max(0, Math.min(steps.length, Number.isInteger(wanted) ? wanted : steps.length));
  };
  function moveTo(n: number): void {
    const route = currentRoute();
    if (route.name !== 'exchange') return;
    const to = Math.max(0, Math.min(steps.length, n));
    go(withQuery(route, { n: String(to) }), true);
  }
  const moveBy = (by: number) => moveTo(at() + by);

  function toggle(on = playing === 0): void {
    clearInterval(playing);
    playing = 0;
    if (on) {
      if (at() >= steps.length) moveTo(0);
      playing = window.setInterval(() => {
        if (at() >= steps.length) toggle(false);
        else moveBy(1);
      }, PACE);
    }
    play.textContent = on ? '❚❚' : '▶';
    play.setAttribute('aria-label', on ? 'Stop' : 'Play');
  }

  async function read(stage: string): Promise<readonly EventView[]> {
    const events: EventView[] = [];
    for (;;) {
      const page = await getEvents(row.id, stage, events.length, stop.signal);
      events.push(...page.events);
      if (page.events.length === 0 || events.length >= Math.min(page.total, MAX)) return events;
    }
  }

  async function load(): Promise<void> {
    const streamed = (stage: string | null | undefined): stage is string => {
      const stageInfo = stage ? stageInfoOf(meta, stage) : undefined;
      return stageInfo !== undefined && isStream(stageInfo);
    };
    const inward = detail.hops
      .map(({ tries }) => tries.find(({ counted }) => counted)?.response)
      .filter(streamed);
    const outward = ['client-response'].filter(streamed);
    if (inward.length + outward.length === 0) {
      node.removeAttribute('aria-busy');
      const message =
        row.state === 'open'
          ? 'This exchange is still running. Its events appear here when it ends.'
          : 'This exchange was not streamed.';
      replace(node, h('p', { class: 'same-words', role: 'status' }, message));
      return;
    }
    try {
      const tape = async (stages: readonly string[]) =>
        tapeOf(
          await Promise.all(stages.map(async (stage) => ({ stage, events: await read(stage) }))),
        );
      [left, right] = await Promise.all([tape(inward), tape(outward)]);
      steps = stepsOf(left, right);
      slider.max = String(steps.length);
      node.removeAttribute('aria-busy');
      draw();
    } catch (thrown) {
      const message = failureText(thrown);
      if (message !== undefined)
        replace(node, h('p', { class: 'problem', role: 'alert' }, message));
    }
  }

  function draw(): void {
    if (steps.length === 0) return;
    const n = at();
    const now = steps[n - 1] ?? { left: 0, right: 0 };
    const before = steps[n - 2] ?? { left: 0, right: 0 };
    slider.value = String(n);
    slider.setAttribute('aria-valuetext', `event ${n} of ${steps.length}`);
    replace(place, `${count(n)} / ${count(steps.length)}`);
    replace(
      sides,
      side('In: from the vendor', left, now.left, now.left > before.left, (index) =>
        moveTo(stepWith('left', index)),
      ),
      side('Out: to the client', right, now.right, now.right > before.right, (index) =>
        moveTo(stepWith('right', index)),
      ),
    );
    for (const box of sides.querySelectorAll('.spoken')) box.scrollTop = box.scrollHeight;
  }

  /** The step after which `events` events of a side are over. */
  const stepWith = (which: 'left' | 'right', events: number) =>
    steps.findIndex((step) => step[which] === events) + 1;

  void load();
  return {
    node,
    show: draw,
    press(event) {
      if (event.target === slider) return false;
      if (event.key === 'ArrowRight') moveBy(event.shiftKey ? 10 : 1);
      else if (event.key === 'ArrowLeft') moveBy(event.shiftKey ? -10 : -1);
      else if (event.key === 'Home') moveTo(0);
      else if (event.key === 'End') moveTo(steps.length);
      else if (event.key === ' ' && !(event.target instanceof HTMLButtonElement)) toggle();
      else return false;
      return true;
    },
    close() {
      toggle(false);
      stop.abort();
    },
  };
}

function side(
  title: string,
  tape: Tape,
  upto: number,
  moved: boolean,
  choose: (events: number) => void,
): HTMLElement {
  const { events } = tape;
  const current = events[upto - 1];
  const from = Math.max(0, Math.min(upto - BEFORE, events.length - BEFORE - BEHIND));
  const lines = events.slice(from, Math.max(from, upto) + BEHIND).map((event, i) => {
    const number = from + i + 1;
    const state = number === upto ? 'now' : number < upto ? 'over' : 'to-come';
    const newStage = event.stage !== events[from + i - 1]?.stage;
    return [
      newStage && h('li', { class: 'tape-stage', 'aria-hidden': 'true' }, stageTitle(event.stage)),
      h(
        'li',
        { class: 'tape-line', 'data-state': state, 'data-moved': String(moved) },
        button(
          [
            h('span', { class: 'n' }, number),
            h('span', { class: 'event' }, event.name || kindOf(event)),
            h('span', { class: 'words' }, eventText(event).slice(0, 200)),
            event.at !== undefined && h('span', { class: 'at' }, millis(event.at)),
          ],
          () => choose(number),
          { 'aria-current': state === 'now' ? 'step' : null },
        ),
      ),
    ];
  });
  return h(
    'section',
    { class: 'tape', 'aria-label': title },
    h('h2', null, title, h('small', null, ` ${count(upto)} of ${count(events.length)} events`)),
    h(
      'div',
      { class: 'spoken', tabindex: 0, 'aria-label': 'Output so far' },
      speech(spoken(tape, upto)),
    ),
    h('ol', { class: 'tape-lines' }, lines),
    h(
      'pre',
      { class: 'frame', tabindex: 0, 'aria-label': 'Current event' },
      current === undefined ? '' : pretty(current),
    ),
  );
}

const kindOf = (event: EventView): string => event.says[0]?.type ?? 'data';

function pretty({ raw }: EventView): string {
  if (raw.chars !== undefined) return `${raw.text}\n… ${count(raw.chars)} characters in all`;
  try {
    return JSON.stringify(JSON.parse(raw.text), null, 2);
  } catch {
    return raw.text;
  }
}

function speech(parts: readonly Spoken[]): Child {
  if (parts.length === 0) return h('p', { class: 'soft' }, 'No output yet.');
  return parts.map(({ of, text, name }) =>
    h(
      'div',
      { class: 'speech', 'data-of': of, dir: 'auto' },
      of !== 'text' && h('b', null, name === undefined ? of : `${of} ${name}`),
      text.length > SAID ? `…${text.slice(-SAID)}` : text,
    ),
  );
}

/** The cost of each turn of a session: means over sessions, a table in Markdown, and a line chart in SVG. */

/** What is compared; the table and the chart have them in this order. */
export const CONTENDERS = ['relay', 'before', 'now'] as const;
export type Contender = (typeof CONTENDERS)[number];

export interface Panel {
  readonly title: string;
  /** Of each turn's body. */
  readonly kilobytes: readonly number[];
  /** Milliseconds of CPU of each turn. */
  readonly lines: Readonly<Record<Contender, readonly number[]>>;
  /** Milliseconds of CPU behind the last answer. */
  readonly rest: Readonly<Record<Contender, number>>;
}

/** The same for each of the contenders. */
export const byContender = <T>(make: (name: Contender) => T): Record<Contender, T> => ({
  relay: make('relay'),
  before: make('before'),
  now: make('now'),
});

export const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The mean of each turn over the sessions. @throws unless all have the same number of turns */
export function meanTurns(sessions: readonly (readonly number[])[]): number[] {
  const turns = sessions[0]?.length ?? 0;
  if (sessions.some((session) => session.length !== turns)) {
    throw new Error('sessions of different lengths have no common mean');
  }
  return Array.from({ length: turns }, (_, turn) => mean(sessions.map((one) => one[turn]!)));
}

const TURNS_A_ROW = 10;

/** The first and last turn of each row, from 1: the first turn alone, since it finds nothing kept; the rest by tens; the whole. */
function rowsOf(turns: number): [from: number, to: number][] {
  const rows: [number, number][] = [[1, 1]];
  for (let to = TURNS_A_ROW; rows.at(-1)![1] < turns; to += TURNS_A_ROW) {
    rows.push([rows.at(-1)![1] + 1, Math.min(to, turns)]);
  }
  return [...rows, [1, turns]];
}

/** The cells of a panel's table: means over the turns of each row, and the rest. */
export function panelRows({ kilobytes, lines, rest }: Panel): string[][] {
  const cells = ({ relay, before, now }: Readonly<Record<Contender, number>>) =>
    [relay, before, now, before / relay, now / relay].map((value) => value.toFixed(2));
  const rows = rowsOf(kilobytes.length).map(([from, to]) => {
    const over = (values: readonly number[]) => mean(values.slice(from - 1, to));
    return [
      from === to ? `${from}` : `${from}–${to}`,
      over(kilobytes).toFixed(0),
      ...cells(byContender((name) => over(lines[name]))),
    ];
  });
  return [...rows, ['rest', '–', ...cells(rest)]];
}

export const PANEL_HEAD = [
  'turns',
  'KB of body',
  ...CONTENDERS.map((name) => `${name}, ms`),
  'before, × relay',
  'now, × relay',
];

/** Round numbers from 0 up to the first that is not below `highest`, at most nine of them. */
export function ticksTo(highest: number): number[] {
  const power = 10 ** Math.floor(Math.log10(highest / 8));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => highest / one <= 8)!;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, i) =>
    Number((i * step).toPrecision(6)),
  );
}

/** Moves ascending places apart until each is `gap` from the next, the lowest ones up first; none goes above `limit`. */
export function spread(places: readonly number[], gap: number, limit: number): number[] {
  const out: number[] = [];
  for (const place of places) out.push(Math.max(place, (out.at(-1) ?? -Infinity) + gap));
  for (let i = out.length - 1, top = limit; i >= 0; i--, top = out[i + 1]! - gap) {
    out[i] = Math.min(out[i]!, top);
  }
  return out;
}

const WIDTH = 900;
const COLUMNS = 2;
const HEAD = 44;
const PLOT = 250;
/** A panel with its axes; what stands under the panels. */
const PANEL = HEAD + PLOT + 52;
const FOOT = 34;
const LEFT = 58;
const RIGHT = 72;
const LABEL_GAP = 16;
const MARK_EVERY = 10;

const STYLE = `text{font:14px system-ui,sans-serif;fill:#1c2128}.s{font-size:12px;fill:#57606a}.p{fill:#fff}.g{stroke:#e3e7eb;fill:none}.l{fill:none;stroke-width:2;stroke-linejoin:round}.relay{stroke:#6e7781}.before{stroke:#b4540a;stroke-dasharray:6 3}.now{stroke:#2268b8}.t-relay{fill:#57606a}.t-before{fill:#a04a08}.t-now{fill:#1d5ca6}@media(prefers-color-scheme:dark){text{fill:#e2e6ea}.s{fill:#9aa4ae}.p{fill:#14181d}.g{stroke:#2a3138}.relay{stroke:#9aa4ae}.before{stroke:#f0a35e}.now{stroke:#6fb0f5}.t-relay{fill:#9aa4ae}.t-before{fill:#f0a35e}.t-now{fill:#7db8f7}}`;

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const at = (value: number) => String(Math.round(value * 10) / 10);
const text = (x: number, y: number, words: string, { anchor = 'middle', name = 's' } = {}) =>
  `<text class="${name}" x="${at(x)}" y="${at(y)}" text-anchor="${anchor}">${escaped(words)}</text>`;

const ticksEvery = (step: number, most: number) =>
  Array.from({ length: Math.floor(most / step) }, (_, i) => (i + 1) * step);

function panelPicture(
  panel: Panel,
  left: number,
  top: number,
  width: number,
  ticks: readonly number[],
) {
  const turns = panel.kilobytes.length;
  const [from, to] = [left + LEFT, left + width - RIGHT];
  const [bottom, highest] = [top + HEAD + PLOT, ticks.at(-1)!];
  const x = (turn: number) => from + ((turn - 1) / Math.max(1, turns - 1)) * (to - from);
  const y = (value: number) => bottom - (value / highest) * PLOT;
  const grid = ticks.flatMap((tick) => [
    `<path class="g" d="M${at(from)} ${at(y(tick))}H${at(to)}"/>`,
    text(from - 8, y(tick) + 4, String(tick), { anchor: 'end' }),
  ]);
  const marked = [1, ...ticksEvery(MARK_EVERY, turns)];
  const below = marked.flatMap((turn) => [
    text(x(turn), bottom + 18, String(turn)),
    text(x(turn), bottom + 35, panel.kilobytes[turn - 1]!.toFixed(0)),
  ]);
  const ends = CONTENDERS.map((name) => ({ name, value: panel.lines[name].at(-1)! })).sort(
    (a, b) => y(a.value) - y(b.value),
  );
  const places = spread(
    ends.map(({ value }) => y(value) + 4),
    LABEL_GAP,
    bottom + 4,
  );
  return [
    text(from, top + 18, panel.title, { anchor: 'start', name: 'h' }),
    text(left + 8, top + HEAD - 12, 'ms of CPU', { anchor: 'start' }),
    ...grid,
    ...below,
    text(left + 8, bottom + 18, 'turn', { anchor: 'start' }),
    text(left + 8, bottom + 35, 'KB', { anchor: 'start' }),
    ...CONTENDERS.map((name) => {
      const points = panel.lines[name].map((value, i) => `${at(x(i + 1))} ${at(y(value))}`);
      return `<path class="l ${name}" d="M${points.join('L')}"/>`;
    }),
    ...ends.map(({ name }, i) =>
      text(to + 8, places[i]!, name, { anchor: 'start', name: `t-${name}` }),
    ),
  ];
}

/** The panels side by side, on one scale. `about` says what they show; `foot` how it was measured. */
export function turnChart(panels: readonly Panel[], about: string, foot: string): string {
  const values = panels.flatMap(({ lines }) => CONTENDERS.flatMap((name) => lines[name]));
  const ticks = ticksTo(Math.max(...values));
  const columns = Math.min(COLUMNS, panels.length);
  const height = Math.ceil(panels.length / columns) * PANEL + FOOT;
  const drawn = panels.flatMap((panel, i) =>
    panelPicture(
      panel,
      (i % columns) * (WIDTH / columns),
      Math.floor(i / columns) * PANEL,
      WIDTH / columns,
      ticks,
    ),
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="t">`,
    `<title id="t">${escaped(about)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${height}" class="p"/>`,
    ...drawn,
    text(WIDTH / 2, height - 14, foot),
    '</svg>',
  ].join('\n')}\n`;
}

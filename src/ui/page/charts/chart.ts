/** One chart over time: stacked bars or lines, with axes, a legend that shows values, and a table. */

import { attribute, button, h, replace, s } from '../kit/dom.ts';
import { clock, day } from '../kit/format.ts';
import { type ChartData, type Series, span } from './chart-series.ts';
import { chartTable } from './chart-table.ts';
import { dayLabels, roundUp, ticks, timeTicks } from './scale.ts';

export interface Chart {
  readonly node: HTMLElement;
  draw(data: ChartData): void;
  /** Marks a bucket; undefined: none. */
  point(index: number | undefined): void;
}

const DAY_MS = 86_400_000;
const HEIGHT = 168;
const LEFT = 50;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

/** @param pointed called with the bucket under the pointer; `chosen`: with a clicked bucket */
export function createChart(
  pointed: (index: number | undefined) => void,
  chosen: (index: number) => void,
): Chart {
  let data: ChartData | undefined;
  let width = 480;
  let at: number | undefined;
  const picture = s('svg', { class: 'chart-picture' });
  const cursor = s('g', { class: 'cursor' });
  const figure = h(
    'div',
    {
      class: 'chart-area',
      tabindex: 0,
      role: 'group',
      on: {
        pointermove: (event) => pointed(bucketAt(event)),
        pointerleave: () => pointed(undefined),
        click: (event) => {
          const index = bucketAt(event);
          if (index !== undefined) chosen(index);
        },
        blur: () => pointed(undefined),
        keydown: (event) => {
          const last = (data?.times.length ?? 1) - 1;
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (step !== undefined)
            pointed(Math.max(0, Math.min(last, (at ?? (step > 0 ? -1 : last + 1)) + step)));
          else if (event.key === 'Enter' && at !== undefined) chosen(at);
          else return;
          event.preventDefault();
          event.stopPropagation();
        },
      },
    },
    picture,
  );
  const title = h('h2');
  const when = h('span', { class: 'when' });
  const legend = h('ul', { class: 'chart-legend' });
  const table = h('div', { class: 'tablebox chart-table', hidden: true });
  const asTable = button(
    'table',
    () => {
      table.hidden = !table.hidden;
      figure.hidden = !table.hidden;
      asTable.setAttribute('aria-pressed', String(!table.hidden));
      drawTable();
    },
    { class: 'tiny as-table', 'aria-pressed': 'false' },
  );
  const node = h(
    'section',
    { class: 'chart' },
    h('header', null, title, when, asTable),
    legend,
    figure,
    table,
  );

  new ResizeObserver(([entry]) => {
    const next = Math.round(entry!.contentRect.width);
    if (next === width || next === 0) return;
    width = next;
    redraw();
  }).observe(figure);

  const inner = () => width - LEFT - RIGHT;
  const xOf = (index: number) => LEFT + (index / data!.times.length) * inner();
  function bucketAt(event: PointerEvent | MouseEvent): number | undefined {
    if (data === undefined) return undefined;
    const x = event.clientX - figure.getBoundingClientRect().left - LEFT;
    const index = Math.floor((x / inner()) * data.times.length);
    return index >= 0 && index < data.times.length ? index : undefined;
  }

  function highest(): number {
    if (data!.top !== undefined) return data!.top;
    const { series, kind, times } = data!;
    const each = times.map((_, i) =>
      kind === 'bars'
        ? series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)
        : Math.max(0, ...series.map(({ values }) => values[i] ?? 0)),
    );
    return roundUp(Math.max(...each, 0));
  }

  function redraw(): void {
    if (data === undefined) return;
    const { times, bucketMs, series, kind, format } = data;
    attribute(picture, 'viewBox', `0 0 ${width} ${HEIGHT}`);
    attribute(picture, 'width', width);
    attribute(picture, 'height', HEIGHT);
    attribute(picture, 'aria-hidden', 'true');
    const top = highest();
    const y = (value: number) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
    const from = times[0] ?? 0;
    const to = (times.at(-1) ?? 0) + bucketMs;
    const long = to - from > 36 * 3_600_000;
    const timeLabel = (time: number) =>
      long && clock(time) === '00:00:00'
        ? day(time).slice(5)
        : clock(time).slice(0, bucketMs < 10_000 && to - from < 300_000 ? 8 : 5);
    const xTime = (time: number) => LEFT + ((time - from) / (to - from)) * inner();
    const wanted = Math.max(2, Math.floor(inner() / 64));
    // The label of a day or a month stands below the middle of its bar.
    const marks =
      bucketMs >= DAY_MS
        ? dayLabels(times, bucketMs, wanted).map(({ index, text }) => ({
            x: xOf(index) + inner() / times.length / 2,
            text,
          }))
        : timeTicks(from, to, wanted).map((time) => ({ x: xTime(time), text: timeLabel(time) }));
    replace(
      picture,
      ticks(0, top, 4)
        .filter((value) => data?.whole !== true || Number.isInteger(value))
        .map((value) => [
          s('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
          s(
            'text',
            { class: 'tick-text', x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' },
            format(value),
          ),
        ]),
      marks.map(({ x, text }) =>
        s(
          'text',
          {
            class: 'tick-text',
            x: Math.min(Math.max(x, LEFT + 10), width - 18),
            y: HEIGHT - 6,
            'text-anchor': 'middle',
          },
          text,
        ),
      ),
      kind === 'bars' ? bars(series, y, times.length) : series.map((one) => line(one, y)),
      cursor,
    );
    const none = series.every(({ values }) =>
      values.every((value) => value === null || value === 0),
    );
    if (none) {
      picture.append(
        s(
          'text',
          { class: 'none', x: LEFT + inner() / 2, y: HEIGHT / 2, 'text-anchor': 'middle' },
          'no data in this period',
        ),
      );
    }
    point(at);
  }

  function bars(
    series: readonly Series[],
    y: (value: number) => number,
    length: number,
  ): SVGElement[] {
    const step = inner() / length;
    const gap = step > 6 ? Math.min(3, step * 0.2) : 0;
    const out: SVGElement[] = [];
    for (let i = 0; i < length; i++) {
      let sum = 0;
      for (const { tone, values } of series) {
        const value = values[i] ?? 0;
        if (value <= 0) continue;
        const low = y(sum);
        sum += value;
        const height = Math.max(1, low - y(sum));
        out.push(
          s('rect', {
            class: `mark ${tone}`,
            x: xOf(i) + gap / 2,
            width: Math.max(1, step - gap),
            y: low - height,
            height,
          }),
        );
      }
    }
    return out;
  }

  /** Gaps stay gaps; a single value between two gaps is a dot. */
  function line({ tone, values }: Series, y: (value: number) => number): SVGElement {
    const step = inner() / values.length;
    const parts: string[] = [];
    const dots: SVGElement[] = [];
    values.forEach((value, i) => {
      if (value === null) return;
      const x = (xOf(i) + step / 2).toFixed(1);
      const alone = values[i - 1] == null && values[i + 1] == null;
      if (alone) dots.push(s('circle', { class: `mark ${tone}`, cx: x, cy: y(value), r: 2.5 }));
      parts.push(`${values[i - 1] == null ? 'M' : 'L'}${x} ${y(value).toFixed(1)}`);
    });
    return s('g', null, s('path', { class: `stroke ${tone}`, d: parts.join('') }), dots);
  }

  function drawLegend(): void {
    if (data === undefined) return;
    const { series, format } = data;
    replace(
      legend,
      series.map(({ name, tone, values }) => {
        const value = at === undefined ? undefined : values[at];
        return h(
          'li',
          null,
          h('i', { class: `key ${tone}` }),
          h('span', null, name),
          // The value keeps its space, so that pointing does not move the layout.
          h('b', null, at === undefined ? '' : value == null ? '–' : format(value)),
        );
      }),
    );
  }

  function point(index: number | undefined): void {
    at = index;
    if (data === undefined) return;
    drawLegend();
    replace(when, at === undefined ? (data.total ?? '') : span(data.times[at]!, data.bucketMs));
    cursor.replaceChildren();
    if (at !== undefined && at < data.times.length) {
      cursor.append(
        s('rect', {
          class: 'cursor-band',
          x: xOf(at),
          width: inner() / data.times.length,
          y: TOP,
          height: HEIGHT - TOP - BOTTOM,
        }),
      );
    }
    const values = at === undefined ? '' : legend.textContent;
    attribute(
      figure,
      'aria-label',
      `${data.title}. Arrow keys move through time. ${when.textContent} ${values}`,
    );
  }

  function drawTable(): void {
    if (!table.hidden && data !== undefined) replace(table, chartTable(data));
  }

  return {
    node,
    point,
    draw(next) {
      data = next;
      replace(title, next.title);
      redraw();
      drawTable();
    },
  };
}

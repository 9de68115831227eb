/** One chart over time: stacked bars or lines, with axes, a legend that shows values, and a table. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clock, day, onAxis } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { type Column, Table } from '../kit/table.tsx';
import { Button } from '../kit/ui.tsx';
import {
  type ChartData,
  DAY_MS,
  dayLabels,
  roundUp,
  type Series,
  span,
  ticks,
  timeTicks,
} from './scale.ts';

const HEIGHT = 168;
/** Room for the labels of the axis, at least, and for each of their characters. */
const LEFT = 50;
const CHARACTER = 6.5;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

type Index = number | undefined;

interface ChartProps {
  readonly data: ChartData;
  /** The bucket that is marked in several charts; left out: this chart has its own. */
  readonly pointer?: readonly [at: Index, point: (index: Index) => void];
  /** Called with a clicked bucket. */
  readonly choose?: (index: number) => void;
}

export function Chart({ data, pointer, choose }: ChartProps) {
  const area = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  const [asTable, setAsTable] = useState(false);
  const own = useState<Index>();
  const [at, point] = pointer ?? own;
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const next = Math.round(entry!.contentRect.width);
      if (next > 0) setWidth(next);
    });
    observer.observe(area.current!);
    return () => observer.disconnect();
  }, []);
  const { times, series, format } = data;
  const left = leftOf(data);
  const inner = width - left - RIGHT;
  const bucketAt = (event: MouseEvent): Index => {
    const x = event.clientX - area.current!.getBoundingClientRect().left - left;
    const index = Math.floor((x / inner) * times.length);
    return index >= 0 && index < times.length ? index : undefined;
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      const from = at ?? (step > 0 ? -1 : times.length);
      point(Math.max(0, Math.min(times.length - 1, from + step)));
    } else if (event.key === 'Enter' && at !== undefined) choose?.(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const when = at === undefined ? (data.total ?? '') : span(times[at]!, data.bucketMs);
  const values = series.map(({ name, values: all }) => {
    const value = at === undefined ? undefined : all[at];
    return [name, at === undefined ? '' : value == null ? '–' : format(value)] as const;
  });
  const read = at === undefined ? '' : values.flat().join('');
  return (
    <section class="chart">
      <header>
        <h2>{data.title}</h2>
        <span class="when">{when}</span>
        <Button
          class="tiny as-table"
          aria-pressed={asTable}
          onClick={() => setAsTable(!asTable)}
        >{t`table`}</Button>
      </header>
      <ul class="chart-legend">
        {values.map(([name, value], i) => (
          <li key={name}>
            <i class={`key ${series[i]!.tone}`} />
            <span>{name}</span>
            {/* The value keeps its space, so that pointing does not move the layout. */}
            <b>{value}</b>
          </li>
        ))}
      </ul>
      <div
        class="chart-area"
        ref={area}
        hidden={asTable}
        tabIndex={0}
        role="group"
        aria-label={t`${data.title}. Arrow keys move through time. ${when} ${read}`}
        onPointerMove={(event) => point(bucketAt(event))}
        onPointerLeave={() => point(undefined)}
        onClick={(event) => {
          const index = bucketAt(event);
          if (index !== undefined) choose?.(index);
        }}
        onBlur={() => point(undefined)}
        onKeyDown={press}
      >
        <Picture data={data} width={width} at={at} />
      </div>
      {asTable && <Values data={data} />}
    </section>
  );
}

function highest({ top, series, kind, times }: ChartData): number {
  if (top !== undefined) return top;
  const each = times.map((_, i) => {
    const values = series.map((one) => one.values[i] ?? 0);
    return kind === 'bars' ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values);
  });
  return roundUp(Math.max(...each, 0));
}

/** The labels of the values. */
const labelsAt = (data: ChartData) =>
  ticks(0, highest(data), 4)
    .filter((value) => data.whole !== true || Number.isInteger(value))
    .map((value) => [value, onAxis(data.format)(value)] as const);

const leftOf = (data: ChartData): number =>
  Math.max(LEFT, ...labelsAt(data).map(([, text]) => text.length * CHARACTER + 10));

function Picture({ data, width, at }: { data: ChartData; width: number; at: Index }) {
  const { times, bucketMs, series, kind } = data;
  const left = leftOf(data);
  const inner = width - left - RIGHT;
  const top = highest(data);
  const x = (index: number) => left + (index / times.length) * inner;
  const y = (value: number) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const step = inner / times.length;
  const isEmpty = series.every(({ values }) => values.every((value) => !value));
  return (
    <svg
      class="chart-picture"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      width={width}
      height={HEIGHT}
      aria-hidden="true"
    >
      {(isEmpty ? [] : labelsAt(data)).map(([value, text]) => (
        <>
          <line class="grid" x1={left} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
          <text class="tick-text" x={left - 6} y={y(value) + 4} text-anchor="end">
            {text}
          </text>
        </>
      ))}
      {labelsOf(times, bucketMs, inner).map(({ share, text }) => (
        <text
          class="tick-text"
          x={Math.min(Math.max(left + share * inner, left + 10), width - 18)}
          y={HEIGHT - 6}
          text-anchor="middle"
        >
          {text}
        </text>
      ))}
      {kind === 'bars'
        ? times.map((_, i) => <Stack series={series} index={i} x={x(i)} step={step} y={y} />)
        : series.map((one) => <Line {...one} x={(i) => x(i) + step / 2} y={y} />)}
      {at !== undefined && at < times.length && (
        <rect class="cursor-band" x={x(at)} width={step} y={TOP} height={HEIGHT - TOP - BOTTOM} />
      )}
      {isEmpty && (
        <text
          class="none"
          x={left + inner / 2}
          y={HEIGHT / 2}
          text-anchor="middle"
        >{t`no data in this period`}</text>
      )}
    </svg>
  );
}

/** The labels of the axis, by their share of it. The label of a day or a month stands below the middle of its bar. */
function labelsOf(times: readonly number[], bucketMs: number, inner: number) {
  const from = times[0] ?? 0;
  const to = (times.at(-1) ?? 0) + bucketMs;
  const wanted = Math.max(2, Math.floor(inner / 64));
  if (bucketMs >= DAY_MS) {
    return dayLabels(times, bucketMs, wanted).map(({ index, text }) => ({
      share: (index + 0.5) / times.length,
      text,
    }));
  }
  const long = to - from > 36 * 3_600_000;
  const digits = bucketMs < 10_000 && to - from < 300_000 ? 8 : 5;
  return timeTicks(from, to, wanted).map((time) => ({
    share: (time - from) / (to - from),
    text: long && clock(time) === '00:00:00' ? day(time).slice(5) : clock(time).slice(0, digits),
  }));
}

interface StackProps {
  readonly series: readonly Series[];
  readonly index: number;
  readonly x: number;
  readonly step: number;
  readonly y: (value: number) => number;
}

function Stack({ series, index, x, step, y }: StackProps) {
  const gap = step > 6 ? Math.min(3, step * 0.2) : 0;
  let sum = 0;
  return (
    <>
      {series.map(({ tone, values }) => {
        const value = values[index] ?? 0;
        if (value <= 0) return null;
        const low = y(sum);
        sum += value;
        const height = Math.max(1, low - y(sum));
        const place = { x: x + gap / 2, y: low - height, width: Math.max(1, step - gap), height };
        return <rect class={`mark ${tone}`} {...place} />;
      })}
    </>
  );
}

type LineProps = Series & { x(index: number): number; y(value: number): number };

/** Gaps stay gaps; a single value between two gaps is a dot. */
function Line({ tone, values, x, y }: LineProps) {
  const path = values.map((value, i) =>
    value === null
      ? ''
      : `${values[i - 1] == null ? 'M' : 'L'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`,
  );
  return (
    <g>
      <path class={`stroke ${tone}`} d={path.join('')} />
      {values.map(
        (value, i) =>
          value !== null &&
          values[i - 1] == null &&
          values[i + 1] == null && (
            <circle class={`mark ${tone}`} cx={x(i)} cy={y(value)} r={2.5} />
          ),
      )}
    </g>
  );
}

/** One line for each bucket with a value: for screen readers and exact values. */
function Values({ data: { title, times, series, format, bucketMs } }: { data: ChartData }) {
  const rows = times
    .map((time, i) => ({ time, values: series.map(({ values }) => values[i] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0));
  if (rows.length === 0) return <p class="soft">{t`Nothing in this time.`}</p>;
  return (
    <div class="chart-table">
      <Table
        label={title}
        rows={rows}
        columns={[
          [t`Time`, ({ time }) => span(time, bucketMs)],
          ...series.map(
            ({ name }, i): Column<(typeof rows)[number]> => [
              name,
              ({ values }) => (values[i] == null ? '–' : format(values[i])),
              'num',
            ],
          ),
        ]}
      />
    </div>
  );
}

/** A small Prometheus registry: counters, gauges and histograms in the text exposition format 0.0.4. */

import { cutText } from '../lib/text/printable-text.ts';

/** Label values are in the order of the metric's label names. */
export interface Counter {
  add(by: number, a?: string, b?: string, c?: string): void;
}

export interface Gauge extends Counter {
  set(value: number, a?: string, b?: string, c?: string): void;
}

export interface Histogram {
  /** In the unit that the metric's name says, usually seconds. */
  observe(value: number, a?: string, b?: string, c?: string): void;
}

export interface Registry {
  /** With `read`, the value is read whenever the metrics are rendered. */
  counter(name: string, help: string, labels?: readonly string[], read?: () => number): Counter;
  gauge(name: string, help: string, labels?: readonly string[], read?: () => number): Gauge;
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: readonly string[],
  ): Histogram;
  render(): string;
  /** The same numbers as {@link render}, as data. */
  families(): readonly MetricFamily[];
}

/** One metric with all its series. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets, the last one (+Inf) left out. */
  readonly buckets: readonly number[];
  readonly series: readonly MetricSeries[];
}

/** One series: the values of its labels, and its number or its counts. */
export interface MetricSeries {
  readonly labels: readonly string[];
  /** Of a counter or gauge; of a histogram the sum of all observations. */
  readonly value: number;
  /** Of a histogram: observations by bucket, not cumulative; one more than there are bounds. */
  readonly counts?: readonly number[];
}

// Clients choose model names, and a model name is a label. Above this number of series, a metric counts new
// ones under `other`, so that made-up names cannot fill the memory.
const MAX_SERIES = 1000;

// Characters of a label value. Longer values that begin alike share a series.
const MAX_LABEL = 128;

// Cells found without the maps: as many as there are kinds of tokens in one exchange.
const MAX_RECENT = 5;

interface RecentCell<T> {
  readonly a: string;
  readonly b: string;
  readonly c: string;
  readonly cell: T;
}

/** Cells by their label values, in three levels of maps, so that finding one allocates nothing. */
function cells<T>(labels: readonly string[], make: () => T) {
  const root = new Map<string, Map<string, Map<string, T>>>();
  const list: { readonly text: string; readonly values: readonly string[]; readonly cell: T }[] =
    [];
  // An exchange mostly has the same labels as the one before, so its cells are among the last few.
  const recent: RecentCell<T>[] = [];
  let oldest = 0;
  const get = (a = '', b = '', c = ''): T => {
    for (const one of recent) if (one.a === a && one.b === b && one.c === c) return one.cell;
    const cell = root.get(a)?.get(b)?.get(c) ?? find(labelValue(a), labelValue(b), labelValue(c));
    if (a.length + b.length + c.length <= 3 * MAX_LABEL) {
      recent[oldest] = { a, b, c, cell };
      oldest = (oldest + 1) % MAX_RECENT;
    }
    return cell;
  };
  const find = (a: string, b: string, c: string): T => {
    const known = root.get(a)?.get(b)?.get(c);
    if (known !== undefined) return known;
    if (list.length >= MAX_SERIES && a !== 'other') return find('other', 'other', 'other');
    const cell = make();
    const second = root.get(a) ?? new Map<string, Map<string, T>>();
    const third = second.get(b) ?? new Map<string, T>();
    root.set(a, second.set(b, third.set(c, cell)));
    const values = [a, b, c].slice(0, labels.length);
    const text = labels.map((label, i) => `${label}="${escaped(values[i] ?? '')}"`).join(',');
    list.push({ text, values, cell });
    return cell;
  };
  if (labels.length === 0) get();
  return { get, list };
}

const CONTROL = /(?!\n)[\p{Cc}\u2028\u2029]/gu;
const labelValue = (value: string) =>
  cutText(value, MAX_LABEL).toWellFormed().replace(CONTROL, ' ');
const escaped = (value: string) =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
const braces = (labels: string) => (labels === '' ? '' : `{${labels}}`);

/** An empty registry. Metrics render in the order in which they were made. */
export function createRegistry(): Registry {
  const renderers: (() => string)[] = [];
  const readers: (() => MetricFamily)[] = [];
  const head = (name: string, help: string, type: string) =>
    `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;

  const gauge = (
    type: 'counter' | 'gauge',
    name: string,
    help: string,
    labels: readonly string[] = [],
    read?: () => number,
  ): Gauge => {
    const { get, list } = cells(labels, () => ({ value: 0 }));
    const refresh = () => {
      if (read !== undefined) get().value = read();
    };
    readers.push(() => {
      refresh();
      const series = list.map(({ values, cell }) => ({ labels: values, value: cell.value }));
      return { name, help, type, labels, buckets: [], series };
    });
    renderers.push(() => {
      refresh();
      return (
        head(name, help, type) +
        list.map(({ text, cell }) => `${name}${braces(text)} ${cell.value}\n`).join('')
      );
    });
    return {
      add(by, a, b, c) {
        get(a, b, c).value += by;
      },
      set(value, a, b, c) {
        get(a, b, c).value = value;
      },
    };
  };

  return {
    counter: (name, help, labels, read) => gauge('counter', name, help, labels, read),
    gauge: (name, help, labels, read) => gauge('gauge', name, help, labels, read),
    histogram(name, help, buckets, labels = []) {
      const { get, list } = cells(labels, () => ({
        counts: new Float64Array(buckets.length + 1),
        sum: 0,
      }));
      readers.push(() => ({
        name,
        help,
        type: 'histogram',
        labels,
        buckets,
        series: list.map(({ values, cell }) => ({
          labels: values,
          value: cell.sum,
          counts: [...cell.counts],
        })),
      }));
      renderers.push(() => {
        let text = head(name, help, 'histogram');
        for (const { text: own, cell } of list) {
          const comma = own === '' ? '' : `${own},`;
          let total = 0;
          for (let i = 0; i <= buckets.length; i++) {
            total += cell.counts[i]!;
            text += `${name}_bucket{${comma}le="${buckets[i] ?? '+Inf'}"} ${total}\n`;
          }
          text += `${name}_sum${braces(own)} ${cell.sum}\n${name}_count${braces(own)} ${total}\n`;
        }
        return text;
      });
      return {
        observe(value, a, b, c) {
          const cell = get(a, b, c);
          let i = 0;
          while (i < buckets.length && value > buckets[i]!) i++;
          cell.counts[i]!++;
          cell.sum += value;
        },
      };
    },
    render: () => renderers.map((render) => render()).join(''),
    families: () => readers.map((read) => read()),
  };
}

interface Family {
  readonly head: string[];
  readonly type: string;
  /** By name and labels, in the order of their first appearance. */
  readonly series: Map<string, number>;
}

/** Gauges that are not added: the earliest start, the longest uptime, the build, and the worst state of a target or an engine. */
const MINIMUM = new Set(['process_start_time_seconds', 'hopgate_engine_up']);
const MAXIMUM = new Set(['hopgate_uptime_seconds', 'hopgate_build_info', 'hopgate_target_state']);

// `name{labels} value`; labels may contain spaces.
const SERIES = /^(.*) (\S+)$/;

/**
 * Adds up texts in the exposition format, as the registry of this program writes them.
 * @param past texts of processes that have ended: only their counters and histograms count
 */
export function sumMetrics(texts: readonly string[], past: readonly string[] = []): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text, true);
  for (const text of past) addText(families, text, false);
  let out = '';
  for (const { head, series } of families.values()) {
    out += head.map((line) => `${line}\n`).join('');
    for (const [name, value] of series) out += `${name} ${value}\n`;
  }
  return out;
}

function addText(families: Map<string, Family>, text: string, gauges: boolean): void {
  let family: Family | undefined;
  let name = '';
  let help = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = line;
    else if (line.startsWith('# TYPE ')) {
      const [, , called = '', type = ''] = line.split(' ');
      name = called;
      family = families.get(name) ?? { head: [help, line], type, series: new Map() };
      families.set(name, family);
    } else if (family !== undefined && (gauges || family.type !== 'gauge')) {
      const [, key, number] = SERIES.exec(line) ?? [];
      if (key === undefined) continue;
      const { series } = family;
      const value = Number(number);
      const before = series.get(key);
      if (before === undefined) series.set(key, value);
      else if (MINIMUM.has(name)) series.set(key, Math.min(before, value));
      else if (MAXIMUM.has(name)) series.set(key, Math.max(before, value));
      else series.set(key, before + value);
    }
  }
}

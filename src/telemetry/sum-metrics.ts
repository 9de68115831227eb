/** Adds up the metrics of several worker processes. */

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

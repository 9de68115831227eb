/** The metrics of several processes as those of one. */

interface Family {
  readonly head: string[];
  readonly type: string;
  /** By name and labels, in the order in which they came. */
  readonly series: Map<string, number>;
}

/** What of a time or a version cannot be added: the earliest start, the longest life, one and the same build. */
const LEAST = new Set(['process_start_time_seconds']);
const MOST = new Set(['hopgate_uptime_seconds', 'hopgate_build_info']);

// `name{labels} value`, and labels may hold blanks.
const SERIES = /^(.*) (\S+)$/;

/**
 * Adds up texts of the exposition format that the registry of this program writes.
 * @param past texts of processes that are no more: of them only what grows counts
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
      else if (LEAST.has(name)) series.set(key, Math.min(before, value));
      else if (MOST.has(name)) series.set(key, Math.max(before, value));
      else series.set(key, before + value);
    }
  }
}

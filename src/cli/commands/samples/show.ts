/** `hopgate samples show`: one exchange as a timeline of its stages. */

import type { Config } from '../../../config/config.ts';
import { totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import { type Json, tryParse } from '../../../lib/json/json.ts';
import { bytesText } from '../../../lib/text/amounts.ts';
import { printableLines } from '../../../lib/text/printable-text.ts';
import { stageBytes } from '../../../samples/decode/decode-body.ts';
import { pricesOf } from '../../../samples/replay/cost.ts';
import { costOfExchange, hopsOf, type SampleHop } from '../../../samples/replay/hops.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../../../samples/sample.ts';
import type { Invocation } from '../../command.ts';
import { type Columns, plural, printTable } from '../../terminal.ts';
import { sampleNamed } from './open-samples.ts';
import { clock, millis, usd } from './units.ts';

export async function runShow(
  store: SampleStore,
  [id, stage]: readonly string[],
  invocation: Invocation,
  config?: Config,
): Promise<number> {
  const { out, flag } = invocation;
  const meta = await sampleNamed(store, id, 'samples show');
  if (stage !== undefined) return printBody(store, meta, stage, invocation);
  const prices = pricesOf(config ?? { providers: {} });
  const hops = hopsOf(store, meta, prices, await invocation.services());
  const cost = costOfExchange(meta, hops, prices);
  if (flag('json')) {
    const edges = meta.edges.map((edge) => ({ ...edge, path: store.path(meta, edge.stage) }));
    const per_hop = hops.map(({ number, target, usage, finish, cost: usd }) => ({
      hop: number,
      target: target ?? null,
      usage: usage ?? null,
      finish: finish ?? null,
      cost: usd,
    }));
    out.line(JSON.stringify({ ...meta, edges, per_hop, cost }, null, 2));
    return 0;
  }
  out.line(out.paint('bold', meta.id));
  for (const [name, value] of facts(meta, cost)) out.line(`  ${name.padEnd(9)} ${value}`);
  out.line();
  const narrowing = { spare: ['AT', 'WHERE', 'SIZE'], cut: { WHERE: 16 } };
  printTable(out, meta.edges, COLUMNS, narrowing, ({ error, status = 0 }) =>
    error !== undefined || status >= 400 ? 'red' : undefined,
  );
  for (const { name, hop, at, ms, error } of meta.tools ?? []) {
    const when = hop === undefined ? 'before hop 1' : `after hop ${hop}`;
    const began = at === undefined ? '' : `, at ${millis(at)}`;
    out.line(`tool ${name} ${when}${began}: ${error ?? 'done'} in ${millis(ms)}`);
  }
  if (hops.length > 1) {
    out.line();
    for (const hop of hops) out.line(hopLine(hop));
  }
  if (meta.notes.length > 0) {
    out.line();
    out.line(out.paint('bold', 'NOTES'));
    for (const { name, where, what } of meta.notes) {
      out.line(
        `  ${name}${where === undefined ? '' : ` at ${where}`}${what === undefined ? '' : `: ${what}`}`,
      );
    }
  }
  return 0;
}

function facts(meta: SampleMeta, cost: number | null): readonly (readonly [string, string])[] {
  const { error, usage, hops = 1, tries = hops } = meta;
  const all: (readonly [string, string | undefined])[] = [
    ['about', meta.about],
    ['time', `${new Date(meta.time).getFullYear()}-${clock(meta.time)}`],
    ['protocol', meta.entry + (meta.stream === true ? ', streamed' : '')],
    ['model', meta.model],
    ['target', meta.target],
    [
      'status',
      meta.state === 'done'
        ? meta.status?.toString()
        : `${meta.state === 'cut' ? 'unfinished' : meta.state}: it is incomplete`,
    ],
    [
      meta.stream === true && (meta.status ?? 0) < 400 ? 'cut off' : 'error',
      error === undefined ? undefined : `${error.kind}: ${error.message}`,
    ],
    ['attempts', tries > hops ? `${tries} in ${plural(hops, 'hop')}` : undefined],
    ['took', millis(meta.total_ms)],
    ['tokens', usage === undefined ? undefined : tokensText(usage)],
    ['cost', cost === null ? undefined : usd(cost)],
    ['session', meta.session],
    ['address', meta.address],
    ['masked', meta.masked > 0 ? plural(meta.masked, 'credential') : undefined],
  ];
  return all.filter((pair): pair is readonly [string, string] => Boolean(pair[1]));
}

/** `hop 2  glm/glm-4.7: 812 in (640 cached), 96 out, $0.0012`. */
function hopLine({ number, target, usage, cost }: SampleHop): string {
  const place = `hop ${number}  ${target ?? ''}`;
  if (usage === undefined) return place;
  return `${place}: ${tokensText(usage)}${cost === null ? '' : `, ${usd(cost)}`}`;
}

/** `812 in (640 cached), 96 out`. */
function tokensText(usage: Usage): string {
  const cached = usage.cacheRead === undefined ? '' : ` (${usage.cacheRead} cached)`;
  return `${totalInput(usage)} in${cached}, ${totalOutput(usage)} out`;
}

const COLUMNS: Columns<SampleStage> = {
  AT: ({ at }) => millis(at),
  STAGE: ({ stage, cut }) => stage + (cut === true ? ' (cut)' : ''),
  STATUS: ({ made, status }) => (made === true ? 'none' : String(status ?? '')),
  SIZE: (edge) => bytesText(edge.bytes),
  TOOK: ({ at, until }) => millis(at === undefined || until === undefined ? undefined : until - at),
  WHERE: ({ error, url = '' }) => error?.message ?? url,
};

/** The longest string on a terminal without --full. */
const MAX_CHARS = 300;

/**
 * On a terminal JSON is indented and long strings are cut, unless `--full` asks for all of it; other texts are
 * printed as they are. Elsewhere the bytes are written as they were recorded. Binary bodies are named, not printed.
 * @throws GatewayError not_found for an unknown stage
 */
function printBody(
  store: SampleStore,
  meta: SampleMeta,
  stage: string,
  { out, err, flag, io }: Invocation,
): number {
  const body = stageBytes(store, meta, stage);
  const text = textOf(body);
  if (text === undefined) {
    out.line(`${bytesText(body.length)} that are not text: ${store.path(meta, stage)}`);
    return 0;
  }
  if (out.columns === undefined) {
    io.stdout.write(text);
    return 0;
  }
  const value = tryParse(text);
  if (value === undefined) {
    out.line(printableLines(text.trimEnd()));
    return 0;
  }
  let cut = 0;
  const shown = flag('full')
    ? value
    : shortened(value, (length) => {
        cut++;
        return `… (${length} characters)`;
      });
  out.line(printableLines(JSON.stringify(shown, null, 2)));
  if (cut > 0) {
    err.line(`${cut === 1 ? 'One long text is' : `${cut} long texts are`} cut; --full prints all.`);
  }
  return 0;
}

function textOf(body: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The value with long strings cut; `mark` gives what follows the rest of a string of this length. */
function shortened(value: Json, mark: (length: number) => string): Json {
  return JSON.parse(JSON.stringify(value), (_, member: unknown) =>
    typeof member === 'string' && member.length > MAX_CHARS
      ? member.slice(0, MAX_CHARS) + mark(member.length)
      : member,
  ) as Json;
}

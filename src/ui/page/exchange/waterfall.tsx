/** The waterfall of an exchange: hops and tool runs over time, as SVG. */

import type { SampleMeta } from '../../../samples/sample.ts';
import type { HopView, SampleDetail } from '../../api/api.ts';
import { ticks } from '../charts/scale.ts';
import { bytes, millis } from '../kit/format.ts';
import { listed, t } from '../kit/language.ts';
import { exchangeLink } from '../kit/route.ts';
import { toneOf } from '../list/status.ts';
import { isStream, stageInfoOf } from './stages.tsx';

interface Span {
  readonly from: number;
  readonly to: number;
  readonly kind: 'pause' | 'connect' | 'wait' | 'head' | 'stream' | 'tool' | 'client' | 'failed';
}

interface Line {
  readonly name: string;
  readonly what: string;
  readonly tone: 'ok' | 'bad' | 'quiet';
  readonly spans: readonly Span[];
  readonly text: string;
  /** Where a click leads. */
  readonly stage?: string | undefined;
  readonly indent?: boolean;
}

/** The wait before the first byte. */
const THIN: ReadonlySet<Span['kind']> = new Set(['pause', 'connect', 'wait']);

/** Width of the drawing in its own units; it is scaled to the available width. */
const WIDTH = 1000;

const KINDS = [
  ['pause', t`pause before an attempt`],
  ['connect', t`connecting`],
  ['wait', t`sent, waiting`],
  ['head', t`headers received, no body yet`],
  ['stream', t`body`],
  ['tool', t`tool run`],
  ['client', t`written to the client`],
  ['failed', t`failed`],
] as const;

export function Waterfall({ detail }: { detail: SampleDetail }) {
  const lines = linesOf(detail);
  const end = Math.max(1, ...lines.flatMap(({ spans }) => spans.map(({ to }) => to)));
  const steps = ticks(0, end, 6);
  return (
    <div class="waterfall">
      <div class="axis" aria-hidden="true">
        <span />
        <div class="axis-track">
          {steps.map((step) => (
            <span class="tick" key={step} style={{ '--at': String(step / end) }}>
              {millis(step)}
            </span>
          ))}
        </div>
        <span />
      </div>
      <ol>
        {lines.map((line, i) => (
          <li key={i}>
            <LineView line={line} id={detail.row.id} steps={steps} end={end} />
          </li>
        ))}
      </ol>
      <p class="legend">
        {KINDS.map(([kind, text]) => (
          <span key={kind}>
            <i class={`key ${kind}`} />
            {text}
          </span>
        ))}
      </p>
    </div>
  );
}

interface LineViewProps {
  readonly line: Line;
  readonly id: string;
  readonly steps: readonly number[];
  readonly end: number;
}

function LineView({ line, id, steps, end }: LineViewProps) {
  const x = (ms: number) => (Math.max(0, ms) / end) * WIDTH;
  const content = (
    <>
      <span class="line-name" data-tone={line.tone}>
        <b>{line.name}</b>
        <span>{line.what}</span>
      </span>
      <svg class="track" viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none" aria-hidden="true">
        {steps.map((step) => (
          <line key={step} class="grid" x1={x(step)} x2={x(step)} y1={0} y2={20} />
        ))}
        {line.spans.map(({ from, to, kind }, i) => {
          const [y, height] = THIN.has(kind) ? [7, 6] : kind === 'head' ? [5, 10] : [3, 14];
          // A bar of zero length stays visible.
          const width = Math.max(3, x(to) - x(from));
          return (
            <rect key={i} class={`span ${kind}`} x={x(from)} y={y} width={width} height={height} />
          );
        })}
      </svg>
      <span class="line-words" title={line.text}>
        {line.text}
      </span>
    </>
  );
  const cls = ['line', line.indent && 'indent'].filter(Boolean).join(' ');
  if (line.stage === undefined) return <div class={cls}>{content}</div>;
  return (
    <a class={cls} href={exchangeLink(id, 'messages', { edge: line.stage })}>
      {content}
    </a>
  );
}

function linesOf(detail: SampleDetail): readonly Line[] {
  const { hops, meta, row } = detail;
  const response = stageInfoOf(meta, 'client-response');
  // In a running exchange, bars without an end extend to the current time.
  const elapsed = row.state === 'open' ? Math.max(0, Date.now() - row.time) : 0;
  const last = row.total_ms ?? response?.until ?? Math.max(elapsed, latest(meta));
  const lines: Line[] = [];
  for (const hop of hops) {
    let before: number | undefined;
    for (const one of hop.tries) {
      const name = [
        hops.length > 1 && t`hop ${hop.number}`,
        hop.tries.length > 1 && t`attempt ${one.number}`,
      ];
      const line = tryLine(meta, hop, one, before, last);
      lines.push({ name: name.filter(Boolean).join(' ') || t`vendor`, ...line });
      before = stageInfoOf(meta, one.response)?.until;
    }
    for (const { name, at, ms, error } of toolsOf(meta, hop)) {
      const kind = error === undefined ? 'tool' : 'failed';
      lines.push({
        name,
        what: t`tool`,
        tone: error === undefined ? 'ok' : 'bad',
        spans: at === undefined ? [] : [{ from: at, to: at + (ms ?? 0), kind }],
        text: error ?? millis(ms),
        indent: true,
      });
    }
  }
  const first = response?.at ?? row.first_byte_ms ?? undefined;
  const answered: Line = {
    name: t`client`,
    what: row.status > 0 ? String(row.status) : row.state,
    tone: toneOf(row) === 'bad' ? 'bad' : 'ok',
    spans:
      first === undefined
        ? []
        : [
            { from: 0, to: first, kind: 'wait' },
            { from: first, to: Math.max(first, response?.until ?? last), kind: 'client' },
          ],
    text: listed([
      row.state === 'open' ? t`${millis(last)} so far` : millis(row.total_ms),
      response && bytes(response.bytes),
    ]),
    stage: (response ?? stageInfoOf(meta, 'client-request'))?.stage,
  };
  return [answered, ...lines];
}

const toolsOf = ({ tools = [] }: SampleMeta, { number }: HopView) =>
  tools.filter(({ hop }) => hop === number);

const latest = ({ edges }: SampleMeta): number =>
  Math.max(0, ...edges.flatMap(({ at, first, until }) => [at ?? 0, first ?? 0, until ?? 0]));

/** @param before the end of the try before: the pause after it stands on this line */
function tryLine(
  meta: SampleMeta,
  hop: HopView,
  one: HopView['tries'][number],
  before: number | undefined,
  last: number,
): Omit<Line, 'name'> {
  const request = stageInfoOf(meta, one.request);
  const response = stageInfoOf(meta, one.response);
  const { status, error } = response ?? {};
  // Where there was no answer, this gateway wrote the body.
  const answer = response?.made === true ? undefined : response;
  const failed = error !== undefined || (status ?? 0) >= 400;
  const end = response?.until ?? last;
  const sent = request?.at;
  const first = answer?.first;
  const connected = request?.connected ?? sent;
  const paused = before === undefined || sent === undefined ? 0 : sent - before;
  const spans: Span[] = [];
  if (paused >= 1) spans.push({ from: before!, to: sent!, kind: 'pause' });
  if (sent !== undefined && connected !== undefined) {
    const head = answer?.at ?? first ?? end;
    if (connected > sent) spans.push({ from: sent, to: connected, kind: 'connect' });
    spans.push({ from: connected, to: head, kind: 'wait' });
    const body = first ?? end;
    if (body > head) spans.push({ from: head, to: body, kind: 'head' });
    if (first !== undefined || failed) {
      spans.push({ from: Math.min(body, end), to: end, kind: failed ? 'failed' : 'stream' });
    }
  }
  const connecting = (connected ?? 0) - (sent ?? 0);
  const streamed = first === undefined ? '' : millis(end - first);
  const facts = [
    // Short connection times, as on the same machine, are not mentioned.
    connecting >= 1 && t`${millis(connecting)} connect`,
    connected !== undefined && t`${millis((first ?? end) - connected)} wait`,
    streamed !== '' && (isStream(response!) ? t`${streamed} stream` : t`${streamed} body`),
    response !== undefined && response.bytes > 0 && bytes(response.bytes),
  ];
  const text = failed ? (error?.message ?? t`status ${status ?? 0}`) : listed(facts);
  const waitedFirst = paused >= 1 ? t`after a pause of ${millis(paused)}, ` : '';
  const target = request?.target ?? response?.target ?? hop.target ?? '';
  return {
    what: `${target}${status === undefined ? '' : ` ${status}`}`,
    tone: failed ? 'bad' : one.counted ? 'ok' : 'quiet',
    spans,
    text: waitedFirst + (response?.cut === true ? t`${text} (cut)` : text),
    stage: one.response ?? one.request,
  };
}

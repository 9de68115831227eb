/** The waterfall of an exchange: hops and tool runs over time, as SVG. */

import type { SampleDetail, TryView } from '../../api/api.ts';
import { ticks } from '../charts/scale.ts';
import { bytes, millis } from '../kit/format.ts';
import { listed, t } from '../kit/language.ts';
import { exchangeLink } from '../kit/route.ts';
import { Legend } from '../kit/ui.tsx';
import { toneOf } from '../list/status.ts';

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
  readonly stage: string | null;
  readonly indent: boolean;
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
      <Legend all={KINDS} />
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
  if (line.stage === null) return <div class={cls}>{content}</div>;
  return (
    <a class={cls} href={exchangeLink(id, 'messages', { edge: line.stage })}>
      {content}
    </a>
  );
}

function linesOf(detail: SampleDetail): readonly Line[] {
  const { client, hops, tools, row } = detail;
  // In a running exchange, bars without an end extend to the current time.
  const elapsed = row.state === 'open' ? Math.max(0, Date.now() - row.time) : 0;
  const last = row.total_ms ?? client.response?.until ?? Math.max(elapsed, latest(detail));
  const lines: Line[] = [];
  for (const { hop, tries } of hops) {
    for (const [i, one] of tries.entries()) {
      const names = [
        hops.length > 1 ? t`hop ${hop}` : '',
        tries.length > 1 ? t`attempt ${one.try}` : '',
      ];
      const name = names.filter((part) => part !== '').join(' ') || t`vendor`;
      lines.push({ name, ...tryLine(one, tries[i - 1]?.end_at ?? null, last) });
    }
    for (const { name, at, ms, error } of tools.filter((run) => run.hop === hop)) {
      const kind = error === undefined ? 'tool' : 'failed';
      lines.push({
        name,
        what: t`tool`,
        tone: error === undefined ? 'ok' : 'bad',
        spans: at === undefined ? [] : [{ from: at, to: at + (ms ?? 0), kind }],
        text: error ?? millis(ms),
        stage: null,
        indent: true,
      });
    }
  }
  const first = client.response?.at ?? row.first_byte_ms ?? undefined;
  const answered: Line = {
    name: t`client`,
    what: row.status > 0 ? String(row.status) : row.state,
    tone: toneOf(row) === 'bad' ? 'bad' : 'ok',
    spans:
      first === undefined
        ? []
        : [
            { from: 0, to: first, kind: 'wait' },
            { from: first, to: Math.max(first, client.response?.until ?? last), kind: 'client' },
          ],
    text: listed([
      row.state === 'open' ? t`${millis(last)} so far` : millis(row.total_ms),
      client.response && bytes(client.response.bytes),
    ]),
    stage: client.response?.stage ?? client.request?.stage ?? null,
    indent: false,
  };
  return [answered, ...lines];
}

const latest = ({ hops, client }: SampleDetail): number =>
  Math.max(
    client.response?.at ?? 0,
    ...hops
      .flatMap(({ tries }) => tries)
      .flatMap(({ sent_at, head_at, first_at, end_at }) => [sent_at, head_at, first_at, end_at])
      .map((time) => time ?? 0),
  );

/** @param before the end of the try before: the pause after it stands on this line */
function tryLine(one: TryView, before: number | null, last: number): Omit<Line, 'name'> {
  const failed = one.error !== null || (one.status ?? 0) >= 400;
  const end = one.end_at ?? last;
  const paused = before === null || one.sent_at === null ? 0 : one.sent_at - before;
  const spans: Span[] = [];
  if (paused >= 1) spans.push({ from: before!, to: one.sent_at!, kind: 'pause' });
  if (one.sent_at !== null) {
    const head = one.head_at ?? one.first_at ?? end;
    const connected = one.connected_at ?? one.sent_at;
    if (connected > one.sent_at) spans.push({ from: one.sent_at, to: connected, kind: 'connect' });
    spans.push({ from: connected, to: head, kind: 'wait' });
    const first = one.first_at ?? end;
    if (first > head) spans.push({ from: head, to: first, kind: 'head' });
    if (one.first_at !== null || failed) {
      spans.push({ from: Math.min(first, end), to: end, kind: failed ? 'failed' : 'stream' });
    }
  }
  const requestedAt = one.connected_at ?? one.sent_at;
  const connecting = one.connected_at === null ? 0 : one.connected_at - (one.sent_at ?? 0);
  const waited = requestedAt === null ? null : (one.first_at ?? end) - requestedAt;
  const streamed = one.first_at === null ? null : end - one.first_at;
  const facts = [
    // Short connection times, as on the same machine, are not mentioned.
    connecting >= 1 && t`${millis(connecting)} connect`,
    waited !== null && t`${millis(waited)} wait`,
    streamed !== null && (one.stream ? t`${millis(streamed)} stream` : t`${millis(streamed)} body`),
    one.response_bytes > 0 && bytes(one.response_bytes),
  ];
  const text = failed ? (one.error?.message ?? t`status ${one.status ?? 0}`) : listed(facts);
  const waitedFirst = paused >= 1 ? t`after a pause of ${millis(paused)}, ` : '';
  return {
    what: `${one.target}${one.status === null ? '' : ` ${one.status}`}`,
    tone: failed ? 'bad' : one.counted ? 'ok' : 'quiet',
    spans,
    text: waitedFirst + (one.cut ? t`${text} (cut)` : text),
    stage: one.response ?? one.request,
    indent: false,
  };
}

/** The time line of a session: a lane for each conversation, with its exchanges, hops and tools; pauses are shortened. */

import type { SessionStep, SessionView } from '../../api/api.ts';
import { clock, millis } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { Legend } from '../kit/ui.tsx';

const WIDTH = 1000;
const LANE = 22;
/** Share of the busy time that a pause takes at most: a night between two turns must not hide them. */
const MAX_PAUSE = 0.04;

const KINDS = [
  ['wait', t`exchange`],
  ['stream', t`at the vendor`],
  ['tool', t`tool run by the gateway`],
  ['failed', t`failed`],
  ['lost', t`cache lost`],
] as const;

/** Places on a line where long pauses are cut short. */
function scaleOf(steps: readonly SessionStep[]): (time: number) => number {
  const busy: { from: number; to: number }[] = [];
  for (const { row } of steps.toSorted((a, b) => a.row.time - b.row.time)) {
    const to = row.time + Math.max(1, row.total_ms ?? 1);
    const last = busy.at(-1);
    if (last !== undefined && row.time <= last.to) last.to = Math.max(last.to, to);
    else busy.push({ from: row.time, to });
  }
  const worked = busy.reduce((sum, { from, to }) => sum + to - from, 0);
  const pause = Math.max(1, worked * MAX_PAUSE);
  let at = 0;
  const parts = busy.map(({ from, to }, i) => {
    if (i > 0) at += Math.min(pause, from - busy[i - 1]!.to);
    const part = { from, to, at };
    at += to - from;
    return part;
  });
  const end = Math.max(1, at);
  return (time) => {
    const part = parts.findLast(({ from }) => from <= time) ?? parts[0];
    if (part === undefined) return 0;
    return ((part.at + Math.min(time, part.to) - part.from) / end) * WIDTH;
  };
}

interface TimeLineProps extends Pick<SessionView, 'steps' | 'threads'> {
  /** Called with the id of the exchange that was clicked. */
  readonly open: (id: string) => void;
}

export function TimeLine({ steps, threads, open }: TimeLineProps) {
  const x = scaleOf(steps);
  const height = Math.max(1, threads.length) * LANE;
  return (
    <div class="session-line">
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        preserveAspectRatio="none"
        height={height}
        role="img"
        aria-label={t`The exchanges of the session over time`}
      >
        {steps.map((step) => (
          <Bar key={step.row.id} step={step} x={x} open={open} />
        ))}
      </svg>
      <Legend all={KINDS} />
    </div>
  );
}

interface BarProps {
  readonly step: SessionStep;
  readonly x: (time: number) => number;
  readonly open: (id: string) => void;
}

function Bar({ step: { row, spans, thread, cache }, x, open }: BarProps) {
  const top = thread * LANE;
  const rect = (cls: string, from: number, to: number, gap: number) => (
    <rect
      class={`span ${cls}`}
      x={x(from)}
      width={Math.max(2, x(to) - x(from))}
      y={top + gap}
      height={LANE - 2 * gap}
    />
  );
  return (
    <g class="session-bar" onClick={() => open(row.id)}>
      <title>{`${clock(row.time)} ${row.target} ${millis(row.total_ms)}`}</title>
      {rect('wait', row.time, row.time + Math.max(1, row.total_ms ?? 1), 4)}
      {spans.map(({ kind, from, to }) => {
        const [cls, gap] = kind === 'hop' ? ['stream', 5] : [kind, kind === 'tool' ? 7 : 5];
        return rect(cls as string, row.time + from, row.time + to, gap as number);
      })}
      {cache?.lost != null && (
        <rect class="span lost" x={x(row.time)} width={3} y={top + 1} height={LANE - 2} />
      )}
    </g>
  );
}

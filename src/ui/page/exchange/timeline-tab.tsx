/** The timeline tab, an overview of an exchange: error, hops over time, tokens, tool runs, notes. */

import type { Note } from '../../../conversation/notes.ts';
import { totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import type { SampleMeta, SampleToolRun } from '../../../samples/sample.ts';
import type { HopView, SampleDetail } from '../../api/api.ts';
import { ticks } from '../charts/scale.ts';
import { bytes, count, millis, percent, several, usd } from '../kit/format.ts';
import { listed, t } from '../kit/language.ts';
import { NoteTags, useCheap, useMeaning } from '../kit/notes.tsx';
import { exchangeLink } from '../kit/route.ts';
import { type Column, Table } from '../kit/table.tsx';
import { type Child, Soft } from '../kit/ui.tsx';
import { toneOf } from '../list/status.ts';
import { Failure } from './conversation.tsx';
import { isStream, stageInfoOf, type ViewProps } from './stages.tsx';

export function TimelineTab({ detail }: ViewProps) {
  const { meta, row, hops } = detail;
  const { tools = [] } = meta;
  return (
    <div class="timeline-tab">
      <Failure of={meta.error} row={row} />
      <Section title={t`Timeline`}>
        <Waterfall detail={detail} />
      </Section>
      {hops.some(({ usage }) => usage !== undefined) && (
        <Section title={row.cost === null ? t`Tokens` : t`Tokens and cost`}>
          <Tokens {...detail} />
        </Section>
      )}
      {tools.length > 0 && (
        <Section title={t`Tools run by the gateway`}>
          <ToolRuns tools={tools} />
        </Section>
      )}
      <Section title={meta.notes.length === 0 ? t`Notes` : t`Notes (${meta.notes.length})`}>
        <Notes {...detail} />
      </Section>
    </div>
  );
}

const Section = ({ title, children }: { title: string; children: Child }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
);

const PARTS = [
  ['input', t`Input`],
  ['cacheRead', t`Cached`],
  ['cacheWrite', t`Cache write`],
  ['output', t`Output`],
  ['reasoning', t`Reasoning`],
] as const;

interface TokenRow {
  readonly name: string;
  readonly usage: Usage | undefined;
  readonly cost: number | null;
  readonly sum?: boolean;
}

/** Tokens and costs by hop, with bars for their shares. Columns without any value are left out. */
function Tokens({ hops, meta, row }: SampleDetail) {
  const known = hops.flatMap(({ usage }) => usage ?? []);
  const most = Math.max(1, ...known.map((one) => totalInput(one) + totalOutput(one)));
  const parts = PARTS.filter(
    ([name]) =>
      name === 'input' || name === 'output' || known.some((one) => one[name] !== undefined),
  );
  const rows: readonly TokenRow[] = [
    ...hops.map((hop) => ({ name: t`hop ${hop.number}`, usage: hop.usage, cost: hop.cost })),
    ...(hops.length > 1 ? [{ name: t`total`, usage: meta.usage, cost: row.cost, sum: true }] : []),
  ];
  return (
    <Table<TokenRow>
      class="tokens"
      rows={rows}
      rowProps={({ sum }) => ({ class: sum ? 'sum' : undefined })}
      columns={[
        [t`Hop`, ({ name }) => name],
        [
          <span key="share" class="sr">{t`Share`}</span>,
          ({ usage: one, sum }) => one && !sum && <TokenBar usage={one} most={most} />,
          'barcell',
        ],
        ...parts.map(
          ([part, text]): Column<TokenRow> => [
            [<i key="key" class={`key ${part}`} />, text],
            ({ usage: one }) => count(one?.[part]),
            'num',
          ],
        ),
        [t`Cache hits`, ({ usage: one }) => hitRate(one), 'num'],
        hops.some((hop) => hop.cost !== null) && [t`Cost`, (row) => usd(row.cost), 'num'],
      ]}
    />
  );
}

const hitRate = (usage: Usage | undefined): string =>
  usage?.cacheRead === undefined || totalInput(usage) === 0
    ? '–'
    : percent(usage.cacheRead / totalInput(usage));

const TokenBar = ({ usage, most }: { usage: Usage; most: number }) => (
  <span class="tokenbar" aria-hidden="true">
    {PARTS.map(([part]) => {
      const value = usage[part] ?? 0;
      const share = `${((value / most) * 100).toFixed(3)}%`;
      return value > 0 && <i key={part} class={part} style={{ '--part': share }} />;
    })}
  </span>
);

const ToolRuns = ({ tools }: { tools: readonly SampleToolRun[] }) => (
  <ul class="toolruns">
    {tools.map(({ name, hop, arguments: input, result, error, ms }, i) => (
      <li key={i}>
        <details open={error !== undefined}>
          <summary>
            <b>{name}</b>
            <Soft>
              {hop === undefined ? '' : t` after hop ${hop}`}
              {ms === undefined ? '' : t`, ${millis(ms)}`}
            </Soft>
            {input !== undefined && <code class="peek">{input}</code>}
          </summary>
          {error !== undefined && <p class="problem">{error}</p>}
          {[
            [t`Arguments`, input],
            [t`Result`, result],
          ].map(
            ([title, text]) =>
              text !== undefined && (
                <>
                  <h3>{title}</h3>
                  <pre>{text}</pre>
                </>
              ),
          )}
        </details>
      </li>
    ))}
  </ul>
);

/** The notes by name; those that cost nothing are folded. */
function Notes({ meta, row }: SampleDetail) {
  const isCheap = useCheap();
  if (meta.notes.length === 0) return <p class="soft">{t`Nothing was changed.`}</p>;
  const byName = [...Map.groupBy(meta.notes, ({ name }) => name)];
  const list = (some: typeof byName) => (
    <ul class="notelist">
      {some.map(([name, all]) => (
        <NoteItem key={name} name={name} all={all} id={row.id} />
      ))}
    </ul>
  );
  const cheap = byName.filter(([name]) => isCheap(name));
  const costly = byName.filter(([name]) => !isCheap(name));
  return (
    <>
      {costly.length > 0 && list(costly)}
      {cheap.length > 0 && (
        <details class="cheap">
          <summary>
            {t`${several(cheap.length, 'note')} that cost nothing `}
            <Soft>{cheap.map(([name]) => name).join(', ')}</Soft>
          </summary>
          {list(cheap)}
        </details>
      )}
    </>
  );
}

interface NoteItemProps {
  readonly id: string;
  readonly name: string;
  readonly all: readonly Note[];
}

/** A note with its description from the manual and its places; the same place in several hops is one line. */
function NoteItem({ id, name, all }: NoteItemProps) {
  const placed = all.filter(({ where, what }) => where !== undefined || what !== undefined);
  const places = Map.groupBy(placed, ({ where, what }) => JSON.stringify([where, what]));
  const href = exchangeLink(id, 'diff', { rule: name });
  return (
    <li>
      <div class="notename">
        <NoteTags names={[name]} />
        {all.length > 1 && <Soft>{` ${several(all.length, 'time')}`}</Soft>}
      </div>
      <p class="note-about">{useMeaning()(name)}</p>
      {places.size > 0 && (
        <ul class="places">
          {[...places].slice(0, 20).map(([key, [first, ...again]]) => (
            <li key={key}>
              {first!.where !== undefined && (
                <a href={href}>
                  <code>{first!.where}</code>
                </a>
              )}
              {first!.what !== undefined && <span>{` ${first!.what}`}</span>}
              {again.length > 0 && <Soft>{` ×${again.length + 1}`}</Soft>}
            </li>
          ))}
          {places.size > 20 && <li class="soft">{t`and ${places.size - 20} more`}</li>}
        </ul>
      )}
    </li>
  );
}

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

function Waterfall({ detail }: { detail: SampleDetail }) {
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
    for (const { name, at, ms, error, hop: of } of meta.tools ?? []) {
      if (of !== hop.number) continue;
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

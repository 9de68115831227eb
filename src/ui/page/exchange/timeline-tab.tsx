/** The timeline tab, an overview of an exchange: error, hops over time, tokens, tool runs, notes. */

import type { Note } from '../../../conversation/notes.ts';
import { totalInput, totalOutput, type Usage } from '../../../conversation/usage.ts';
import type { SampleToolRun } from '../../../samples/sample.ts';
import type { SampleDetail } from '../../api/api.ts';
import { count, millis, percent, several, usd } from '../kit/format.ts';
import { t } from '../kit/language.ts';
import { NoteTag, useCheap, useMeaning } from '../kit/notes.tsx';
import { exchangeLink } from '../kit/route.ts';
import { type Column, Table } from '../kit/table.tsx';
import { type Child, Soft } from '../kit/ui.tsx';
import { Failure } from './conversation.tsx';
import type { ViewProps } from './stages.tsx';
import { Waterfall } from './waterfall.tsx';

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
              {ms === undefined ? '' : `, ${millis(ms)}`}
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
        <NoteTag name={name} />
        {all.length > 1 && <Soft>{` ${several(all.length, 'time')}`}</Soft>}
      </div>
      <p class="note-about">{useMeaning(name)}</p>
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

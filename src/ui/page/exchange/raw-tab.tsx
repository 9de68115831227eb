/** The raw tab: each body as a conversation, as JSON, as the events of a stream, as raw bytes, and its headers. */

import type { VNode } from 'preact';
import type { Note } from '../../../conversation/notes.ts';
import type { SampleStage } from '../../../samples/sample.ts';
import type { EventsView } from '../../api/api.ts';
import { JsonView, RawText } from '../kit/code.tsx';
import { CopyButton } from '../kit/copy.tsx';
import { get } from '../kit/fetching.ts';
import { Select } from '../kit/form.tsx';
import { bytes, count, millis } from '../kit/format.ts';
import { useKeys, useLoad } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { go, hashOf, refine, withQuery } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { type Child, Facts, Problem, Segments } from '../kit/ui.tsx';
import { getBody, MAX, type Parsed, parsedBody } from './bodies.tsx';
import { CONVERSATION, Conversation, SourceContext } from './conversation.tsx';
import {
  inOrder,
  isStream,
  StageList,
  stageChoices,
  stageInfoOf,
  stageTitle,
  type ViewProps,
} from './stages.tsx';

const MODES = [
  ['talk', t`Conversation`],
  ['json', 'JSON'],
  ['events', t`Events`],
  ['raw', t`Raw`],
  ['headers', t`Headers`],
] as const;
type Mode = (typeof MODES)[number][0];

/** Events of a stream that are shown. */
const MAX_EVENTS = 1000;

/** Loads what a view of a body shows, and draws it. */
type Draw = (
  id: string,
  stage: SampleStage,
  notes: readonly Note[],
  signal: AbortSignal,
) => Promise<VNode>;

const DRAW: Readonly<Record<Mode, Draw>> = {
  async talk(id, { stage }, notes, signal) {
    const view = await get(CONVERSATION, { id, stage }, signal);
    return (
      <SourceContext.Provider value={{ id, stage, notes }}>
        <Conversation view={view} />
      </SourceContext.Provider>
    );
  },
  async json(id, stage, notes, signal) {
    const stream = isStream(stage);
    const parsed = await parsedBody(id, stage.stage, stream, signal);
    return <JsonBody {...parsed} stream={stream} notes={notes} />;
  },
  async events(id, stage, _notes, signal) {
    if (!isStream(stage)) return <p class="soft">{t`This body is no stream.`}</p>;
    const params = { id, stage: stage.stage, limit: MAX_EVENTS };
    return <Events {...(await get('/samples/:id/edges/:stage/events', params, signal))} />;
  },
  async raw(id, { stage }, _notes, signal) {
    const { text, bytes: all, whole } = await getBody(id, stage, MAX, signal);
    return (
      <div>
        {!whole && <p class="soft">{t`The first ${bytes(MAX)} of ${bytes(all)}.`}</p>}
        <RawText text={text} />
      </div>
    );
  },
  headers: async (_id, stage) => <Headers {...stage} />,
};

export function RawTab({ detail, route }: ViewProps) {
  const { meta, row } = detail;
  const all = inOrder(meta);
  const stages = all.map(({ stage }) => stage);
  const mode = MODES.find(([name]) => name === route.query.as)?.[0] ?? 'talk';
  const first = mode === 'events' ? all.find(isStream)?.stage : stages[0];
  const stage = stages.find((one) => one === route.query.edge) ?? first ?? 'client-response';
  const info = stageInfoOf(meta, stage);
  const loaded = useLoad(
    async (signal) => ({
      of: `${stage} ${mode}`,
      body: info && (await DRAW[mode](row.id, info, meta.notes, signal)),
    }),
    [stage, mode, row.state],
  );
  const to = (edge: string) => withQuery(route, { edge });
  const step = (by: 1 | -1) => () => {
    const next = stages[stages.indexOf(stage) + by];
    if (next !== undefined) go(to(next), true);
  };
  useKeys({ '[': step(-1), ']': step(1) }, 2);
  return (
    <div class="messages-tab">
      <div class="side">
        <StageList detail={detail} current={stage} href={(next) => hashOf(to(next))} />
      </div>
      <div class="main">
        <div class="bar">
          <Select
            aria-label={t`Body`}
            value={stage}
            all={stageChoices(stages)}
            choose={(next) => go(to(next))}
          />
          <h2>{stageTitle(stage)}</h2>
          <Segments
            label={t`View`}
            options={MODES}
            value={mode}
            choose={(name) => refine({ as: name === 'talk' ? '' : name })}
          />
          {info && (
            <CopyButton
              class="button"
              title={t`The body, ${bytes(info.bytes)}`}
              read={async () => (await getBody(row.id, stage, MAX)).text}
            >{t`Copy`}</CopyButton>
          )}
        </div>
        <div class="content" aria-live="off" aria-busy={loaded.busy || undefined}>
          <Problem text={loaded.problem} />
          {info === undefined && (
            <p class="soft">
              {row.state === 'open'
                ? t`This exchange is still running. This body appears here when it ends.`
                : t`This body was not recorded.`}
            </p>
          )}
          {info?.cut === true && (
            <p class="soft">{t`This body is incomplete: it was cut off, or it was too large to keep.`}</p>
          )}
          {loaded.data && <div key={loaded.data.of}>{loaded.data.body}</div>}
        </div>
      </div>
    </div>
  );
}

function JsonBody(props: Parsed & { stream: boolean; notes: readonly Note[] }) {
  const { body, value, stream, notes } = props;
  if (value === undefined) {
    const why = body.whole
      ? t`This body is not JSON.`
      : t`This body of ${bytes(body.bytes)} is too large for a tree. These are its first ${bytes(MAX)}.`;
    return (
      <div>
        <p class="soft">{why}</p>
        <RawText text={body.text} />
      </div>
    );
  }
  const marks = new Map(
    notes.filter(({ where }) => where?.startsWith('/')).map(({ name, where }) => [where!, name]),
  );
  const note = body.whole ? undefined : t`the first ${bytes(MAX)} of ${bytes(body.bytes)}`;
  return <JsonView value={value} depth={stream ? 1 : 2} marks={marks} note={note} />;
}

/** When each event came, what it is called, what it says; the event itself opens on a click. */
const Events = ({ events, total }: EventsView) => (
  <>
    <Table
      class="events"
      label={t`Events`}
      rows={events}
      columns={[
        ['#', (_, n) => n + 1, 'num'],
        [t`Time`, ({ at }) => millis(at), 'num'],
        [t`Event`, ({ name }) => name, 'nowrap'],
        [t`What it says`, (event) => <Said {...event} />, 'wraps'],
      ]}
    />
    {events.length < total && (
      <p class="soft">
        {t`The first ${count(events.length)} of ${count(total)} events. JSON has all of them.`}
      </p>
    )}
  </>
);

const Said = ({ says, data }: EventsView['events'][number]) => (
  <details>
    <summary>{(says || data).slice(0, 200)}</summary>
    <RawText text={data} />
  </details>
);

function Headers({ url, status, target, protocol, error, made, file, headers }: SampleStage) {
  const lines: readonly (readonly [string, Child])[] = [
    ['URL', url],
    [t`Status`, status],
    [t`Target`, target],
    [t`Protocol`, protocol],
    [t`Error`, error && `${error.kind}: ${error.message}`],
    [t`Body`, made && t`There was no answer. The gateway wrote this body to say why.`],
    [t`File`, file],
    ...Object.entries(headers ?? {}),
  ];
  return (
    <Facts class="fact-list headers" items={lines.map((line) => line[1] !== undefined && line)} />
  );
}

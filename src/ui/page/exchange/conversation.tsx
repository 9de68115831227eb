/** A body as a conversation: turns, tool calls and their results. */

import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { type AgentTag, agentParts } from '../../../conversation/agent-parts.ts';
import type { Note } from '../../../conversation/notes.ts';
import { totalInput, totalOutput } from '../../../conversation/usage.ts';
import { isNested, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { endOf, type SampleError } from '../../../samples/sample.ts';
import type {
  BlockView,
  ConversationView,
  TextView,
  ToolView,
  TurnView,
  UiRow,
} from '../../api/api.ts';
import { JsonTree } from '../kit/code.tsx';
import { get } from '../kit/fetching.ts';
import { bytes, count, several, worded } from '../kit/format.ts';
import { listed, t } from '../kit/language.ts';
import { NoteTags } from '../kit/notes.tsx';
import { ALL_LINES, hasWord, LongText } from '../kit/text.tsx';
import { Button, type Child, Soft } from '../kit/ui.tsx';
import { statusLabel } from '../list/status.ts';
import { Picture, type PictureSource } from './bodies.tsx';

/** Turns at the beginning and at the end of a long conversation that are shown at first. */
const HEAD = 6;
const TAIL = 30;
/** Lines of instructions and tool results that are shown at first. */
const LINES: Readonly<Record<string, number>> = { system: 8, developer: 8, tool: 12 };
const MAX_CHARS = 5_000_000;

/** A body as a conversation. */
export const CONVERSATION = '/samples/:id/edges/:stage/conversation';

/** The body that a conversation was read from. */
export interface Source {
  readonly id: string;
  readonly stage: string;
  readonly notes?: readonly Note[];
  /** Where the pictures of the body come from; left out: they stand there by kind and size. */
  readonly pictures?: PictureSource;
  /** The search that led here: texts with its words are shown whole. */
  readonly q?: string;
}

export const SourceContext = createContext<Source>({ id: '', stage: '' });

export const Conversation = ({ view }: { view: ConversationView }) => (
  <div class="talk">
    <Settings all={view.settings} facts={[view.model, ...outcomeOf(view)]} />
    <Failure of={view.problem} />
    <Incomplete {...view} />
    {view.system.length > 0 && (
      <TurnBox who="system" number="–">
        <Blocks blocks={view.system} at="system" />
      </TurnBox>
    )}
    <Tools all={view.tools} />
    <Turns all={view.turns} />
  </div>
);

interface FailureProps {
  readonly of: SampleError | null | undefined;
  /** The exchange: the client of a stream that was cut off has got the status of its beginning. */
  readonly row?: UiRow;
}

export function Failure({ of, row }: FailureProps) {
  if (!of) return null;
  const words = row && endOf(row) === 'cut' ? statusLabel(row) : [of.status, of.kind];
  return (
    <p class="banner" role="note">
      <b>{words.filter(Boolean).join(' ')}</b>
      <span class="said">{of.message}</span>
    </p>
  );
}

const FINISHES: Readonly<Record<string, string>> = {
  stop: t`complete`,
  length: t`cut at the token limit`,
  'tool-calls': t`asks for tools`,
  tool_calls: t`asks for tools`,
  'tool-use': t`asks for tools`,
  refusal: t`refused`,
  'content-filter': t`stopped by a filter`,
};

/** How an answer ended, and its tokens. */
export const outcomeOf = ({ finish, usage }: ConversationView): readonly string[] => [
  ...(finish === null ? [] : [FINISHES[finish] ?? finish]),
  ...(usage === null ? [] : [t`${count(totalInput(usage))} → ${count(totalOutput(usage))} tokens`]),
];

export const Incomplete = ({ kind, complete, problem }: ConversationView) =>
  kind === 'reply' && !complete && problem === null ? (
    <p class="soft">{t`The answer is not complete.`}</p>
  ) : null;

interface FoldedProps {
  readonly title: string;
  readonly about: string;
  /** It is open at first. */
  readonly open?: boolean;
  /** Drawn when it is opened for the first time. */
  readonly children: () => Child;
}

export function Folded({ title, about, open = false, children }: FoldedProps) {
  const [opened, setOpened] = useState(false);
  return (
    <details
      class="folded"
      open={open}
      onToggle={({ currentTarget }) => currentTarget.open && setOpened(true)}
    >
      <summary>
        <b>{title}</b>
        <Soft>{` ${about}`}</Soft>
      </summary>
      {(open || opened) && children()}
    </details>
  );
}

const isLong = (value: unknown) => isNested(value) || String(value).length > 40;

/** Parameters: those of a few words in a line behind some facts, the others folded. */
export function Settings({ all, facts = [] }: { all: JsonObject; facts?: readonly string[] }) {
  const { rest, stream, ...named } = all;
  const [plain, nested] = [false, true].map((wanted) =>
    Object.entries(named).filter(([, value]) => isLong(value) === wanted),
  );
  const deep = { ...Object.fromEntries(nested!), ...(isNested(rest) && rest) };
  return (
    <>
      <p class="talk-facts">
        {facts.map((word) => (
          <span key={word}>{word}</span>
        ))}
        {stream === true && <span class="setting">{t`streamed`}</span>}
        {plain!.map(([name, value]) => (
          <span class="setting" key={name}>
            {`${worded(name)} `}
            <b>{String(value)}</b>
          </span>
        ))}
      </p>
      {Object.keys(deep).length > 0 && (
        <Folded title={t`Other parameters`} about={Object.keys(deep).map(worded).join(', ')}>
          {() => <JsonTree value={deep as JsonObject} depth={2} />}
        </Folded>
      )}
    </>
  );
}

export const Tools = ({ all }: { all: readonly ToolView[] }) =>
  all.length === 0 ? null : (
    <Folded title={several(all.length, 'tool')} about={all.map(({ name }) => name).join(', ')}>
      {() =>
        all.map(({ name, type, description, schema }) => (
          <details class="tool-def" key={name}>
            <summary>
              <code>{name}</code>
              <Soft>{` ${type}`}</Soft>
            </summary>
            {description !== undefined && <LongText view={{ text: description }} />}
            {schema !== undefined && <JsonTree value={schema} depth={2} />}
          </details>
        ))
      }
    </Folded>
  );

export function Turns({ all }: { all: readonly TurnView[] }) {
  const last = all.length - TAIL;
  const [next, setNext] = useState(last - HEAD <= 4 ? all.length : HEAD);
  const range = (from: number, to: number) =>
    all.slice(from, to).map((view, i) => <Turn key={from + i} {...view} index={from + i} />);
  return (
    <div class="turns">
      {range(0, next)}
      {next < last && (
        <div class="gap">
          <Button class="more" onClick={() => setNext(Math.min(last, next + 50))}>
            {t`${several(last - next, 'turn')} not shown: show ${Math.min(50, last - next)}`}
          </Button>
        </div>
      )}
      {next < all.length && range(Math.max(next, last), all.length)}
    </div>
  );
}

/** @param index its number in the request */
export function Turn({ role, blocks, at, index }: TurnView & { readonly index: number }) {
  const { notes = [] } = useContext(SourceContext);
  const results = blocks.length > 0 && blocks.every(({ type }) => type === 'tool-result');
  const who = results ? 'tool' : role;
  const Content = role === 'system' || role === 'developer' ? Prompt : Blocks;
  return (
    <TurnBox who={who} rules={rulesAt(at, notes)} number={String(index)}>
      {blocks.length === 0 && <p class="soft">{t`(nothing)`}</p>}
      <Content blocks={blocks} at={index} lines={LINES[who]} />
    </TurnBox>
  );
}

const WHO: Readonly<Record<string, string>> = {
  system: t`system`,
  developer: t`developer`,
  user: t`user`,
  assistant: t`assistant`,
  tool: t`tool`,
};

interface TurnBoxProps {
  readonly who: string;
  readonly rules?: readonly string[];
  /** Left out: the answer. */
  readonly number?: string;
  readonly children: Child;
}

export const TurnBox = ({ who, rules = [], number, children }: TurnBoxProps) => (
  <section
    class="turn"
    data-role={who}
    aria-label={number ? t`${WHO[who] ?? who}, turn ${number}` : t`answer`}
  >
    <div class="who">
      <b>{WHO[who] ?? who}</b>
      <small>{number}</small>
    </div>
    <div class="said">
      {rules.length > 0 && (
        <div class="rules">
          <NoteTags names={rules} />
        </div>
      )}
      {children}
    </div>
  </section>
);

interface BlocksProps {
  readonly blocks: readonly BlockView[];
  /** The index of their turn, or `system`. */
  readonly at: number | 'system';
  /** Lines of each text that are shown at first. */
  readonly lines?: number | undefined;
}

export const Blocks = ({ blocks, at, lines = LINES[at] }: BlocksProps) =>
  blocks.map((one, i) => <Block key={i} one={one} place={[at, i]} lines={lines} />);

/** Instructions beside what the user says: folded, unless the search led here. */
export function Prompt({ blocks, at, lines = LINES.system }: BlocksProps) {
  const { q = '' } = useContext(SourceContext);
  const texts = blocks.flatMap((one) => ('text' in one ? [one] : []));
  const size = texts.reduce((sum, { text, chars = text.length }) => sum + chars, 0);
  const found = texts.some(({ text }) => hasWord(text, q));
  return (
    <Folded title={t`System prompt`} about={several(size, 'character')} open={found}>
      {() => (
        <div class="said">
          <Blocks blocks={blocks} at={at} lines={lines} />
        </div>
      )}
    </Folded>
  );
}

/** Names of the notes about this place or a place inside it. */
function rulesAt(at: string | undefined, notes: readonly Note[]): readonly string[] {
  if (at === undefined || at === '') return [];
  const names = notes.flatMap(({ name, where }) => {
    if (!where) return [];
    const path = where.replace(/\[(\d+)\]/g, '/$1').replace(/^\//, '');
    const place = `/${path.replaceAll('.', '/')}`;
    return place === at || place.startsWith(`${at}/`) ? [name] : [];
  });
  return [...new Set(names)];
}

/** The path of a block: turn (or `system`), block, and further indexes inside a tool result. */
type Place = readonly (number | 'system')[];

interface BlockProps {
  readonly one: BlockView;
  readonly place: Place;
  readonly lines?: number | undefined;
}

function Block({ one, place, lines }: BlockProps) {
  const { id, stage, q = '' } = useContext(SourceContext);
  const rest = async () => {
    const found = blockAt(await get(CONVERSATION, { id, stage, text: MAX_CHARS }), place);
    return found !== undefined && 'text' in found ? found.text : '';
  };
  const text = (cls?: string) =>
    'text' in one && (
      <LongText
        view={one}
        {...(cls && { class: cls })}
        rest={rest}
        lines={hasWord(one.text, q) ? ALL_LINES : lines}
      />
    );
  switch (one.type) {
    case 'text':
      return (
        <div class="block">
          <SaidText view={one} rest={rest} lines={lines} />
          {one.citations !== undefined && one.citations.length > 0 && (
            <ol class="citations">
              {/* URLs from content are shown, never linked. */}
              {one.citations.map(({ url, title }) => (
                <li key={url}>{[title, url].filter(Boolean).join(' · ')}</li>
              ))}
            </ol>
          )}
        </div>
      );
    case 'refusal':
      return (
        <div class="block refusal">
          <b>{t`refusal`}</b>
          {text()}
        </div>
      );
    case 'reasoning':
      return (
        <details class="block reasoning" open={one.text !== '' && one.text.length < 600}>
          <summary>
            {one.summary === true ? t`reasoning (summary)` : t`reasoning`}
            <small>{` ${several(one.chars ?? one.text.length, 'character')}`}</small>
            {one.sealed !== undefined && (
              <small>{t`, ${one.sealed.kind} of ${bytes(one.sealed.bytes)}`}</small>
            )}
          </summary>
          {text()}
        </details>
      );
    case 'tool-call':
      return (
        <div class="block call">
          <CallHead name={one.name} by={one.by} id={one.id} />
          {one.chars === undefined ? <Input text={one.text} /> : text('code')}
        </div>
      );
    case 'tool-result':
      return (
        <div class="block result" data-failed={String(one.is_error)}>
          <CallHead name={one.is_error ? t`error` : t`result`} by={one.by} id={one.call_id} />
          {one.content.map((inner, i) => (
            <Block key={i} one={inner} place={[...place, i]} lines={lines} />
          ))}
        </div>
      );
    case 'media':
      return <Media one={one} />;
    case 'opaque':
      return (
        <div class="block opaque">
          <b>{one.name}</b>
          {text('code')}
        </div>
      );
  }
}

const TAGS: Readonly<Record<AgentTag, string>> = {
  'system-reminder': t`System reminder`,
  environment_context: t`Environment`,
  user_instructions: t`Instructions`,
};

interface SaidTextProps {
  readonly view: TextView;
  readonly rest: () => Promise<string>;
  readonly lines?: number | undefined;
}

/** What was said; what an agent put beside it is folded. */
function SaidText({ view: { text, chars = text.length }, rest, lines }: SaidTextProps) {
  const { q = '' } = useContext(SourceContext);
  const missing = chars - text.length;
  const parts = agentParts(text, missing > 0);
  return parts.map((part, i) => {
    const isLast = i === parts.length - 1;
    const length = part.text.length + (isLast ? missing : 0);
    const view = { text: part.text, ...(isLast && missing > 0 && { chars: length }) };
    const found = hasWord(part.text, q);
    const long = (
      <LongText
        key={i}
        view={view}
        class="md"
        rest={async () => (await rest()).slice(text.length - part.text.length)}
        lines={found ? ALL_LINES : lines}
      />
    );
    if (part.tag === undefined) return long;
    return (
      <Folded key={i} title={TAGS[part.tag]} about={several(length, 'character')} open={found}>
        {() => long}
      </Folded>
    );
  });
}

const CallHead = ({ name, by, id }: { name: string; by: string; id: string }) => (
  <div class="call-head">
    <b>{name}</b>
    {by !== 'client' && (
      <span class="by">{by === 'gateway' ? t`run by the gateway` : t`run by the vendor`}</span>
    )}
    <code>{id}</code>
  </div>
);

function Media({ one }: { one: Extract<BlockView, { type: 'media' }> }) {
  const { pictures } = useContext(SourceContext);
  const size = one.bytes === undefined ? undefined : bytes(one.bytes);
  return (
    <div class="block media">
      <b>{one.media}</b>
      {` ${listed([one.mime, one.filename, one.url, size])}`}
      {pictures !== undefined && one.at !== undefined && one.media === 'image' && (
        <Picture source={pictures} at={one.at} mime={one.mime ?? ''} />
      )}
    </div>
  );
}

function blockAt(view: ConversationView, place: Place): BlockView | undefined {
  const [first, second, ...deeper] = place;
  const blocks = first === 'system' ? view.system : view.turns[first as number]?.blocks;
  let found = blocks?.[second as number];
  for (const i of deeper)
    found = found?.type === 'tool-result' ? found.content[i as number] : undefined;
  return found;
}

/** The input of a call: a tree when it is JSON, else the text as the model wrote it. */
function Input({ text }: { text: string }) {
  const value = tryParse(text);
  if (isNested(value)) return <JsonTree value={value} depth={1} />;
  return <LongText view={{ text }} class="code" />;
}

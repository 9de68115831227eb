/** Code views: a JSON tree with folding, one value of it, and raw text. What is folded is drawn when it is opened. */

import { useState } from 'preact/hooks';
import { isNested, type Json } from '../../../lib/json/json.ts';
import { pointerOf } from '../../../lib/json/pointer.ts';
import { count } from './format.ts';
import { t } from './language.ts';
import { Button } from './ui.tsx';

const MEMBERS_ON_PAGE = 100;
/** Characters of a text that are shown at first. */
const TEXT = 400;
/** Most members that "Expand all" opens. */
const MAX_OPENED = 3000;
/** Characters that one click on "more" shows, at least. */
const STEP = 20_000;
/** Characters of raw text that are shown at first: browsers lay out very long texts slowly. */
const RAW = 100_000;

type Part = string | number;
type Entries = readonly (readonly [Part, Json | undefined])[];

const entriesOf = (value: Json & object): Entries =>
  Array.isArray(value)
    ? (value as readonly Json[]).map((item, i) => [i, item] as const)
    : Object.entries(value as Record<string, Json>);

interface TreeProps {
  readonly value: Json;
  /** Levels that are open at first. */
  readonly depth: number;
  /** Labels by JSON pointer, shown beside the value. */
  readonly marks?: ReadonlyMap<string, string>;
}

/** What all nodes of a tree share. */
interface Tree extends TreeProps {
  /** How many members may still be opened at first. */
  readonly budget: { left: number };
}

export function JsonTree({ value, depth, marks }: TreeProps) {
  const [budget] = useState({ left: MAX_OPENED });
  return (
    <div class="tree" translate={false}>
      <Node value={value} at="" level={0} tree={{ value, depth, marks, budget } as Tree} />
    </div>
  );
}

export function JsonView(props: TreeProps & { readonly note?: string | undefined }) {
  const [depth, setDepth] = useState(props.depth);
  const [times, setTimes] = useState(0);
  const show = (next: number) => () => {
    setDepth(next);
    setTimes(times + 1);
  };
  return (
    <div>
      <p class="tree-bar">
        <Button class="tiny" onClick={show(Number.POSITIVE_INFINITY)}>{t`Expand all`}</Button>
        <Button class="tiny" onClick={show(1)}>{t`Collapse all`}</Button>
        {props.note && <span class="soft">{props.note}</span>}
      </p>
      <JsonTree key={times} {...props} depth={depth} />
    </div>
  );
}

interface NodeProps {
  readonly part?: Part;
  readonly value: Json | undefined;
  readonly at: string;
  readonly level: number;
  readonly tree: Tree;
}

const Key = ({ part }: { part: Part | undefined }) =>
  part === undefined ? null : (
    <span class={typeof part === 'number' ? 'index' : 'name'}>
      {String(part)}
      <i>: </i>
    </span>
  );

function Node(props: NodeProps) {
  const { part, value, at, tree } = props;
  if (isNested(value) && Object.keys(value).length > 0) return <Branch {...props} value={value} />;
  return (
    <div class="leaf" data-at={at}>
      <Key part={part} />
      <Leaf value={value ?? null} />
      <Mark at={at} tree={tree} />
    </div>
  );
}

function Mark({ at, tree: { marks } }: Pick<NodeProps, 'at' | 'tree'>) {
  const mark = marks?.get(at);
  return mark === undefined ? null : <span class="tag">{mark}</span>;
}

const leadsToMark = (at: string, { marks }: Tree): boolean =>
  marks !== undefined && [...marks.keys()].some((one) => one.startsWith(`${at}/`));

function Branch({ part, value, at, level, tree }: NodeProps & { readonly value: Json & object }) {
  const [open, setOpen] = useState(
    () => (level < tree.depth || leadsToMark(at, tree)) && tree.budget.left-- > 0,
  );
  const [filled, setFilled] = useState(open);
  const [shown, setShown] = useState(MEMBERS_ON_PAGE);
  const list = Array.isArray(value);
  const entries = entriesOf(value);
  const left = entries.length - shown;
  return (
    <details
      class="branch"
      data-at={at}
      open={open}
      onToggle={({ currentTarget }) => {
        setOpen(currentTarget.open);
        if (currentTarget.open) setFilled(true);
      }}
    >
      <summary>
        <Key part={part} />
        <span class="brace">{list ? '[' : '{'}</span>
        <span class="gist">{gist(entries)}</span>
        <span class="brace">{list ? ']' : '}'}</span>
        <small>{` ${count(entries.length)}`}</small>
        <Mark at={at} tree={tree} />
      </summary>
      <div class="members">
        {filled &&
          entries
            .slice(0, shown)
            .map(([name, inner]) => (
              <Node
                key={name}
                part={name}
                value={inner}
                at={at + pointerOf([name])}
                level={level + 1}
                tree={tree}
              />
            ))}
        {filled && left > 0 && (
          <Button class="more" onClick={() => setShown(shown + MEMBERS_ON_PAGE)}>
            {t`${count(Math.min(MEMBERS_ON_PAGE, left))} more of ${count(left)}`}
          </Button>
        )}
      </div>
    </details>
  );
}

/** A preview of the first members in one line, for a folded value. */
function gist(entries: Entries): string {
  const parts: string[] = [];
  let length = 0;
  for (const [part, item] of entries) {
    if (length > 60) {
      parts.push('…');
      break;
    }
    const folded = Array.isArray(item) ? '[…]' : '{…}';
    const shown = isNested(item) ? folded : JSON.stringify(item)?.slice(0, 32);
    const label = typeof part === 'number' ? `${shown}` : `${part}: ${shown}`;
    parts.push(label);
    length += label.length;
  }
  return parts.join(', ').slice(0, 90);
}

interface CutProps {
  readonly text: string;
  /** Characters that are shown at first. */
  readonly most: number;
}

/** The beginning of a text, with a button for more of it. */
export function Cut({ text, most }: CutProps) {
  const [shown, setShown] = useState(text.length <= most * 1.5 ? text.length : most);
  const left = text.length - shown;
  if (left <= 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, shown)}
      <Button class="more" onClick={() => setShown(shown + Math.max(STEP, shown))}>
        {t`… ${count(left)} more characters`}
      </Button>
    </>
  );
}

/** A text, number, truth value or null. */
function Leaf({ value }: { value: Json }) {
  if (isNested(value)) return <span class="brace">{Array.isArray(value) ? '[]' : '{}'}</span>;
  if (typeof value !== 'string') {
    const raw = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
    return <span class={value === null ? 'null' : typeof value}>{raw}</span>;
  }
  return (
    <span class="string">
      "
      <Cut text={value} most={TEXT} />"
    </span>
  );
}

export const RawText = ({ text }: { text: string }) => (
  <pre class="raw" tabIndex={0} translate={false}>
    <Cut text={text} most={RAW} />
  </pre>
);

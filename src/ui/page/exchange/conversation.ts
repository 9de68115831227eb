/** Renders a body as a conversation: turns, tool calls and their results. */

import type { Note } from '../../../conversation/notes.ts';
import type { BlockView, ConversationView, ToolView, TurnView } from '../../api/api.ts';
import { button, type Child, h, replace } from '../kit/dom.ts';
import { bytes, count, several, worded } from '../kit/format.ts';
import { hasWord } from '../kit/highlight.ts';
import { jsonTree } from '../kit/json-tree.ts';
import { ALL_LINES, longText } from '../kit/long-text.ts';
import { noteTag } from '../kit/notes-manual.ts';
import { type PictureSource, showPicture } from './picture.ts';
import { totalInput, totalOutput } from './usage.ts';

/** Turns at the beginning and at the end of a long conversation that are shown at first. */
const HEAD = 6;
const TAIL = 30;
/** Lines of instructions and tool results that are shown at first. */
const LINES: Readonly<Record<string, number>> = { system: 8, developer: 8, tool: 12 };

interface Context {
  readonly notes: readonly Note[];
  /** The same body with longer texts. */
  readonly again: (chars: number) => Promise<ConversationView>;
  readonly chars: number;
  /** JSON pointer of the current turn. */
  readonly lines?: number;
  readonly pictures?: PictureSource;
  /** The search that led here: texts with its words are shown whole. */
  readonly q?: string;
}

export function conversation(
  view: ConversationView,
  notes: readonly Note[],
  again: Context['again'],
): HTMLElement {
  const context: Context = { notes: notes.filter(({ where }) => where), again, chars: 5e6 };
  return h(
    'div',
    { class: 'talk' },
    facts(view),
    view.problem !== null &&
      h(
        'div',
        { class: 'banner', role: 'note' },
        h('b', null, [view.problem.status, view.problem.kind].filter(Boolean).join(' ')),
        h('span', { class: 'said' }, view.problem.message),
      ),
    view.system.length > 0 &&
      turn(
        'system',
        view.system.map((one, i) => block(one, ['system', i], { ...context, lines: LINES.system })),
        [],
        '–',
      ),
    tools(view.tools),
    turns(view.turns, context),
  );
}

/** What the parts of a conversation need to be drawn elsewhere. */
export interface Told {
  readonly notes?: readonly Note[];
  /** The same body with longer texts. */
  readonly again: Context['again'];
  /** Where the pictures of the body come from; left out: they stand there by kind and size. */
  readonly pictures?: PictureSource;
  /** The search that led here: texts with its words are shown whole. */
  readonly q?: string;
}

const contextOf = ({ notes = [], again, pictures, q }: Told): Context => ({
  notes: notes.filter(({ where }) => where),
  again,
  ...(pictures && { pictures }),
  ...(q && { q }),
  chars: 5e6,
});

/** One turn. @param index its number in the request */
export const oneTurn = (view: TurnView, index: number, told: Told): HTMLElement =>
  drawTurn(view, index, contextOf(told));

/** Turns with those in the middle folded. */
export const allTurns = (views: readonly TurnView[], told: Told): HTMLElement =>
  turns(views, contextOf(told));

/** The blocks of an answer. */
export const answerBlocks = (views: readonly BlockView[], told: Told): readonly HTMLElement[] =>
  views.map((one, i) => block(one, [0, i], contextOf(told)));

/** The blocks of the instructions. */
export const systemBlocks = (views: readonly BlockView[], told: Told): readonly HTMLElement[] =>
  views.map((one, i) => block(one, ['system', i], { ...contextOf(told), lines: LINES.system }));

function facts(view: ConversationView): HTMLElement {
  const { settings, usage } = view;
  const facts = [
    view.model,
    view.finish === null ? '' : `ended with ${view.finish}`,
    view.kind === 'reply' && !view.complete && view.problem === null ? 'not complete' : '',
    usage === null ? '' : `${count(totalInput(usage))} tokens in, ${count(totalOutput(usage))} out`,
  ].filter((word) => word !== '');
  return h(
    'p',
    { class: 'talk-facts' },
    facts.map((word) => h('span', null, word)),
    Object.entries(settings).map(([name, value]) => {
      const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
      return h(
        'span',
        { class: 'setting', title: text },
        `${worded(name)} `,
        h('b', null, text.length > 48 ? `${text.slice(0, 47)}…` : text),
      );
    }),
  );
}

export function tools(all: readonly ToolView[]): Child {
  if (all.length === 0) return null;
  return h(
    'details',
    { class: 'tools' },
    h(
      'summary',
      null,
      h('b', null, several(all.length, 'tool')),
      h('span', { class: 'soft' }, ` ${all.map(({ name }) => name).join(', ')}`),
    ),
    all.map((tool) =>
      h(
        'details',
        { class: 'tool-def' },
        h(
          'summary',
          null,
          h('code', null, tool.name),
          h('span', { class: 'soft' }, ` ${tool.type}`),
        ),
        tool.description !== undefined && longText({ text: tool.description }),
        tool.schema !== undefined && jsonTree(tool.schema, { depth: 2 }),
      ),
    ),
  );
}

function turns(all: readonly TurnView[], context: Context): HTMLElement {
  const box = h('div', { class: 'turns' });
  const one = (index: number) => drawTurn(all[index]!, index, context);
  const between = all.length - HEAD - TAIL;
  if (between <= 4) {
    replace(
      box,
      all.map((_, i) => one(i)),
    );
    return box;
  }
  const range = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => one(from + i));
  const gap = h('div', { class: 'gap' });
  let next = HEAD;
  const last = all.length - TAIL;
  const draw = () =>
    replace(
      gap,
      button(
        `${several(last - next, 'turn')} not shown: show ${Math.min(50, last - next)}`,
        () => {
          const to = Math.min(last, next + 50);
          gap.before(...range(next, to));
          next = to;
          if (next < last) draw();
          else gap.remove();
        },
        { class: 'more' },
      ),
    );
  draw();
  replace(box, range(0, HEAD), gap, range(last, all.length));
  return box;
}

function drawTurn({ role, blocks, at }: TurnView, index: number, context: Context): HTMLElement {
  const results = blocks.length > 0 && blocks.every(({ type }) => type === 'tool-result');
  const rules = rulesAt(at, context.notes);
  const who = results ? 'tool' : role;
  const drawn = blocks.map((one, i) => block(one, [index, i], { ...context, lines: LINES[who] }));
  return turn(who, drawn, rules, String(index));
}

function turn(
  role: string,
  blocks: readonly HTMLElement[],
  rules: readonly string[],
  number: string,
): HTMLElement {
  return h(
    'section',
    { class: 'turn', 'data-role': role, 'aria-label': `${role}, turn ${number}` },
    h('div', { class: 'who' }, h('b', null, role), h('small', null, number)),
    h(
      'div',
      { class: 'said' },
      rules.length > 0 && h('div', { class: 'rules' }, rules.map(noteTag)),
      blocks.length === 0 ? h('p', { class: 'soft' }, '(nothing)') : blocks,
    ),
  );
}

/** Names of the notes about this place or a place inside it. */
function rulesAt(at: string | undefined, notes: readonly Note[]): readonly string[] {
  if (at === undefined || at === '') return [];
  const names = notes
    .map(({ name, where }) => ({
      name,
      place: `/${where!
        .replace(/\[(\d+)\]/g, '/$1')
        .replace(/^\//, '')
        .replaceAll('.', '/')}`,
    }))
    .filter(({ place }) => place === at || place.startsWith(`${at}/`))
    .map(({ name }) => name);
  return [...new Set(names)];
}

/** The path of a block: turn (or `system`), block, and further indexes inside a tool result. */
type Place = readonly (number | 'system')[];

function block(one: BlockView, place: Place, context: Context): HTMLElement {
  const rest = async () => {
    const found = blockAt(await context.again(context.chars), place);
    return found !== undefined && 'text' in found ? found.text : '';
  };
  const text = (cls?: string) =>
    'text' in one
      ? longText(one, cls, rest, hasWord(one.text, context.q ?? '') ? ALL_LINES : context.lines)
      : h('span');
  switch (one.type) {
    case 'text':
      return h('div', { class: 'block' }, text('md'), citations(one.citations));
    case 'refusal':
      return h('div', { class: 'block refusal' }, h('b', null, 'refusal'), text());
    case 'reasoning':
      return h(
        'details',
        { class: 'block reasoning', open: one.text !== '' && one.text.length < 600 },
        h(
          'summary',
          null,
          one.summary === true ? 'reasoning (summary)' : 'reasoning',
          h('small', null, ` ${several(one.chars ?? one.text.length, 'character')}`),
          one.sealed !== undefined &&
            h('small', null, `, ${one.sealed.kind} of ${bytes(one.sealed.bytes)}`),
        ),
        text(),
      );
    case 'tool-call':
      return h(
        'div',
        { class: 'block call' },
        h(
          'div',
          { class: 'call-head' },
          h('b', null, one.name),
          whose(one.by),
          h('code', null, one.id),
        ),
        one.chars === undefined ? input(one.text) : text('code'),
      );
    case 'tool-result':
      return h(
        'div',
        { class: 'block result', 'data-failed': String(one.is_error) },
        h(
          'div',
          { class: 'call-head' },
          h('b', null, one.is_error ? 'error' : 'result'),
          whose(one.by),
          h('code', null, one.call_id),
        ),
        one.content.map((inner, i) => block(inner, [...place, i], context)),
      );
    case 'media':
      return media(one, context);
    case 'opaque':
      return h('div', { class: 'block opaque' }, h('b', null, one.name), text('code'));
  }
}

function media(one: Extract<BlockView, { type: 'media' }>, { pictures }: Context): HTMLElement {
  const facts = [
    one.mime,
    one.filename,
    one.url,
    one.bytes === undefined ? undefined : bytes(one.bytes),
  ];
  const box = h('div');
  if (pictures !== undefined && one.at !== undefined && one.media === 'image') {
    void showPicture(box, pictures, one.at, one.mime ?? '');
  }
  return h(
    'div',
    { class: 'block media' },
    h('b', null, one.media),
    ` ${facts.filter(Boolean).join(', ')}`,
    box,
  );
}

const whose = (by: string): Child =>
  by === 'client'
    ? null
    : h('span', { class: 'by' }, by === 'gateway' ? 'run by the gateway' : 'run by the vendor');

function blockAt(view: ConversationView, place: Place): BlockView | undefined {
  const [first, second, ...deeper] = place;
  const blocks = first === 'system' ? view.system : view.turns[first as number]?.blocks;
  let found = blocks?.[second as number];
  for (const i of deeper)
    found = found?.type === 'tool-result' ? found.content[i as number] : undefined;
  return found;
}

/** The input of a call: a tree when it is JSON, else the text as the model wrote it. */
function input(text: string): HTMLElement {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return jsonTree(value as never, { depth: 1 });
  } catch {
    // Broken JSON is shown as it is.
  }
  return longText({ text }, 'code');
}

function citations(
  all: readonly { readonly url?: string; readonly title?: string }[] | undefined,
): Child {
  if (all === undefined || all.length === 0) return null;
  return h(
    'ol',
    { class: 'citations' },
    // URLs from content are shown, never linked.
    all.map(({ url, title }) => h('li', null, [title, url].filter(Boolean).join(' · '))),
  );
}

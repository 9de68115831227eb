/** Renders a body as a JSON tree or as raw text, and the headers of its stage. */

import type { Note } from '../../../conversation/notes.ts';
import type { SampleStage } from '../../../samples/sample.ts';
import { getBody } from '../kit/api-calls.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { bytes, count } from '../kit/format.ts';
import { closeAll, jsonTree, openAll } from '../kit/json-tree.ts';
import { MAX, parsedBody } from './bodies.ts';
import { isStream } from './stages.ts';

/** Characters of a raw body that are shown at a time: browsers lay out very long texts slowly. */
const PIECE = 100_000;

export async function jsonBody(
  id: string,
  stageInfo: SampleStage,
  notes: readonly Note[],
  signal: AbortSignal,
): Promise<HTMLElement> {
  const stream = isStream(stageInfo);
  const { body, value } = await parsedBody(id, stageInfo.stage, stream, signal);
  if (value === undefined) {
    const why = body.whole
      ? 'This body is not JSON.'
      : `This body of ${bytes(body.bytes)} is too large for a tree. These are its first ${bytes(MAX)}.`;
    return h('div', null, h('p', { class: 'soft' }, why), rawText(body.text));
  }
  const marks = new Map(
    notes.filter(({ where }) => where?.startsWith('/')).map(({ name, where }) => [where!, name]),
  );
  const tree = jsonTree(value, { depth: stream ? 1 : 2, marks });
  return h(
    'div',
    null,
    h(
      'p',
      { class: 'tree-bar' },
      button('Expand all', () => openAll(tree), { class: 'tiny' }),
      button('Collapse all', () => closeAll(tree), { class: 'tiny' }),
      !body.whole &&
        h('span', { class: 'soft' }, `the first ${bytes(MAX)} of ${bytes(body.bytes)}`),
    ),
    tree,
  );
}

export async function rawBody(
  id: string,
  stageInfo: SampleStage,
  signal: AbortSignal,
): Promise<HTMLElement> {
  const { text, bytes: all, whole } = await getBody(id, stageInfo.stage, MAX, signal);
  return h(
    'div',
    null,
    !whole && h('p', { class: 'soft' }, `The first ${bytes(MAX)} of ${bytes(all)}.`),
    rawText(text),
  );
}

function rawText(text: string): HTMLElement {
  const box = h('pre', { class: 'raw', tabindex: 0, translate: 'no' });
  let shown = 0;
  const add = () => {
    more.remove();
    const next = text.slice(shown, shown + PIECE);
    shown += next.length;
    box.append(h('span', null, next));
    const left = text.length - shown;
    if (left <= 0) return;
    more.textContent = `show ${count(Math.min(PIECE, left))} of ${count(left)} more characters`;
    box.append(more);
  };
  const more = button('', add, { class: 'more' });
  add();
  return box;
}

export function headersTable(stageInfo: SampleStage): HTMLElement {
  const line = (name: string, value: Child) =>
    h('tr', null, h('th', { scope: 'row' }, name), h('td', null, value));
  return h(
    'div',
    { class: 'tablebox', tabindex: 0 },
    h(
      'table',
      { class: 'headers' },
      h(
        'tbody',
        null,
        stageInfo.url !== undefined && line('URL', stageInfo.url),
        stageInfo.status !== undefined && line('Status', stageInfo.status),
        stageInfo.target !== undefined && line('Target', stageInfo.target),
        stageInfo.protocol !== undefined && line('Protocol', stageInfo.protocol),
        stageInfo.error !== undefined &&
          line('Error', `${stageInfo.error.kind}: ${stageInfo.error.message}`),
        stageInfo.made === true &&
          line('Body', 'There was no answer. The gateway wrote this body to say why.'),
        line('File', stageInfo.file),
        Object.entries(stageInfo.headers ?? {}).map(([name, value]) => line(name, value)),
      ),
    ),
  );
}

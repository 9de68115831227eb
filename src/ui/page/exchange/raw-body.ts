/** A body as JSON and as it was on the wire, and what stood beside it. */

import type { Note } from '../../../conversation/notes.ts';
import type { SampleStage } from '../../../samples/sample.ts';
import { getBody } from '../kit/api-calls.ts';
import { button, type Child, h } from '../kit/dom.ts';
import { bytes, count } from '../kit/format.ts';
import { closeAll, jsonTree, openAll } from '../kit/json-tree.ts';
import { MOST, parsedBody } from './bodies.ts';
import { isStream } from './edges.ts';

/** Characters in one piece of a raw body; a browser lays out a text of megabytes only slowly. */
const PIECE = 100_000;

export async function jsonBody(
  id: string,
  edge: SampleStage,
  notes: readonly Note[],
  signal: AbortSignal,
): Promise<HTMLElement> {
  const stream = isStream(edge);
  const { body, value } = await parsedBody(id, edge.stage, stream, signal);
  if (value === undefined) {
    const why = body.whole
      ? 'This body is not JSON.'
      : `Of ${bytes(body.bytes)} the first ${bytes(MOST)} are here: too much for a tree.`;
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
      button('Open all', () => openAll(tree), { class: 'tiny' }),
      button('Fold', () => closeAll(tree), { class: 'tiny' }),
      !body.whole &&
        h('span', { class: 'soft' }, `the first ${bytes(MOST)} of ${bytes(body.bytes)}`),
    ),
    tree,
  );
}

export async function rawBody(
  id: string,
  edge: SampleStage,
  signal: AbortSignal,
): Promise<HTMLElement> {
  const { text, bytes: all, whole } = await getBody(id, edge.stage, MOST, signal);
  return h(
    'div',
    null,
    !whole && h('p', { class: 'soft' }, `The first ${bytes(MOST)} of ${bytes(all)}.`),
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
    more.textContent = `show ${count(Math.min(PIECE, left))} of ${count(left)} characters more`;
    box.append(more);
  };
  const more = button('', add, { class: 'more' });
  add();
  return box;
}

export function headersTable(edge: SampleStage): HTMLElement {
  const line = (name: string, value: Child) =>
    h('tr', null, h('th', { scope: 'row' }, name), h('td', null, value));
  return h(
    'div',
    { class: 'tablebox' },
    h(
      'table',
      { class: 'headers' },
      h(
        'tbody',
        null,
        edge.url !== undefined && line('URL', edge.url),
        edge.status !== undefined && line('Status', edge.status),
        edge.target !== undefined && line('Target', edge.target),
        edge.protocol !== undefined && line('Protocol', edge.protocol),
        edge.error !== undefined && line('Error', `${edge.error.kind}: ${edge.error.message}`),
        edge.made === true &&
          line('Body', 'Nothing was answered; the body tells why, in the gateway’s words.'),
        line('File', edge.file),
        Object.entries(edge.headers ?? {}).map(([name, value]) => line(name, value)),
      ),
    ),
  );
}

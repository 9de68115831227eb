/** Guards everything that Preact draws: no attribute can run something, and no text hides its characters. Imported first. */

import { createElement, options, type VNode } from 'preact';
import { hides, pieces, plain } from './visible.ts';

const Visible = ({ text }: { readonly text: string }) =>
  createElement(
    'span',
    null,
    pieces(text).map(({ text: piece, hidden }) =>
      hidden === undefined ? piece : createElement('span', { class: 'ctl', title: hidden }, piece),
    ),
  );

const KINDS = [
  ['markup', /html$|^srcdoc$/i],
  ['script', /^(on|style$)/i],
  ['address', /^(href|src|action)$/i],
  ['label', /^(title|placeholder|alt|aria-)/],
] as const;
const INSIDE = /^(#|\/(?!\/)|blob:)/;

type Kind = (typeof KINDS)[number][0] | 'plain';

/** A list draws the same few attributes for every row. */
const kinds = new Map<string, Kind>();

function kindOf(name: string): Kind {
  const known = kinds.get(name);
  if (known !== undefined) return known;
  const kind = KINDS.find(([, names]) => names.test(name))?.[0] ?? 'plain';
  kinds.set(name, kind);
  return kind;
}

/** @throws Error for an attribute that could run something or leads out of the page */
function check(props: Record<string, unknown>): void {
  for (const name in props) {
    const kind = kindOf(name);
    if (kind === 'plain') continue;
    const value = props[name];
    const isText = typeof value === 'string';
    if (kind === 'markup' || (kind === 'script' && isText)) {
      throw new Error(`the attribute ${name} is not for here`);
    }
    if (!isText) continue;
    if (kind === 'address' && !INSIDE.test(value)) {
      throw new Error(`${value.slice(0, 40)} leads out of this page`);
    }
    if (kind === 'label' && hides(value)) props[name] = plain(value);
  }
}

options.vnode = (vnode: VNode) => {
  const { type, props } = vnode as { type: unknown; props: unknown };
  if (typeof type === 'string') check(props as Record<string, unknown>);
  // A text, which has no type.
  else if (type === null && typeof props === 'string' && hides(props)) {
    Object.assign(vnode, { type: Visible, props: { text: props } });
  }
};

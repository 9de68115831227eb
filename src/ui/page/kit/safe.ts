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

const READ_OUT = /^(title|placeholder|alt|aria-)/;
const LEADS = /^(href|src|action)$/i;
const INSIDE = /^(#|\/(?!\/)|blob:)/;

/** @throws Error for an attribute that could run something or leads out of the page */
function check(props: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(props)) {
    if (/html$|^srcdoc$/i.test(name)) throw new Error(`the attribute ${name} is not for here`);
    if (typeof value !== 'string') continue;
    if (/^(on|style$)/i.test(name)) throw new Error(`the attribute ${name} is not for here`);
    if (LEADS.test(name) && !INSIDE.test(value)) {
      throw new Error(`${value.slice(0, 40)} leads out of this page`);
    }
    if (READ_OUT.test(name) && hides(value)) props[name] = plain(value);
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

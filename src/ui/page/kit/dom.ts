/** Creates DOM elements: strings become text nodes, and nothing is parsed as HTML. */

import { pieces, plain } from './visible.ts';

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Listeners = {
  readonly [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => void;
};

/** Attributes by their names; `on`: listeners; `vars`: CSS custom properties (set where the policy allows it). */
export interface Props {
  readonly class?: string;
  readonly on?: Listeners;
  readonly vars?: Readonly<Record<string, string>>;
  readonly [attribute: string]: unknown;
}

/** An HTML element. @throws Error for an attribute that could run something */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), props, children);
}

function filled<E extends HTMLElement>(
  element: E,
  props: Props | null | undefined,
  children: readonly Child[],
): E {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value as Record<string, EventListener>)) {
        element.addEventListener(event, listener);
      }
    } else if (name === 'vars') {
      for (const [variable, text] of Object.entries(value as Record<string, string>)) {
        element.style.setProperty(variable, text);
      }
    } else attribute(element, name, value);
  }
  append(element, children);
  return element;
}

/** Sets an attribute; null and false remove it. */
export function attribute(element: Element, name: string, value: unknown): void {
  if (value === undefined || value === null || value === false) {
    element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (/^(on|style$|srcdoc$)/i.test(name)) throw new Error(`the attribute ${name} is not for here`);
  if (/^(href|src|action)$/i.test(name) && !/^(#|\/(?!\/)|blob:)/.test(text)) {
    throw new Error(`${text.slice(0, 40)} leads out of this page`);
  }
  element.setAttribute(name, /^(title|placeholder|aria-)/.test(name) ? plain(text) : text);
}

function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child as readonly Child[]);
    else if (child instanceof Node) parent.appendChild(child);
    else for (const node of textNodes(String(child))) parent.appendChild(node);
  }
}

function textNodes(text: string): readonly Node[] {
  return pieces(text).map(({ text: piece, hidden }) => {
    if (hidden === undefined) return document.createTextNode(piece);
    const sign = document.createElement('span');
    sign.className = 'ctl';
    sign.title = hidden;
    sign.textContent = piece;
    return sign;
  });
}

/** Replaces the content of an element. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/** A button with a text. */
export function button(
  text: Child,
  press: (event: MouseEvent) => void,
  props: Props = {},
): HTMLButtonElement {
  return h('button', { type: 'button', ...props, on: { ...props.on, click: press } }, text);
}

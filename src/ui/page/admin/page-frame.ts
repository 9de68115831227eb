/** What the admin pages share: a head with title and actions, a place for problems, and the state while they load. */

import { type Child, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import type { View } from '../kit/view.ts';

export interface PageFrame {
  readonly node: HTMLElement;
  readonly body: HTMLElement;
  /** Runs what loads the page; a failure is shown above what is there. */
  run(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  problem(text: string | undefined): void;
  close(): void;
}

export interface PageFrameOptions {
  readonly title: string;
  /** One line that says what the page is for. */
  readonly about: Child;
  readonly actions?: Child;
}

export function pageFrame({ title, about, actions }: PageFrameOptions): PageFrame {
  let stop = new AbortController();
  const problem = h('p', { class: 'banner', role: 'alert', hidden: true });
  const body = h('div', { class: 'admin-body' });
  const node = h(
    'div',
    { class: 'admin-frame' },
    h(
      'header',
      { class: 'admin-head' },
      h('div', null, h('h1', null, title), h('p', { class: 'soft' }, about)),
      actions !== undefined && h('div', { class: 'admin-actions' }, actions),
    ),
    problem,
    body,
  );
  function show(text: string | undefined): void {
    problem.hidden = text === undefined;
    replace(problem, text === undefined ? null : [h('b', null, 'Failed'), h('span', null, text)]);
  }
  return {
    node,
    body,
    problem: show,
    async run(work) {
      stop.abort();
      stop = new AbortController();
      const { signal } = stop;
      node.setAttribute('aria-busy', 'true');
      try {
        await work(signal);
        if (!signal.aborted) show(undefined);
      } catch (thrown) {
        if (!signal.aborted) show(failureText(thrown));
      }
      if (!signal.aborted) node.removeAttribute('aria-busy');
    },
    close: () => stop.abort(),
  };
}

/** A page that loads its data anew some milliseconds after it has them, and on the key r. */
export function reloadingView(
  frame: PageFrame,
  after: number,
  load: (signal: AbortSignal) => Promise<void>,
): View {
  let timer = 0;
  async function reload(): Promise<void> {
    clearTimeout(timer);
    await frame.run(load);
    if (frame.node.isConnected) timer = window.setTimeout(() => void reload(), after);
  }
  return {
    node: frame.node,
    show: () => void reload(),
    press(event) {
      if (event.key !== 'r') return false;
      void reload();
      return true;
    },
    close() {
      clearTimeout(timer);
      frame.close();
    },
  };
}

/** What is shown where there is nothing yet: what it would be, and what to do. */
export const emptyState = (title: string, ...more: Child[]): HTMLElement =>
  h('div', { class: 'blank' }, h('h2', null, title), more);

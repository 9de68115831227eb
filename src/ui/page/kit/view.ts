/** What a part of the page is: an element that follows the address until it is closed. */

import type { Route } from './route.ts';

export interface View<R extends Route = Route> {
  readonly node: HTMLElement;
  /** The address changed, and this view still stands for it. */
  show(route: R): void;
  /** Takes a key press; true: it was for this view. */
  press?(event: KeyboardEvent): boolean;
  close(): void;
}

export type ExchangeRoute = Route & { readonly name: 'exchange' };

/** The interface of a part of the page: an element that follows the URL until it is closed. */

import type { Route } from './route.ts';

export interface View<R extends Route = Route> {
  readonly node: HTMLElement;
  /** Shows the state of a changed URL. */
  show(route: R): void;
  /** Handles a key press; true: the view has used it. */
  press?(event: KeyboardEvent): boolean;
  close(): void;
}

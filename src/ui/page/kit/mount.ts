/** Shows a component as a view. */

import { render, type VNode } from 'preact';
import { pressed } from './hooks.ts';
import type { Route } from './route.ts';
import type { View } from './view.ts';

export function viewOf<R extends Route = Route>(draw: (route: R) => VNode): View<R> {
  const node = document.createElement('div');
  node.className = 'mounted';
  return {
    node,
    show: (route) => render(draw(route), node),
    press: pressed,
    close: () => render(null, node),
  };
}

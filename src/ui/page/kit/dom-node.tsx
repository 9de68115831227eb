/** An element that was made by hand, inside a component. */

import { useLayoutEffect, useRef } from 'preact/hooks';

export function DomNode({ node }: { node: HTMLElement }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => place.current!.replaceChildren(node), [node]);
  return <div class="mounted" ref={place} />;
}

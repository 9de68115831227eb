/** A button that opens a panel below it. */

import { useRef } from 'preact/hooks';
import type { Child } from './ui.tsx';

interface MenuProps {
  readonly name: string;
  readonly text: string;
  readonly label?: string;
  readonly children: Child | ((close: () => void) => Child);
}

/** A button that opens a panel; Escape and a click elsewhere close it. */
export function Menu({ name, text, label, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    menu.current!.open = false;
  };
  return (
    <details
      ref={menu}
      class={`menu ${name}-menu`}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !menu.current!.open) return;
        event.stopPropagation();
        close();
        menu.current!.querySelector('summary')!.focus();
      }}
      onFocusOut={({ relatedTarget: to }) => {
        if (to instanceof Node && !menu.current!.contains(to)) close();
      }}
    >
      <summary class="button" aria-label={label}>
        {text}
      </summary>
      <div class="panel">{typeof children === 'function' ? children(close) : children}</div>
    </details>
  );
}

/** A button that opens a panel below it. */

import { useRef, useState } from 'preact/hooks';
import type { Child } from './ui.tsx';

interface MenuProps {
  readonly name: string;
  readonly text: string;
  readonly label?: string;
  /** Drawn while it is open. */
  readonly children: (close: () => void) => Child;
}

/** A button that opens a panel; Escape and a click elsewhere close it. */
export function Menu({ name, text, label, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  const [open, setOpen] = useState(false);
  const close = () => {
    menu.current!.open = false;
  };
  return (
    <details
      ref={menu}
      class={`menu ${name}-menu`}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
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
      <summary
        class="button"
        aria-label={label}
        // The event `toggle` comes later than the next key may.
        onClick={() => setOpen(!menu.current!.open)}
      >
        {text}
      </summary>
      <div class="panel">{open && children(close)}</div>
    </details>
  );
}

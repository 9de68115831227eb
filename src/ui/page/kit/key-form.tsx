/** The form that asks for a key, once for this tab. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from './language.ts';
import { type Child, Problem } from './ui.tsx';

export interface KeyFormProps {
  readonly title: string;
  readonly label: string;
  /** What kind of key it is, and what becomes of it. */
  readonly help: Child;
  /** A key was refused: why. */
  readonly problem: string | undefined;
  /** The user entered a key. */
  readonly entered: (key: string) => void;
}

export function KeyForm({ title, label, help, problem, entered }: KeyFormProps) {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), [problem]);
  return (
    <form
      class="keyform"
      onSubmit={(event) => {
        event.preventDefault();
        entered(input.current!.value.trim());
      }}
    >
      <h1>{title}</h1>
      <label for="key">{label}</label>
      <input
        ref={input}
        type="password"
        id="key"
        name="key"
        autocomplete="current-password"
        required
        spellcheck={false}
        aria-describedby="key-words"
        aria-invalid={problem !== undefined || undefined}
      />
      <Problem text={problem} />
      <p id="key-words" class="soft">
        {help}
      </p>
      <button type="submit" class="primary">{t`Open`}</button>
    </form>
  );
}

/** The form that asks for a key, once for this tab. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { Field, Form } from './form.tsx';
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
    <Form
      class="keyform"
      does={t`Open`}
      run={async (data) => entered(String(data.get('key')).trim())}
    >
      <h1>{title}</h1>
      <Problem text={problem} />
      <Field label={label} hint={help}>
        <input
          ref={input}
          type="password"
          name="key"
          autocomplete="current-password"
          required
          spellcheck={false}
          aria-invalid={problem !== undefined || undefined}
        />
      </Field>
    </Form>
  );
}

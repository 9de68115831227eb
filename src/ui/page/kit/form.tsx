import { cloneElement, type VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { failureText } from './fetching.ts';
import { t } from './language.ts';
import { Button, type Child, Problem } from './ui.tsx';

interface FieldProps {
  readonly label: string;
  readonly hint?: Child;
  readonly children: VNode<object>;
}

/** `useId` begins again with every render of the whole page. */
let ids = 0;

export function Field({ label, hint, children }: FieldProps) {
  const [id] = useState(() => `field-${++ids}`);
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, { id, ...described })}
      {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

type InputProps = {
  readonly name?: string;
  readonly value?: string | undefined;
  readonly [attribute: string]: unknown;
};

/** A field for a word: nothing is completed or corrected. `value` is what it holds at first. */
export const Word = ({ value, ...rest }: InputProps) => (
  <input autocomplete="off" spellcheck={false} defaultValue={value ?? ''} {...rest} />
);

type Choices = readonly (readonly [value: string, text: string])[];

export const Options = ({ all, first }: { all: Choices; first?: string | undefined }) =>
  all.map(([value, text]) => (
    <option key={value} value={value} selected={value === first || undefined}>
      {text}
    </option>
  ));

type SelectProps = InputProps & {
  readonly all: Choices;
  readonly first?: string | undefined;
  readonly choose?: (value: string) => void;
};

/** One of several: `value` is always shown, `first` until another one is chosen. */
export const Select = ({ all, first, choose, ...rest }: SelectProps) => (
  <select {...rest} onChange={({ currentTarget }) => choose?.(currentTarget.value)}>
    <Options all={all} first={first} />
  </select>
);

interface FormProps {
  readonly class?: string;
  /** What the button says; undefined: there is none. */
  readonly does: string | undefined;
  readonly dangerous?: boolean | undefined;
  /** Rejects with what went wrong: the form stays and shows it. */
  readonly run: (data: FormData) => Promise<void>;
  readonly cancel?: (() => void) | undefined;
  readonly children: Child;
}

export function Form({ class: cls, does, dangerous, run, cancel, children }: FormProps) {
  const [{ busy, problem }, set] = useState<{ busy: boolean; problem?: string | undefined }>({
    busy: false,
  });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    set({ busy: true });
    try {
      await run(new FormData(event.target as HTMLFormElement));
      set({ busy: false });
    } catch (thrown) {
      set({ busy: false, problem: failureText(thrown) });
    }
  };
  return (
    <form class={cls} onSubmit={(event) => void submit(event)}>
      {children}
      <Problem text={problem} />
      <div class="form-end">
        {cancel && <Button onClick={cancel}>{t`Cancel`}</Button>}
        {does && (
          <button type="submit" class={dangerous ? 'danger' : 'primary'} disabled={busy}>
            {does}
          </button>
        )}
      </div>
    </form>
  );
}

interface DialogProps {
  readonly title: string;
  readonly class: string;
  readonly close: () => void;
  readonly children: Child;
}

/** A dialog over the page; Escape and a click beside it close it. */
export function Dialog({ title, class: cls, close, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => ref.current!.showModal(), []);
  return (
    <dialog
      ref={ref}
      class={cls}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === ref.current && close()}
    >
      {children}
    </dialog>
  );
}

export interface Question extends Omit<FormProps, 'cancel' | 'class'> {
  readonly title: string;
}

/** Asks before something is done. */
export const Ask = ({ title, run, close, children, ...rest }: Question & { close: () => void }) => (
  <Dialog title={title} class="question" close={close}>
    <Form
      {...rest}
      cancel={close}
      run={async (data) => {
        await run(data);
        close();
      }}
    >
      <h2>{title}</h2>
      <div class="dialog-body">{children}</div>
    </Form>
  </Dialog>
);

interface KeyFormProps {
  readonly title: string;
  readonly label: string;
  /** What kind of key it is, and what becomes of it. */
  readonly help: Child;
  /** A key was refused: why. */
  readonly problem: string | undefined;
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

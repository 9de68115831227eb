import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clock, day, fromNow } from './format.ts';
import { type Loaded, useKeys } from './hooks.ts';
import { manual } from './language.ts';

export type Child = ComponentChildren;

export const Button = (props: ButtonHTMLAttributes) => <button type="button" {...props} />;

/** A pair of name and value; the third part: attributes of the pair. What is false is left out. */
export type Fact = readonly [name: string, value: Child, more?: object] | false | null | undefined;

/** Pairs of names and values. */
export const Facts = ({ items, ...rest }: { items: readonly Fact[]; class: string }) => (
  <dl {...rest}>
    {items.map(
      (item) =>
        item && (
          <div key={item[0]} {...item[2]}>
            <dt>{item[0]}</dt>
            <dd>{item[1]}</dd>
          </div>
        ),
    )}
  </dl>
);

export const Problem = ({ text }: { text: Child }) =>
  text === undefined || text === null || text === '' ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  );

/** What is shown where there is nothing yet: what it would be, and what to do. */
export const Blank = ({ title, children }: { title: string; children?: Child }) => (
  <div class="blank">
    <h2>{title}</h2>
    {children}
  </div>
);

export const DocLink = ({ to, children }: { to: string; children: Child }) => (
  <a href={manual(to)} target="_blank" rel="noopener">
    {children}
  </a>
);

/** A moment in words, with the exact one as the title. */
export function When({ iso, words = fromNow }: { iso: string; words?: (time: number) => Child }) {
  const time = Date.parse(iso);
  return (
    <time dateTime={iso} title={`${day(time)} ${clock(time)}`}>
      {words(time)}
    </time>
  );
}

/** One word with a coloured dot. */
export const State = ({ tone, children }: { tone?: string | undefined; children: Child }) => (
  <span class="state" data-tone={tone}>
    {children}
  </span>
);

export const Soft = ({ children }: { children: Child }) => <span class="soft">{children}</span>;

interface SegmentsProps<V extends string> {
  readonly label: string;
  readonly options: readonly (readonly [V, string])[];
  readonly value: string;
  readonly choose: (value: V) => void;
}

/** Buttons of which one is pressed. */
export const Segments = <V extends string>({ label, options, value, choose }: SegmentsProps<V>) => (
  <div class="segments" role="group" aria-label={label}>
    {options.map(([one, text]) => (
      <Button key={one} data-value={one} aria-pressed={one === value} onClick={() => choose(one)}>
        {text}
      </Button>
    ))}
  </div>
);

type TabLink = readonly [title: string, href: string, isCurrent: boolean];

interface TabsProps {
  readonly label: string;
  readonly links: readonly TabLink[];
  readonly class?: 'tabs' | 'places';
  /** The keys 1, 2, … open them. */
  readonly numbered?: boolean;
}

/** Links to places, or to views of the same thing: a strip that scrolls in a narrow window. */
export function Tabs({ label, links, class: cls = 'tabs', numbered }: TabsProps) {
  const nav = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const current = nav.current!.querySelector('[aria-current]');
    current?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [links.findIndex(([, , isCurrent]) => isCurrent)]);
  return (
    <nav class={cls} aria-label={label} ref={nav}>
      {links.map(([title, href, isCurrent], i) => (
        <a
          key={title}
          href={href}
          aria-current={isCurrent ? 'page' : undefined}
          aria-keyshortcuts={numbered ? String(i + 1) : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

/** The status of an answer, in its colour. */
export const StatusPill = ({ tone, children }: { tone: string; children: Child }) => (
  <span class="pill-status" data-tone={tone}>
    {children}
  </span>
);

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

interface PageFrameProps {
  readonly title: string;
  /** One line that says what the page is for. */
  readonly about: Child;
  readonly actions?: Child;
  /** What the page shows; the key r loads it again. */
  readonly loaded?: Pick<Loaded<unknown>, 'problem' | 'busy' | 'reload'>;
  readonly children?: Child;
}

/** A page that fills the window: its head, what went wrong, and its body. */
export function PageFrame({ title, about, actions, loaded, children }: PageFrameProps) {
  useKeys({ r: () => loaded?.reload() });
  return (
    <div class="admin-frame" aria-busy={loaded?.busy || undefined}>
      <header class="admin-head">
        <div>
          <h1>{title}</h1>
          <p class="soft">{about}</p>
        </div>
        {actions && <div class="admin-actions">{actions}</div>}
      </header>
      <Problem text={loaded?.problem} />
      <div class="admin-body">{children}</div>
    </div>
  );
}

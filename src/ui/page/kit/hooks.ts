import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Answers } from '../../api/api.ts';
import { failureText, get, type Params } from './fetching.ts';

export interface Loaded<T> {
  /** Undefined until it is there; while more is loaded, what there was. */
  readonly data: T | undefined;
  readonly problem: string | undefined;
  readonly busy: boolean;
  reload(): void;
  set(data: T): void;
}

/**
 * Loads what a view shows, and again when `deps` change.
 * @param every milliseconds after which it is loaded again; undefined: it is not
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  every?: number | ((data: T) => number | undefined),
): Loaded<T> {
  const [state, setState] = useState<{ data?: T; problem?: string | undefined; busy: boolean }>({
    busy: true,
  });
  const again = useRef(() => {});
  useLayoutEffect(() => {
    let stop = new AbortController();
    let timer = 0;
    const run = async () => {
      clearTimeout(timer);
      stop.abort();
      stop = new AbortController();
      const { signal } = stop;
      setState((old) => ({ ...old, busy: true }));
      let after = typeof every === 'number' ? every : undefined;
      try {
        const data = await load(signal);
        if (signal.aborted) return;
        setState({ data, busy: false });
        if (typeof every === 'function') after = every(data);
      } catch (thrown) {
        if (signal.aborted) return;
        setState((old) => ({ ...old, problem: failureText(thrown), busy: false }));
      }
      if (after !== undefined) timer = window.setTimeout(() => void run(), after);
    };
    again.current = () => void run();
    void run();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, deps);
  return {
    data: state.data,
    problem: state.problem,
    busy: state.busy,
    reload: () => again.current(),
    set: (data) => setState({ data, busy: false }),
  };
}

/** Loads what a path of the page's API answers with, and again when its values change. @param every as of {@link useLoad} */
export const useGet = <P extends keyof Answers>(
  path: P,
  params?: Params,
  every?: number | ((data: Answers[P]) => number | undefined),
): Loaded<Answers[P]> =>
  useLoad((signal) => get(path, params, signal), [path, JSON.stringify(params)], every);

/** Draws the component again. */
export function useRedraw(): () => void {
  const [, set] = useState({});
  return () => set({});
}

/** Milliseconds in which the browser draws what was there first. */
const LATER = 100;

/** False at first, true a moment after `begins`. */
export function useLater(begins: boolean): boolean {
  const [later, setLater] = useState(false);
  useLayoutEffect(() => {
    if (!begins) return;
    const timer = setTimeout(() => setLater(true), LATER);
    return () => clearTimeout(timer);
  }, [begins]);
  return later;
}

/** Handles a key press; true: it was used. */
export type Press = (event: KeyboardEvent) => boolean;

const handlers = new Map<object, { readonly level: number; readonly press: Press }>();

/**
 * Takes keys while the component is shown.
 * @param press what each key does, or one function for all of them
 * @param level of several, the highest is asked first
 */
export function useKeys(press: Press | Readonly<Record<string, () => void>>, level = 0): void {
  const own = useRef({});
  useLayoutEffect(() => {
    const one: Press = (event) => {
      if (typeof press === 'function') return press(event);
      press[event.key]?.();
      return Object.hasOwn(press, event.key);
    };
    handlers.set(own.current, { level, press: one });
  });
  useLayoutEffect(() => () => void handlers.delete(own.current), []);
}

/** Gives a key to the views that are shown. */
export const pressed: Press = (event) =>
  [...handlers.values()].sort((a, b) => b.level - a.level).some(({ press }) => press(event));

/** Moves the focus along links, as `j` and `k` do. @param boxes selector: each is a link, or holds one that stands for it */
export function moveFocus(boxes: string, key: string): boolean {
  if (key !== 'j' && key !== 'k') return false;
  const all = [...document.querySelectorAll<HTMLElement>(boxes)];
  const at = all.findIndex((box) => box.contains(document.activeElement));
  const to = all[at < 0 ? 0 : at + (key === 'j' ? 1 : -1)];
  const link = to?.matches('a') ? to : to?.querySelector('a');
  link?.focus();
  return link !== null && link !== undefined;
}

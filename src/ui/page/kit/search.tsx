/** The search field of a list, and fields that follow the address. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { useKeys } from './hooks.ts';

const SEARCH_AFTER_MS = 200;

/** A field that follows a value, unless somebody types in it. */
export function useFollowing(value: string) {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    const field = input.current!;
    if (document.activeElement !== field && field.value !== value) field.value = value;
  });
  return input;
}

interface SearchProps {
  readonly label: string;
  readonly placeholder: string;
  /** What is searched for. */
  readonly q: string;
  readonly put: (q: string) => void;
  /** The reader goes from the search to what it found. */
  readonly enter?: (() => void) | undefined;
}

/** The key / leads to it; Enter searches at once, Escape takes the search away. */
export function Search({ label, placeholder, q, put, enter }: SearchProps) {
  const input = useFollowing(q);
  const timer = useRef(0);
  useKeys(({ key }) => {
    // The lists of other places are hidden.
    if (key !== '/' || input.current!.offsetParent === null) return false;
    input.current!.focus();
    input.current!.select();
    return true;
  }, 1);
  const search = (value: string) => {
    clearTimeout(timer.current);
    put(value.trim());
  };
  const press = (event: KeyboardEvent) => {
    const { value } = input.current!;
    if (event.key === 'Enter') search(value);
    if (event.key === 'ArrowDown' && enter !== undefined) {
      event.preventDefault();
      // Not a move in the list as well.
      event.stopPropagation();
      search(value);
      enter();
    }
    if (event.key !== 'Escape') return;
    // Escape empties the search field without an input event: the filter is removed here.
    event.preventDefault();
    if (value !== '') search('');
    input.current!.value = '';
    input.current!.blur();
  };
  return (
    <input
      ref={input}
      name="q"
      type="search"
      class="search"
      autocomplete="off"
      spellcheck={false}
      placeholder={placeholder}
      aria-label={label}
      aria-keyshortcuts="/"
      onInput={({ currentTarget }) => {
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => search(currentTarget.value), SEARCH_AFTER_MS);
      }}
      onKeyDown={press}
    />
  );
}

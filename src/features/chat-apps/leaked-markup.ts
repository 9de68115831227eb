/** Removes the markup of leaked calls from streamed text, wherever it stands. */

const WRAPPER = 'function_calls';
/** Tags within such a block; outside of it they are plain text. */
const INNER = ['invoke', 'parameter'];
const BARS = /^[|｜]{1,2}\s*/;
const MARK = 'DSML';
/** Characters of a tag at most. */
const MAX_LENGTH = 240;

type Tag =
  | { readonly kind: 'none' }
  /** The start of a possible tag. */
  | { readonly kind: 'partial' }
  | {
      readonly kind: 'tag';
      readonly length: number;
      readonly name: string;
      readonly closes: boolean;
    };

const NONE: Tag = { kind: 'none' };
const PARTIAL: Tag = { kind: 'partial' };

/**
 * Chat apps show replies to people, so their replies contain no such markup; other clients may quote it
 * and get it unchanged. Tags are removed alone; calls and arguments with their content.
 */
export class MarkupRemover {
  #held = '';
  /** Pieces of markup removed so far. */
  count = 0;
  /** Inside a block, where inner tags need no mark. */
  #inBlock = false;
  /** The call or argument whose content is being dropped. */
  #inside: string | undefined;

  /** The text that may be passed on; '' while a possible tag is incomplete. */
  push(text: string, isLast = false): string {
    const all = this.#held + text;
    this.#held = '';
    let out = '';
    let at = 0;
    for (;;) {
      const next = candidate(all, at);
      if (this.#inside === undefined) out += all.slice(at, next);
      if (next === all.length) return out;
      const tag = tagAt(all, next, this.#inBlock || this.#inside !== undefined);
      if (tag.kind === 'partial' && !isLast) {
        this.#held = all.slice(next);
        return out;
      }
      if (tag.kind !== 'tag') {
        // At the end of the text, the start of a marked tag is a tag that was cut off.
        const rest = all.slice(next);
        if (tag.kind === 'partial' && (/^<\/?[|｜]/.test(rest) || rest.includes(MARK))) {
          this.count++;
          return out;
        }
        if (this.#inside === undefined) out += all[next];
        at = next + 1;
        continue;
      }
      this.count++;
      this.#enter(tag.name, tag.closes);
      at = next + tag.length;
    }
  }

  /** The held text at the end. */
  end(): string {
    return this.push('', true);
  }

  #enter(name: string, closes: boolean): void {
    if (INNER.includes(name)) {
      if (!closes) this.#inside ??= name;
      else if (this.#inside === name || name === 'invoke') this.#inside = undefined;
    } else {
      this.#inside = undefined;
      this.#inBlock = !closes && name !== '';
    }
  }
}

/** The next position where a tag may begin; the text's length where there is none. */
function candidate(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x3c || code === 0x7c || code === 0xff5c) return at;
  }
  return text.length;
}

function tagAt(text: string, at: number, inBlock: boolean): Tag {
  const piece = text.slice(at, at + MAX_LENGTH);
  const open = /^<?\s*\/?\s*/.exec(piece)![0];
  const rest = piece.slice(open.length);
  if (rest === '') return text.length - at < MAX_LENGTH ? PARTIAL : NONE;
  const bars = BARS.exec(rest)?.[0];
  if (bars !== undefined) {
    const word = rest.slice(bars.length);
    if (word.length < MARK.length) return MARK.startsWith(word) ? PARTIAL : NONE;
    return word.startsWith(MARK) ? ending(piece, open) : NONE;
  }
  if (!piece.startsWith('<')) return NONE;
  const names = inBlock ? [WRAPPER, ...INNER] : [WRAPPER];
  for (const name of names) {
    if (rest.length < name.length) {
      if (name.startsWith(rest)) return PARTIAL;
    } else if (rest.startsWith(name) && !/^\w/.test(rest.slice(name.length))) {
      return ending(piece, open);
    }
  }
  return NONE;
}

/** A tag ends with its `>`; without one it is its mark and its name. */
function ending(piece: string, open: string): Tag {
  const closed = piece.indexOf('>');
  const another = piece.indexOf('<', 1);
  const end = another >= 0 && another < closed ? -1 : closed;
  const head = /^<?\s*\/?\s*[|｜]{0,2}\s*(?:DSML)?\s*[|｜]{0,2}\s*(\w*)/.exec(piece)!;
  if (end < 0 && another < 0 && piece.length < MAX_LENGTH) return PARTIAL;
  const length = end >= 0 ? end + 1 : head[0].length;
  return { kind: 'tag', length, name: head[1] ?? '', closes: open.includes('/') };
}

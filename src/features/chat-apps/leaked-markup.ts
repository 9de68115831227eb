/** The last word on leaked calls: what is left of their markup in a chat's reply is taken out, wherever it stands. */

/**
 * Where an ordinary client may quote markup (code, a sentence about it) and gets it as it is, a chat
 * app's reply holds none: a person reads it. Tags go alone; what stands inside a call or an argument
 * goes with them.
 */
export interface MarkupRemover {
  /** The text that may go on; '' while something waits for its end. */
  push(text: string): string;
  /** What was held when the text is over. */
  end(): string;
  /** Pieces of markup taken out so far. */
  readonly count: number;
}

const WRAPPER = 'function_calls';
/** Tags within such a block; outside of it they are words like any other. */
const INNER = ['invoke', 'parameter'];
const BARS = /^[|｜]{1,2}\s*/;
const MARK = 'DSML';
/** Characters that a tag is waited for. */
const LONGEST = 240;

type Tag =
  | { readonly kind: 'none' }
  /** It may become one. */
  | { readonly kind: 'partial' }
  | {
      readonly kind: 'tag';
      readonly length: number;
      readonly name: string;
      readonly closes: boolean;
    };

const NONE: Tag = { kind: 'none' };
const PARTIAL: Tag = { kind: 'partial' };

export function markupRemover(): MarkupRemover {
  let held = '';
  let count = 0;
  /** A block has been opened: its inner tags need no mark. */
  let inBlock = false;
  /** The call or argument whose content is dropped. */
  let inside: string | undefined;

  function run(text: string, final: boolean): string {
    const all = held + text;
    held = '';
    let out = '';
    let at = 0;
    for (;;) {
      const next = candidate(all, at);
      if (inside === undefined) out += all.slice(at, next);
      if (next === all.length) return out;
      const tag = tagAt(all, next, inBlock || inside !== undefined);
      if (tag.kind === 'partial' && !final) {
        held = all.slice(next);
        return out;
      }
      if (tag.kind !== 'tag') {
        // Behind the last word, the beginning of a marked tag is one that was cut off.
        const rest = all.slice(next);
        if (tag.kind === 'partial' && (/^<\/?[|｜]/.test(rest) || rest.includes(MARK))) {
          count++;
          return out;
        }
        if (inside === undefined) out += all[next];
        at = next + 1;
        continue;
      }
      count++;
      enter(tag.name, tag.closes);
      at = next + tag.length;
    }
  }

  function enter(name: string, closes: boolean): void {
    if (INNER.includes(name)) {
      if (!closes) inside ??= name;
      else if (inside === name || name === 'invoke') inside = undefined;
    } else {
      inside = undefined;
      inBlock = !closes && name !== '';
    }
  }

  return {
    push: (text) => run(text, false),
    end: () => run('', true),
    get count() {
      return count;
    },
  };
}

/** Where a tag might begin; the text's length when nowhere. */
function candidate(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x3c || code === 0x7c || code === 0xff5c) return at;
  }
  return text.length;
}

function tagAt(text: string, at: number, inBlock: boolean): Tag {
  const piece = text.slice(at, at + LONGEST);
  const open = /^<?\s*\/?\s*/.exec(piece)![0];
  const rest = piece.slice(open.length);
  if (rest === '') return text.length - at < LONGEST ? PARTIAL : NONE;
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

/** A tag is over with its `>`; one that never gets there is no longer than its mark and its name. */
function ending(piece: string, open: string): Tag {
  const closed = piece.indexOf('>');
  const another = piece.indexOf('<', 1);
  const end = another >= 0 && another < closed ? -1 : closed;
  const head = /^<?\s*\/?\s*[|｜]{0,2}\s*(?:DSML)?\s*[|｜]{0,2}\s*(\w*)/.exec(piece)!;
  if (end < 0 && another < 0 && piece.length < LONGEST) return PARTIAL;
  const length = end >= 0 ? end + 1 : head[0].length;
  return { kind: 'tag', length, name: head[1] ?? '', closes: open.includes('/') };
}

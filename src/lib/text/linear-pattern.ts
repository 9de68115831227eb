/** Regular expressions that run in time linear in the text, whatever the pattern and the text. */

/** A compiled pattern. */
export interface LinearPattern {
  /** States; a test takes at most this many steps for each character. */
  readonly size: number;
  /** Does the pattern match some part of the text? As `RegExp.test`. */
  test(text: string): boolean;
}

type CharacterTest = (character: string) => boolean;
type Assertion = 'start' | 'end' | 'word' | 'no-word';

type Node =
  | { readonly type: 'one'; readonly fits: CharacterTest }
  | { readonly type: 'place'; readonly place: Assertion }
  | { readonly type: 'all'; readonly parts: readonly Node[] }
  | { readonly type: 'any'; readonly parts: readonly Node[] }
  | { readonly type: 'many'; readonly part: Node; readonly least: number; readonly most: number };

type Step =
  | { readonly type: 'one'; readonly fits: CharacterTest }
  | { readonly type: 'place'; readonly place: Assertion }
  | { type: 'fork'; to: readonly number[] }
  | { readonly type: 'found' };

/** Counted repetitions are written out. */
/** Characters: the engine takes a megabyte of them for half a second. */
const MAX_SOURCE = 65_536;
const MAX_STEPS = 4000;
const MAX_DEPTH = 100;

/** The pattern is invalid, or cannot be tested in linear time; the message says which. */
export class UnfitPattern extends Error {
  override readonly name = 'UnfitPattern';
}

/**
 * Compiles an ECMA-262 pattern. Lookaround and back references (`(?=…)`, `(?<!…)`, `\1`) are not supported.
 * @throws UnfitPattern
 */
export function linearPattern(source: string): LinearPattern {
  if (source.length > MAX_SOURCE) throw new UnfitPattern('is too large');
  const steps: Step[] = [];
  const flags = flagsOf(source);
  write(new Reader(source, flags).read(), steps);
  add(steps, { type: 'found' });
  return { size: steps.length, test: (text) => matchesSteps(steps, text) };
}

function flagsOf(source: string): string {
  for (const flags of ['u', '']) {
    try {
      new RegExp(source, flags);
      return flags;
    } catch {
      // Tried again without `u`, which is laxer about escapes.
    }
  }
  throw new UnfitPattern('is no regular expression');
}

/** Parses a pattern that the engine has accepted, so that only the extents of its parts need to be found. */
class Reader {
  #at = 0;

  constructor(
    private readonly source: string,
    private readonly flags: string,
  ) {}

  read(depth = 0): Node {
    if (depth > MAX_DEPTH) throw new UnfitPattern('is nested too deeply');
    const ways: Node[] = [];
    let parts: Node[] = [];
    for (;;) {
      const next = this.source[this.#at];
      if (next === undefined || next === ')') break;
      if (next === '|') {
        this.#at++;
        ways.push({ type: 'all', parts });
        parts = [];
      } else parts.push(this.#counted(this.#atom(depth)));
    }
    ways.push({ type: 'all', parts });
    return ways.length === 1 ? ways[0]! : { type: 'any', parts: ways };
  }

  #atom(depth: number): Node {
    const next = this.source[this.#at]!;
    switch (next) {
      case '(':
        return this.#group(depth);
      case '^':
        this.#at++;
        return { type: 'place', place: 'start' };
      case '$':
        this.#at++;
        return { type: 'place', place: 'end' };
      case '[':
        return this.#one(this.#classEnd());
      case '\\': {
        const kind = this.source[this.#at + 1] ?? '';
        if (kind === 'b' || kind === 'B') {
          this.#at += 2;
          return { type: 'place', place: kind === 'b' ? 'word' : 'no-word' };
        }
        if (/[1-9]/.test(kind) || (kind === 'k' && this.flags === 'u')) {
          throw new UnfitPattern('refers back to a group, which is not supported');
        }
        return this.#one(this.#escapeEnd());
      }
      default:
        return this.#one(
          this.#at + String.fromCodePoint(this.source.codePointAt(this.#at)!).length,
        );
    }
  }

  #group(depth: number): Node {
    const head = /^\((?:\?(?::|<[^=!>][^>]{0,200}>))?/.exec(
      this.source.slice(this.#at, this.#at + 256),
    );
    const begin = head?.[0] ?? '(';
    if (begin === '(' && this.source[this.#at + 1] === '?') {
      throw new UnfitPattern('looks around ("(?"), which is not supported');
    }
    this.#at += begin.length;
    const inside = this.read(depth + 1);
    this.#at++;
    return inside;
  }

  #classEnd(): number {
    let at = this.#at + 1;
    while (this.source[at] !== ']') at += this.source[at] === '\\' ? 2 : 1;
    return at + 1;
  }

  #escapeEnd(): number {
    const rest = this.source.slice(this.#at, this.#at + 64);
    const long =
      /^\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[pP]\{[^}]*\})/.exec(
        rest,
      );
    if (long !== null) return this.#at + long[0].length;
    return this.#at + 1 + String.fromCodePoint(this.source.codePointAt(this.#at + 1)!).length;
  }

  /** A test of one character; the engine itself interprets this part of the pattern. */
  #one(end: number): Node {
    const piece = this.source.slice(this.#at, end);
    this.#at = end;
    const pattern = new RegExp(`^(?:${piece})$`, this.flags);
    const known = new Map<string, boolean>();
    const fits = (character: string) => {
      let answer = known.get(character);
      if (answer === undefined) {
        answer = pattern.test(character);
        if (known.size < 1000) known.set(character, answer);
      }
      return answer;
    };
    return { type: 'one', fits };
  }

  #counted(part: Node): Node {
    const rest = this.source.slice(this.#at, this.#at + 32);
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(rest);
    if (found === null) return part;
    this.#at += found[0].length;
    const [whole, from, comma, to] = found;
    const many = (least: number, most: number): Node => ({ type: 'many', part, least, most });
    if (whole.startsWith('*')) return many(0, Infinity);
    if (whole.startsWith('+')) return many(1, Infinity);
    if (whole.startsWith('?')) return many(0, 1);
    const least = Number(from);
    return many(least, comma === '' ? least : to === '' ? Infinity : Number(to));
  }
}

function add(steps: Step[], step: Step): number {
  if (steps.length >= MAX_STEPS) throw new UnfitPattern('is too large');
  return steps.push(step) - 1;
}

/** Appends the steps of a node; the last of them continue at the next step that is appended. */
function write(node: Node, steps: Step[]): void {
  switch (node.type) {
    case 'one':
    case 'place':
      add(steps, node);
      return;
    case 'all':
      for (const part of node.parts) write(part, steps);
      return;
    case 'any': {
      const fork: Step & { type: 'fork' } = { type: 'fork', to: [] };
      add(steps, fork);
      const ends: (Step & { type: 'fork' })[] = [];
      for (const part of node.parts) {
        fork.to = [...fork.to, steps.length];
        write(part, steps);
        const end: Step & { type: 'fork' } = { type: 'fork', to: [] };
        add(steps, end);
        ends.push(end);
      }
      for (const end of ends) end.to = [steps.length];
      return;
    }
    case 'many': {
      const { part, least, most } = node;
      for (let i = 0; i < least; i++) {
        const before = steps.length;
        write(part, steps);
        // A part without steps adds none, however often it repeats.
        if (steps.length === before) break;
      }
      if (most === Infinity) {
        const fork: Step & { type: 'fork' } = { type: 'fork', to: [] };
        const at = add(steps, fork);
        write(part, steps);
        add(steps, { type: 'fork', to: [at] });
        fork.to = [at + 1, steps.length];
        return;
      }
      const forks: { step: Step & { type: 'fork' }; inside: number }[] = [];
      for (let i = least; i < most; i++) {
        const step: Step & { type: 'fork' } = { type: 'fork', to: [] };
        const at = add(steps, step);
        forks.push({ step, inside: at + 1 });
        write(part, steps);
      }
      for (const { step, inside } of forks) step.to = [inside, steps.length];
    }
  }
}

const WORD = /^\w$/;

/** Follows all alternatives at once, character by character. */
function matchesSteps(steps: readonly Step[], text: string): boolean {
  let before = '';
  let now: number[] = [];
  let next: number[] = [];
  const seen = new Int32Array(steps.length).fill(-1);
  const stack: number[] = [];
  let round = 0;
  const here = (place: Assertion, after: string) => {
    if (place === 'start') return before === '';
    if (place === 'end') return after === '';
    return (WORD.test(before) !== WORD.test(after)) === (place === 'word');
  };
  /** Adds the states that are reachable without another character; true when the end of the pattern is one. */
  const enter = (from: number, after: string, into: number[]): boolean => {
    stack.push(from);
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (seen[at] === round) continue;
      seen[at] = round;
      const step = steps[at]!;
      if (step.type === 'found') {
        stack.length = 0;
        return true;
      }
      if (step.type === 'one') into.push(at);
      else if (step.type === 'fork') for (const to of step.to) stack.push(to);
      else if (here(step.place, after)) stack.push(at + 1);
    }
    return false;
  };
  for (let at = 0; ; round++) {
    const code = text.codePointAt(at);
    const character = code === undefined ? '' : String.fromCodePoint(code);
    // The states after the last character, and a match that begins here.
    next = [];
    for (const from of now) if (enter(from + 1, character, next)) return true;
    if (enter(0, character, next)) return true;
    if (code === undefined) return false;
    now = next.filter((step) => (steps[step] as Step & { type: 'one' }).fits(character));
    before = character;
    at += character.length;
  }
}

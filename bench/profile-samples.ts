/** Reads what a profiler saw of a running program: the names of compiled functions, and the stacks of its threads. */

/** A piece of code that the engine compiled. */
interface Compiled {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

/** One sample: where a thread was, the innermost frame first. */
export interface Sample {
  /** The thread's name, at most 15 characters. */
  readonly thread: string;
  readonly frames: readonly Frame[];
}

export interface Frame {
  /** `function`: of the program; `native`: of the runtime or a library, without a name where it is stripped. */
  readonly kind: 'function' | 'native' | 'kernel';
  readonly name: string;
}

const HEADER_SIZE_AT = 8;
const RECORD_HEADER = 16;
const CODE_LOAD = 0;
/** Of a CODE_LOAD record: process, thread, virtual address, then the address and the size of the code, and an index. */
const [ADDRESS_AT, SIZE_AT, NAME_AT] = [32, 40, 56];

/** The names of compiled functions by address, from a file in Linux' jitdump format (tools/perf/Documentation/jitdump-specification.txt). */
export class CompiledCode {
  readonly #found: readonly Compiled[];

  constructor(dump: Buffer) {
    const found: Compiled[] = [];
    let at = dump.length >= HEADER_SIZE_AT + 4 ? dump.readUInt32LE(HEADER_SIZE_AT) : dump.length;
    while (at + RECORD_HEADER <= dump.length) {
      const size = dump.readUInt32LE(at + 4);
      // The last record may be cut: the program was writing.
      if (size < RECORD_HEADER || at + size > dump.length) break;
      if (dump.readUInt32LE(at) === CODE_LOAD) {
        const start = Number(dump.readBigUInt64LE(at + ADDRESS_AT));
        const end = start + Number(dump.readBigUInt64LE(at + SIZE_AT));
        const nameEnd = dump.indexOf(0, at + NAME_AT);
        found.push({ start, end, name: dump.toString('utf8', at + NAME_AT, nameEnd) });
      }
      at += size;
    }
    // Of two pieces at one address the later one was there when most samples were taken.
    this.#found = found.map((one, order) => ({ ...one, order })).sort(byStart);
  }

  /** The function whose code has this address; undefined: none. */
  at(address: number): string | undefined {
    let [low, high] = [0, this.#found.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#found[middle]!.start <= address) low = middle + 1;
      else high = middle;
    }
    const { end = 0, name } = this.#found[low - 1] ?? {};
    return address < end && name !== undefined ? functionName(name) : undefined;
  }
}

const byStart = (
  a: Compiled & { readonly order: number },
  b: Compiled & { readonly order: number },
) => a.start - b.start || a.order - b.order;

/** `JSC-FTL: read#Ee6aHN` is `read`; undefined for code that belongs to no function. */
function functionName(compiled: string): string | undefined {
  const [, tier, name, hash] = /^JSC-(\w+): (.*?)(?:#(\w+))?$/.exec(compiled) ?? [];
  if (tier === undefined || !TIERS.has(tier)) return undefined;
  return name === '' || name === undefined ? `(anonymous ${hash})` : name;
}

const TIERS: ReadonlySet<string> = new Set(['LLInt', 'Baseline', 'DFG', 'FTL']);

const FRAME = /^\s+([0-9a-f]+) (.*) \((.*)\)$/;

/** What `perf script -F comm,ip,sym,dso` prints: a line with the thread, a line for each frame, an empty line. */
export function* samplesOf(text: string, code: CompiledCode): Generator<Sample> {
  let thread: string | undefined;
  let frames: Frame[] = [];
  for (const line of text.split('\n')) {
    if (line.trim() === '') {
      if (thread !== undefined) yield { thread, frames };
      thread = undefined;
      frames = [];
    } else if (thread === undefined) thread = line.trim();
    else {
      const [, address = '', symbol = '', place = ''] = FRAME.exec(line) ?? [];
      const name = code.at(Number.parseInt(address, 16));
      if (name !== undefined) frames.push({ kind: 'function', name });
      else if (place.includes('kernel')) frames.push({ kind: 'kernel', name: symbol });
      else frames.push({ kind: 'native', name: symbol });
    }
  }
  if (thread !== undefined) yield { thread, frames };
}

/** What was spent in a function with all that it calls; the root is the event loop. In samples. */
export interface Node {
  readonly name: string;
  total: number;
  /** In the function's own code, in native code that it calls, and in the kernel. */
  readonly spent: Record<Frame['kind'], number>;
  readonly callees: Map<string, Node>;
}

const newNode = (name: string): Node => ({
  name,
  total: 0,
  spent: { function: 0, native: 0, kernel: 0 },
  callees: new Map(),
});

/** The calls of a thread's samples, as one tree of functions. */
export function callTree(samples: Iterable<Sample>): Node {
  const root = newNode('event loop');
  for (const { frames } of samples) {
    let node = root;
    node.total++;
    for (const { kind, name } of frames.toReversed()) {
      if (kind !== 'function') continue;
      let callee = node.callees.get(name);
      if (callee === undefined) {
        callee = newNode(name);
        node.callees.set(name, callee);
      }
      callee.total++;
      node = callee;
    }
    node.spent[frames[0]?.kind ?? 'native']++;
  }
  return root;
}

/**
 * The tree as lines, what costs most first.
 * @param worth of one sample, in the unit that is shown
 * @param least nodes below this many samples are left out
 */
export function treeLines(root: Node, worth: number, least: number): string[] {
  const shown = (samples: number) => (samples * worth).toFixed(1).padStart(8);
  const lines = ['   total     own  native  kernel'];
  const add = (node: Node, depth: number) => {
    if (node.total < least) return;
    const { function: own, native, kernel } = node.spent;
    const figures = [node.total, own, native, kernel].map(shown).join('');
    lines.push(`${figures}  ${'  '.repeat(depth)}${node.name}`);
    const callees = [...node.callees.values()].sort((a, b) => b.total - a.total);
    for (const callee of callees) add(callee, depth + 1);
  };
  add(root, 0);
  return lines;
}

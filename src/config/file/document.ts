/** YAML text to values, with the place of every key and value kept. */

import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { bringForwards, CONFIG_MIGRATIONS, type ConfigMigration, type Form } from './migrations.ts';
import { MAX_PROBLEMS, type Path, type Problem } from './problem.ts';
import { type Fault, faultOfText, faultsOfDocument } from './yaml-bounds.ts';

export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface YamlDocument {
  /** What the text says; `{}` for an empty file. */
  readonly value: unknown;
  /** Syntax errors, duplicate keys and the like; with any, `value` is `{}`. */
  readonly problems: readonly Problem[];
  /** Of which version the text is; an older one is brought forwards in `value`, not in the text. */
  readonly form: Form;
  /** The document as text, comments kept: of an older form, the text of today's. */
  text(): string;
  /** Where the value (or, with `key`, its key) at a path stands; the nearest parent's place if it is not there. */
  locate(path: Path, key?: boolean): Place;
}

/** Parses YAML 1.2 with merge keys (`<<`), and brings an older form forwards. Never throws. */
export function readYaml(
  text: string,
  migrations: readonly ConfigMigration[] = CONFIG_MIGRATIONS,
): YamlDocument {
  const tooMuch = faultOfText(text);
  const lines = new LineCounter();
  const document = parseDocument(tooMuch === undefined ? text : '', {
    lineCounter: lines,
    prettyErrors: false,
    // The library compares every key with every other; ours are looked up.
    uniqueKeys: false,
    merge: true,
  });
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const rows = text.split('\n');
  const errors = [...document.errors, ...document.warnings].map(({ pos, message }) => ({
    offset: pos[0],
    message,
  }));
  const faults: readonly Fault[] =
    tooMuch === undefined ? [...errors, ...faultsOfDocument(document)] : [];
  const problems = whatMatters(faults.toSorted((a, b) => a.offset - b.offset))
    .slice(0, MAX_PROBLEMS)
    .map((fault): Problem => {
      const place = placeOf(fault.offset);
      const hint = referenceInFlow(rows[place.line - 1] ?? '') ? FLOW_HINT : '';
      const { suggestion, first } = fault;
      const before = first === undefined ? '' : `, in line ${placeOf(first).line}`;
      const message = `${sentence(fault.message)}${before}${hint}`;
      return { path: '', ...place, message, ...(suggestion === undefined ? {} : { suggestion }) };
    });
  if (tooMuch !== undefined) {
    const before = text.slice(0, tooMuch.offset);
    const line = before.split('\n').length;
    const column = tooMuch.offset - before.lastIndexOf('\n');
    problems.push({ path: '', line, column, message: tooMuch.message });
  }
  let value: unknown = {};
  let form: Form = { kind: 'current' };
  if (problems.length === 0) {
    try {
      form = bringForwards(document, migrations);
      value = document.toJS({ maxAliasCount: 1000 }) ?? {};
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : 'unreadable';
      problems.push({ path: '', line: 1, column: 1, message: sentence(message) });
    }
  }
  const pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();
  const pairOf = (map: YAMLMap, name: string): Pair | undefined => {
    let named = pairs.get(map);
    if (named === undefined) {
      named = new Map(map.items.map((pair) => [nameOf(pair.key), pair]));
      pairs.set(map, named);
    }
    return named.get(name);
  };
  return {
    value,
    problems,
    form,
    // No width: a long line is the user's own.
    text: () => document.toString({ lineWidth: 0 }),
    locate(path, key = false) {
      let place: Place = { line: 1, column: 1 };
      let node: unknown = document.contents;
      const resolve = (at: unknown) => (isAlias(at) ? at.resolve(document) : at);
      const visit = (at: unknown) => {
        const range = (at as Node | null)?.range;
        if (range) place = placeOf(range[0]);
      };
      visit(node);
      for (const [depth, step] of path.entries()) {
        node = resolve(node);
        if (isMap(node)) {
          const pair = pairOf(node, String(step));
          if (pair === undefined) return place;
          visit(pair.key);
          if (key && depth === path.length - 1) return place;
          node = pair.value;
          // A key without a value is found at the key.
          if (!(isScalar(node) && node.value === null)) visit(node);
        } else if (isSeq(node) && typeof step === 'number') {
          node = node.items[step];
          if (node === undefined) return place;
          visit(node);
        } else return place;
      }
      return place;
    },
  };
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
const FLOW_HINT = ' (inside { } and [ ], put ${…} in quotes)';

/** Whether a `${` comes after a `{` or `[`; by no pattern, which would try each bracket of a long line. */
function referenceInFlow(row: string): boolean {
  const bracket = row.search(/[{[]/);
  return bracket >= 0 && row.lastIndexOf('${') > bracket;
}

const TABS = /^Tabs are not allowed/;
const STAR = 'Alias cannot be an empty string';

/** Tabs are told once, since what is said behind them follows from them; a bare star in words that help. */
function whatMatters(faults: readonly Fault[]): readonly Fault[] {
  const tabs = faults.filter(({ message }) => TABS.test(message));
  const [tab] = tabs;
  if (tab !== undefined) {
    const more = tabs.length > 1 ? ` (${tabs.length} lines begin so)` : '';
    return [{ offset: tab.offset, message: `a tab cannot indent a line: use spaces${more}` }];
  }
  const star = faults.find(({ message }) => message.startsWith(STAR));
  if (star === undefined) return faults;
  const message = 'a * alone means something else in YAML: put it in quotes';
  return [{ offset: star.offset, message, suggestion: '"*"' }];
}

const nameOf = (key: unknown) => String(isScalar(key) ? key.value : key);

/** The library's words without the full stop and the position, which we give ourselves. */
const sentence = (message: string) =>
  message
    .split('\n')[0]!
    .replace(/ at line \d+, column \d+:?$/, '')
    .replace(/[.:]$/, '');

/** Reads YAML text into values, and finds the line and column of every key and value. */

import {
  Composer,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  visit,
  type YAMLMap,
} from 'yaml';
import { CONFIG_MIGRATIONS, type ConfigMigration, type Form, migrate } from './migrations.ts';
import { MAX_PROBLEMS, type Path, type Problem } from './problem.ts';
import { type Fault, faultsOfDocument, tokensOf } from './yaml-bounds.ts';

/** A position in a text, both numbers from 1. */
export interface SourcePosition {
  readonly line: number;
  readonly column: number;
}

export interface YamlDocument {
  /** The value of the text; `{}` for an empty file. */
  readonly value: unknown;
  /** Syntax errors, duplicate keys and the like; if there is one, `value` is `{}`. */
  readonly problems: readonly Problem[];
  /** The version of the text; an older one is brought up to date in `value`, not in the text. */
  readonly form: Form;
  /** The document as text with its comments; an older version is brought up to date. */
  text(): string;
  /** The position of the value at a path (with `key`, of its key); of the nearest parent when it does not exist. */
  locate(path: Path, key?: boolean): SourcePosition;
}

/** Parses YAML 1.2 with merge keys (`<<`), and brings an older version up to date. Never throws. */
export function readYaml(
  text: string,
  migrations: readonly ConfigMigration[] = CONFIG_MIGRATIONS,
): YamlDocument {
  const lines = new LineCounter();
  const read = tokensOf(text, lines);
  const tooMuch = 'message' in read ? read : undefined;
  const tokens = 'message' in read ? [] : read;
  // The library's check of keys compares each with every other; `faultsOfDocument` uses a map.
  const composer = new Composer({ uniqueKeys: false, merge: true });
  const [first, second] = composer.compose(tokens, true, text.length);
  const document = first!;
  // `4.10`, `1e3` and `0x10` are names as they are written, not numbers that print as other names.
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && key.source && /^(?:number|boolean)$/.test(typeof key.value)) {
        key.value = key.source;
      }
    },
  });
  const positionOf = (offset: number): SourcePosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const rows = text.split('\n');
  const errors = [...document.errors, ...document.warnings].map(({ pos, message }) => ({
    offset: pos[0],
    message,
  }));
  if (second !== undefined) errors.push({ offset: second.range[0], message: SECOND_DOCUMENT });
  const faults: readonly Fault[] =
    tooMuch === undefined ? [...errors, ...faultsOfDocument(document)] : [];
  const problems = helpfulFaults(faults.toSorted((a, b) => a.offset - b.offset))
    .slice(0, MAX_PROBLEMS)
    .map((fault): Problem => {
      const position = positionOf(fault.offset);
      const hint = referenceInFlow(rows[position.line - 1] ?? '') ? FLOW_HINT : '';
      const { suggestion, first } = fault;
      const before = first === undefined ? '' : `, in line ${positionOf(first).line}`;
      const message = `${sentence(fault.message)}${before}${hint}`;
      return { path: '', ...position, message, suggestion };
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
      form = migrate(document, migrations);
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
    // No width: the user's long lines stay as they are.
    text: () => document.toString({ lineWidth: 0 }),
    locate(path, key = false) {
      let position: SourcePosition = { line: 1, column: 1 };
      let node: unknown = document.contents;
      const resolve = (at: unknown) => (isAlias(at) ? at.resolve(document) : at);
      const visit = (at: unknown) => {
        const range = (at as Node | null)?.range;
        if (range) position = positionOf(range[0]);
      };
      visit(node);
      for (const [depth, step] of path.entries()) {
        node = resolve(node);
        if (isMap(node)) {
          const pair = pairOf(node, String(step));
          if (pair === undefined) return position;
          visit(pair.key);
          if (key && depth === path.length - 1) return position;
          node = pair.value;
          // A key without a value has the position of the key.
          if (!(isScalar(node) && node.value === null)) visit(node);
        } else if (isSeq(node) && typeof step === 'number') {
          node = node.items[step];
          if (node === undefined) return position;
          visit(node);
        } else return position;
      }
      return position;
    },
  };
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the words that a user writes in the file
const FLOW_HINT = ' (inside { } and [ ], put ${…} in quotes)';

/** Whether a `${` comes after a `{` or `[`. Without a pattern, which would try each bracket of a long line. */
function referenceInFlow(row: string): boolean {
  const bracket = row.search(/[{[]/);
  return bracket >= 0 && row.lastIndexOf('${') > bracket;
}

const TABS = /^Tabs are not allowed/;
const SECOND_DOCUMENT = 'a second document begins here: a file has one';
const STAR = 'Alias cannot be an empty string';

/** The faults to report: a tab alone, since it causes those after it; a bare star with a message that helps. */
function helpfulFaults(faults: readonly Fault[]): readonly Fault[] {
  const tabs = faults.filter(({ message }) => TABS.test(message));
  const [tab] = tabs;
  if (tab !== undefined) {
    const more = tabs.length > 1 ? ` (${tabs.length} lines begin so)` : '';
    return [{ offset: tab.offset, message: `a tab cannot indent a line: use spaces${more}` }];
  }
  const second = faults.find(({ message }) => message === SECOND_DOCUMENT);
  if (second !== undefined) return [second];
  const star = faults.find(({ message }) => message.startsWith(STAR));
  if (star === undefined) return faults;
  const message = 'a * alone means something else in YAML: put it in quotes';
  return [{ offset: star.offset, message, suggestion: '"*"' }];
}

const nameOf = (key: unknown) => String(isScalar(key) ? key.value : key);

/** The library's message without its full stop and position, which the problem has itself. */
const sentence = (message: string) =>
  message
    .split('\n')[0]!
    .replace(/ at line \d+, column \d+:?$/, '')
    .replace(/[.:]$/, '');

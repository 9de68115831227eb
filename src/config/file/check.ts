/** Checks a value against the schema: fills in defaults, and says in a user's terms what does not fit. */

import { isLoopback } from '../../lib/http/local-address.ts';
import { memberOf, put } from '../../lib/json/json-members.ts';
import { amountIn, type Unit } from '../../lib/text/amounts.ts';
import { isDay } from '../../lib/text/calendar.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import { type Issue, MAX_PROBLEMS, type Path } from './problem.ts';
import { DROPPED } from './references.ts';
import { literalsOf, type Schema, takes } from './schema.ts';

/** What other gateways and vendors' SDKs call a key, and the keys here that mean it. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  api_key: ['keys', 'key'],
  apikey: ['keys', 'key'],
  token: ['keys', 'key'],
  secret: ['keys', 'key'],
  api_base: ['base_url'],
  api_url: ['base_url'],
  url: ['base_url', 'address'],
  endpoint: ['base_url'],
  host: ['base_url', 'address'],
  hostname: ['base_url', 'address'],
  port: ['address'],
  bind: ['address', 'listen'],
  server: ['listen'],
  type: ['protocol', 'preset'],
  kind: ['protocol', 'preset'],
  api: ['protocol'],
  api_type: ['protocol'],
  provider_type: ['protocol', 'preset'],
  upstreams: ['providers'],
  backends: ['providers'],
  vendors: ['providers'],
  fallbacks: ['to', 'routes'],
  targets: ['to', 'routes'],
};

const keyMeantBy = (written: string, known: readonly string[]): string | undefined =>
  memberOf(OTHER_NAMES, written.toLowerCase().replaceAll('-', '_'))?.find((name) =>
    known.includes(name),
  ) ?? suggest(written, known);

export interface Checked {
  /** The value with defaults filled in; of use only without problems. */
  readonly value: unknown;
  readonly problems: readonly Issue[];
}

/**
 * @param from the paths (as JSON) of texts that came from references. There "8080" counts as a number
 *   where one is wanted, and the text is never repeated in a message.
 */
export function check(root: Schema, value: unknown, from: ReadonlySet<string>): Checked {
  const problems: Issue[] = [];
  const report = (path: Path, message: string, more: Partial<Issue> = {}) => {
    problems.push({ path, message, ...more });
    return undefined;
  };

  const walk = (schema: Schema, node: unknown, path: Path): unknown => {
    if (node === null && isMapping(schema)) return walk(schema, {}, path);
    if (schema.anyOf !== undefined) return union(schema, schema.anyOf, node, path);
    switch (schema.type) {
      case 'object':
        return object(schema, node, path);
      case 'array':
        if (!Array.isArray(node)) return report(path, mismatch(schema, node));
        if (node.length < (schema.minItems ?? 0)) return report(path, 'must not be empty');
        return node.flatMap((item, index) =>
          item === DROPPED ? [] : [walk(schema.items ?? {}, item, [...path, index])],
        );
      case 'string':
        return string(schema, node, path);
      case 'integer':
      case 'number':
        return number(schema, node, path);
      case 'boolean': {
        const known = typeof node === 'string' && from.has(JSON.stringify(path));
        if (known && (node === 'true' || node === 'false')) return node === 'true';
        return typeof node === 'boolean' ? node : report(path, mismatch(schema, node));
      }
      default:
        return node;
    }
  };

  const object = (schema: Schema, node: unknown, path: Path): unknown => {
    if (typeof node !== 'object' || node === null || Array.isArray(node)) {
      return report(path, mismatch(schema, node));
    }
    const out: Record<string, unknown> = {};
    const given = node as Record<string, unknown>;
    if (schema.patternProperties !== undefined) {
      const [pattern, item] = Object.entries(schema.patternProperties)[0]!;
      const legal = new RegExp(pattern, 'u');
      for (const [key, child] of Object.entries(given)) {
        const at = [...path, key];
        if (!legal.test(key)) report(at, 'is not a legal name here', { key: true });
        if (child !== DROPPED) put(out, key, walk(item, child, at));
      }
      return out;
    }
    const properties = schema.properties ?? {};
    for (const key of Object.keys(given)) {
      if (Object.hasOwn(properties, key)) continue;
      // Problems beyond the limit are not shown, so they need no suggestion.
      const shown = problems.length < MAX_PROBLEMS;
      const suggestion = shown ? keyMeantBy(key, Object.keys(properties)) : undefined;
      report([...path, key], 'unknown key', { key: true, suggestion });
    }
    for (const [key, child] of Object.entries(properties)) {
      const at = [...path, key];
      const has = Object.hasOwn(given, key) && (given[key] !== null || isMapping(child));
      if (has && given[key] === DROPPED) out[key] = [];
      else if (has) out[key] = walk(child, given[key], at);
      else if ('default' in child) out[key] = walk(child, structuredClone(child.default), at);
      else if (schema.required?.includes(key))
        report(path, `needs the key "${key}"`, { key: true });
    }
    return out;
  };

  const string = (schema: Schema, node: unknown, path: Path): unknown => {
    if (typeof node === 'number' || typeof node === 'boolean') {
      return report(path, `must be text, not ${kindOf(node)}: put it in quotes`);
    }
    if (typeof node !== 'string') return report(path, mismatch(schema, node));
    if (node.length < (schema.minLength ?? 0)) return report(path, 'must not be empty');
    if (schema.pattern !== undefined) {
      const pattern = new RegExp(schema.pattern, 'u');
      if (!pattern.test(node)) {
        const expected = `does not fit. Expected: ${schema.description ?? schema.pattern}`;
        const written = from.has(JSON.stringify(path)) ? '' : node;
        const suggestion = corrected(written, schema['x-meant'], pattern);
        return report(path, schema['x-mismatch'] ?? expected, { suggestion });
      }
    }
    if (schema['x-date'] === true && !isDay(node)) return report(path, 'is no day of the calendar');
    const wrong = schema['x-url'] === undefined ? undefined : urlProblem(node, schema['x-url']);
    return wrong === undefined ? node : report(path, wrong);
  };

  const number = (schema: Schema, node: unknown, path: Path): unknown => {
    const referenced = typeof node === 'string' && from.has(JSON.stringify(path));
    const value = referenced && /^-?\d+(\.\d+)?$/.test(node) ? Number(node) : node;
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      const written = typeof node === 'string' && !referenced ? node : '';
      return report(path, mismatch(schema, node) + whatToWrite(written, unitOf(schema, path)));
    }
    if (schema.type === 'integer' && !Number.isInteger(value)) {
      return report(path, 'must be a whole number');
    }
    if (value < (schema.minimum ?? value)) return report(path, `must be ${schema.minimum} or more`);
    if (value > (schema.maximum ?? value)) return report(path, `must be ${schema.maximum} or less`);
    return value;
  };

  const union = (schema: Schema, branches: readonly Schema[], node: unknown, path: Path) => {
    const values = literalsOf(schema);
    if (values === undefined) {
      const branch = branches.find((candidate) => takes(candidate, node));
      return branch === undefined ? report(path, mismatch(schema, node)) : walk(branch, node, path);
    }
    if (typeof node === 'string' && values.includes(node)) return node;
    // YAML 1.1 habits: `off` and `no` are text here, but `true` and numbers are not.
    const written =
      typeof node === 'string' && !from.has(JSON.stringify(path)) ? `"${node}" is not` : 'is not';
    return report(path, `${written} one of ${values.join(', ')}`, {
      suggestion: typeof node === 'string' ? suggest(node, values) : undefined,
    });
  };

  return { value: walk(root, value, []), problems };
}

/** What a number counts: it stands in the schema, or at the end of the key. */
function unitOf(schema: Schema, path: Path): Unit | undefined {
  const key = path.at(-1);
  if (typeof key === 'string' && key.endsWith('bytes')) return 'bytes';
  return schema['x-unit'];
}

/** `: write 300 (seconds)` for "5 minutes". */
function whatToWrite(written: string, unit: Unit | undefined): string {
  const meant = amountIn(written, unit);
  if (meant === undefined) return unit === undefined ? '' : `: it counts ${unit}`;
  return `: write ${meant}${unit === undefined ? '' : ` (${unit})`}`;
}

/** A text in the form that was probably meant, where that fits the pattern. */
function corrected(
  written: string,
  template: string | undefined,
  pattern: RegExp,
): string | undefined {
  if (template === undefined || !/^[\w.:/-]{1,200}$/.test(written)) return undefined;
  if (written.includes('://')) return undefined;
  // A server of this machine rarely has a certificate.
  const isLocal = isLoopback(/^[\w.-]+/.exec(written)?.[0] ?? '');
  const filled = template
    .replace('{}', () => written)
    .replace(/^https:/, () => (isLocal ? 'http:' : 'https:'));
  return pattern.test(filled) ? filled : undefined;
}

/** What is wrong with an address. Logs, pages and errors show addresses, so none may hold a secret. Does not quote it. */
function urlProblem(text: string, kind: 'whole' | 'base'): string | undefined {
  if (text === 'demo:') return undefined;
  if (!URL.canParse(text)) return 'is not a URL';
  const { username, password } = new URL(text);
  if (username !== '' || password !== '' || /^https?:\/\/[^/?#]*@/.test(text)) {
    return 'must hold no user name or password: put them under keys or headers, as "authorization: Basic …"';
  }
  if (text.includes('#')) return 'must have no #fragment';
  return kind === 'base' && text.includes('?')
    ? 'must have no ?query: put it under query'
    : undefined;
}

const isMapping = (schema: Schema) => schema.type === 'object';

function mismatch(schema: Schema, node: unknown): string {
  return `must be ${expected(schema)}, not ${kindOf(node)}`;
}

const KINDS: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

function expected(schema: Schema): string {
  if (literalsOf(schema) !== undefined) return 'text';
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(expected))].join(' or ');
  return KINDS[schema.type ?? ''] ?? 'something else';
}

function kindOf(node: unknown): string {
  if (node === null || node === undefined) return 'nothing';
  if (Array.isArray(node)) return 'a list';
  if (typeof node === 'object') return 'a mapping';
  if (typeof node === 'boolean') return String(node);
  if (typeof node !== 'number') return 'text';
  return Number.isFinite(node) ? 'a number' : String(node);
}

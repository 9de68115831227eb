/** The building blocks of the configuration's schema. Each key is one entry: type, default, meaning, and how the program reads it. */

import { type Environment, environmentFrom, expandHome } from '../environment.ts';
import { Secret } from '../secret.ts';
import type { Findings, Path } from './problem.ts';

/** The parts of JSON Schema that our own schema is made of, and further keywords, `x-…`. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  /** In words, where it is no value: what happens when the key is left out. */
  readonly 'x-default'?: string | undefined;
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  /** The message for a text that the pattern does not fit; left out: what was expected. */
  readonly 'x-mismatch'?: string;
  /** A suggestion for a text that the pattern does not fit; `{}` stands for the text. */
  readonly 'x-meant'?: string;
  /** The text has the form of a date, and must be a day of the calendar. */
  readonly 'x-date'?: boolean;
  /** What the number counts. */
  readonly 'x-unit'?: 'seconds';
  /** The text is a URL, or the beginning of URLs, which has no query of its own. */
  readonly 'x-url'?: 'whole' | 'base';
  /** For the program alone, and not published. */
  readonly program?: Program;
}

/** How the program has the value. */
interface Program {
  // biome-ignore lint/suspicious/noExplicitAny: the value is what the rest of the schema says
  readonly read?: (value: any, reading: Reading) => unknown;
  /** The value of a key that is left out. */
  readonly otherwise?: (reading: Reading) => unknown;
  /** The value is in milliseconds, and its name ends so. */
  readonly ms?: true;
  readonly lowerCase?: boolean;
  readonly asWritten?: boolean;
}

/** What is known when a value is read. */
export interface Reading {
  readonly path: Path;
  readonly environment: Environment;
  readonly findings: Findings;
}

declare const FILE: unique symbol;
declare const PROGRAM: unique symbol;

/** A schema with the types of its value, in the file and in the program. */
// biome-ignore lint/suspicious/noExplicitAny: any node
export class Node<F = any, P = any> implements Schema {
  declare readonly [FILE]?: F;
  declare readonly [PROGRAM]?: P;
  declare readonly description?: string;
  declare readonly pattern?: string;
  declare readonly 'x-mismatch'?: string;
  declare readonly program?: Program;

  constructor(schema: Schema) {
    Object.assign(this, schema);
  }

  #with<N>(changes: Schema): N {
    return Object.assign(new Node(this), changes) as N;
  }

  #reading<N>(program: Program): N {
    return this.#with({ program: { ...this.program, ...program } });
  }

  /** A key that may be left out, with its default. */
  byDefault(value: unknown): this {
    return this.#with({ default: value });
  }

  /** A key that may be left out; the words say what happens then. */
  optional(otherwise?: string): this & MayLack {
    return this.#with({ 'x-default': otherwise });
  }

  /** A key that may be left out, and has then what the environment says. */
  orElse(words: string, otherwise: (reading: Reading) => P): this & MayLack & Filled {
    return this.optional(words).#reading({ otherwise });
  }

  /** The program has what `read` makes of the value. */
  reads<Q>(read: (value: P, reading: Reading) => Q): Node<F, Q> {
    return this.#reading({ read });
  }

  /** A text that the program never shows. */
  secret(): Node<F, Secret> {
    return this.#reading({
      read: (value: string, { path, findings }) =>
        new Secret(value, findings.origins?.get(JSON.stringify(path))),
    });
  }

  /** The names of the mapping are in lower case. */
  lowerCased(): this {
    return this.#reading({ lowerCase: true });
  }

  /** The keys of the mapping have the same names in the program. */
  asWritten(): Node<F, F> {
    return this.#reading({ asWritten: true });
  }
}

/** The type of a value as the file has it, with defaults filled in. */
export type FileForm<N> = N extends { readonly [FILE]?: infer F } ? F : never;
/** The type of a value as the program has it: names in camelCase, milliseconds, secrets, lists. */
export type ProgramForm<N> = N extends { readonly [PROGRAM]?: infer P } ? P : never;

type Nodes = Readonly<Record<string, Node>>;
/** A key that may be left out. */
export type MayLack = { readonly 'x-default': string | undefined };
type Filled = { readonly program: { readonly otherwise: (reading: Reading) => unknown } };
type Milliseconds = Node<number, number> & { readonly program: { readonly ms: true } };

type CamelCase<S> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<CamelCase<B>>}` : S;
/** `idle_body` is `idleBody`; where it holds seconds, `idleBodyMs`. */
type Name<K, N> = N extends Milliseconds ? `${CamelCase<K> & string}Ms` : CamelCase<K>;
type Flat<T> = { readonly [K in keyof T]: T[K] };

type InFile<P extends Nodes> = Flat<
  { [K in keyof P as P[K] extends MayLack ? never : K]: FileForm<P[K]> } & {
    [K in keyof P as P[K] extends MayLack ? K : never]?: FileForm<P[K]>;
  }
>;
type Lacking<N> = N extends MayLack ? (N extends Filled ? false : true) : false;
type InProgram<P extends Nodes> = Flat<
  {
    [K in keyof P as Lacking<P[K]> extends true ? never : Name<K, P[K]>]: ProgramForm<P[K]>;
  } & { [K in keyof P as Lacking<P[K]> extends true ? Name<K, P[K]> : never]?: ProgramForm<P[K]> }
>;

export const programName = (key: string, schema: Schema): string => {
  const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return schema.program?.ms === true ? `${name}Ms` : name;
};

/** The keys of a section for one provider, which has those of the top level where it names none. */
export const inherited = <P extends Nodes>(keys: P) =>
  Object.fromEntries(
    Object.entries(keys).map(([name, node]) => [name, node.optional('that of the top level')]),
  ) as Nodes as { readonly [K in keyof P]: P[K] & MayLack };

/** A closed object: unknown keys are problems. */
export const closed = <P extends Nodes>(
  description: string,
  properties: P,
): Node<InFile<P>, InProgram<P>> & { readonly properties: P } => {
  const required = Object.keys(properties).filter(
    (key) => !('default' in properties[key]!) && !('x-default' in properties[key]!),
  );
  return new Node({
    type: 'object',
    additionalProperties: false,
    description,
    ...(required.length > 0 && { required }),
    properties,
  }) as Node & { readonly properties: P };
};

/** Free names to values. */
export const named = <F, P>(
  value: Node<F, P>,
  description: string,
  pattern = '^.+$',
): Node<Readonly<Record<string, F>>, Readonly<Record<string, P>>> =>
  new Node({
    type: 'object',
    description,
    additionalProperties: false,
    patternProperties: { [pattern]: value },
  });

type Details = Omit<Schema, 'type' | 'description' | 'anyOf' | 'properties'>;

export const list = <F, P>(items: Node<F, P>, description?: string, more: Details = {}) =>
  new Node<readonly F[], readonly P[]>({ type: 'array', description, ...more, items });

export const string = (description?: string, more: Details = {}) =>
  new Node<string, string>({ type: 'string', description, ...more });

export const number = (description?: string, more: Details = {}) =>
  new Node<number, number>({ type: 'number', description, ...more });

export const integer = (description: string | undefined, minimum: number, maximum?: number) =>
  new Node<number, number>({ type: 'integer', description, minimum, maximum });

export const anything = () => new Node<unknown, unknown>({});

/** One of several forms. */
export const either = <const N extends readonly Node[]>(anyOf: N, description?: string) =>
  new Node<FileForm<N[number]>, ProgramForm<N[number]>>({ anyOf, description });

/** One of some words. */
export const choice = <const T extends string>(values: readonly T[], description: string) =>
  new Node<T, T>({
    description,
    anyOf: values.map((value) => ({ type: 'string', const: value })),
  });

/** One value, or a list of them: the program has a list. */
export const oneOrMore = <F, P>(item: Node<F, P>, description: string, minItems = 1) =>
  new Node<F | readonly F[], readonly P[]>({
    description,
    anyOf: [item, list(item, undefined, minItems === 0 ? {} : { minItems })],
    program: {
      read: (value: P | readonly P[]) => (Array.isArray(value) ? value : [value]),
    },
  });

/** Seconds within bounds. The program has milliseconds. */
export const secondsFrom = (
  minimum: number,
  maximum: number,
  description: string,
  more: Details = {},
) =>
  number(description, {
    minimum,
    maximum,
    ...more,
    program: { ms: true, read: (seconds: number) => Math.round(seconds * 1000) },
  }) as Milliseconds;

/** Seconds, fractions allowed; 0 = no limit where the description says so. The program has milliseconds. */
export const seconds = (description: string) =>
  secondsFrom(0, 2_000_000, description, { 'x-unit': 'seconds' });

export const count = (description: string, minimum = 0) =>
  integer(description, minimum, Number.MAX_SAFE_INTEGER);

export const text = (description: string) => string(description, { minLength: 1 });

export const flag = (description?: string) =>
  new Node<boolean, boolean>({ type: 'boolean', description });

const NO_HEADER = 'which no header can carry';

/** The value of a header (RFC 9110 §5.5): a character beyond Latin-1 would go out as another one, even a line break. */
const HEADER_VALUE = {
  pattern: '^[\\t -~\\u0080-\\u00ff]*$',
  'x-mismatch': `holds a line break, a control character or one beyond Latin-1, ${NO_HEADER}`,
} as const;

/** Text that is pasted may bring curly quotation marks, long dashes and odd blanks. No vendor has them in its keys. */
const KEY_VALUE = {
  pattern: '^[\\t -~]*$',
  'x-mismatch': `holds a line break or another character beyond printable ASCII, ${NO_HEADER}`,
} as const;

/** A key or token, which is sent in a header. */
export const credential = (description: string) =>
  string(description, { minLength: 1, ...KEY_VALUE }).secret();

/** The first of some variables that is set, in place of a key that the file leaves out. */
export function keyFromEnvironment(
  variables: readonly string[],
  { path, environment, findings }: Reading,
): Secret | undefined {
  for (const name of variables) {
    const value = environment.variable(name);
    if (value === undefined) continue;
    if (!new RegExp(KEY_VALUE.pattern, 'u').test(value)) {
      const message = `the environment variable ${name} ${KEY_VALUE['x-mismatch']}`;
      findings.problems.push({ path, message, key: true });
    }
    return new Secret(value, `$${name}`);
  }
  return undefined;
}

/** Names and values of headers; the values may hold keys. */
export const headerMap = (description: string, pattern?: string) =>
  named(string(undefined, HEADER_VALUE).secret(), description, pattern).lowerCased();

/** The path of a file or folder; `~` is the user's home. */
export const path = (description: string) =>
  text(description).reads((value, { environment }) => expandHome(value, environment.userHome));

/** A whole URL without a user name, password or fragment. */
export const httpUrl = (description: string) =>
  string(description, {
    pattern: '^https?://.+$',
    'x-mismatch': 'must begin with https:// or http://',
    'x-url': 'whole',
  });

/** A day, `2027-01-31`. */
export const date = (description: string) =>
  string(description, {
    pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
    'x-mismatch': 'must be a date such as 2027-01-31',
    'x-date': true,
  });

/** A value that fits the schema, as the program has it. Lenient: a part that did not fit is left out. */
export function inProgram<F, P>(
  schema: Node<F, P>,
  value: F,
  {
    path = [],
    environment = environmentFrom({}),
    findings = { problems: [], warnings: [] },
  }: Partial<Reading> = {},
): P {
  return readNode(schema, value, { path, environment, findings }) as P;
}

function readNode(schema: Schema, value: unknown, reading: Reading): unknown {
  const { read, otherwise, asWritten } = schema.program ?? {};
  if (value === undefined) return otherwise?.(reading);
  if (asWritten === true) return value;
  const inner = readParts(schema, value, reading);
  const isWhole = !Array.isArray(inner) || !inner.includes(undefined);
  return read === undefined || !isWhole ? inner : read(inner, reading);
}

function readParts(schema: Schema, value: unknown, reading: Reading): unknown {
  const at = (step: string | number): Reading => ({ ...reading, path: [...reading.path, step] });
  if (schema.anyOf !== undefined) {
    const branch = schema.anyOf.find((one) => takes(one, value));
    return branch === undefined ? value : readNode(branch, value, reading);
  }
  if (Array.isArray(value)) {
    return value.map((item, index) => readNode(schema.items ?? {}, item, at(index)));
  }
  if (typeof value !== 'object' || value === null) return value;
  const given = value as Readonly<Record<string, unknown>>;
  if (schema.patternProperties !== undefined) {
    const [item] = Object.values(schema.patternProperties);
    return Object.fromEntries(
      Object.entries(given).map(([key, inner]) => [
        schema.program?.lowerCase === true ? key.toLowerCase() : key,
        readNode(item!, inner, at(key)),
      ]),
    );
  }
  if (schema.properties === undefined) return value;
  const out: Record<string, unknown> = {};
  for (const [key, child] of Object.entries(schema.properties)) {
    const inner = readNode(child, given[key], at(key));
    if (inner !== undefined) out[programName(key, child)] = inner;
  }
  return out;
}

/** The values of a union of literals; undefined for any other schema. */
export function literalsOf(schema: Schema): readonly string[] | undefined {
  return schema.anyOf?.every((branch) => typeof branch.const === 'string')
    ? schema.anyOf.map((branch) => branch.const as string)
    : undefined;
}

/** Whether a branch of a union is for values of this kind. */
export function takes(schema: Schema, node: unknown): boolean {
  if (literalsOf(schema) !== undefined) return typeof node === 'string';
  if (schema.anyOf !== undefined) return schema.anyOf.some((branch) => takes(branch, node));
  if (schema.type === 'array') return Array.isArray(node);
  if (schema.type === 'object') {
    return typeof node === 'object' && node !== null && !Array.isArray(node);
  }
  if (schema.type === 'integer') return typeof node === 'number';
  return typeof node === schema.type;
}

import type { JsonObject } from '../../../lib/json/json.ts';
import { schemaProblems } from '../../../lib/json/json-schema-problems.ts';
import { suggest } from '../../../lib/text/did-you-mean.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  anything,
  choice,
  closed,
  count,
  headerMap,
  list,
  named,
  type ProgramForm,
  secondsFrom,
  string,
  text,
} from '../../file/schema.ts';

/** Seconds of a limit that cannot be switched off: a client waits for the result. */
export const toolTimeout = (description: string) => secondsFrom(0.1, 3600, description);

export const keywords = list(
  text('A word or phrase; case does not matter.'),
  'Offered only if the latest message of the user contains one of these.',
  { minItems: 1 },
).optional('offered always');

/** Names and secret values. */
export const secrets = (description: string) => named(string().secret(), description);

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const httpTool = closed('A tool that is one HTTP request.', {
  description: text('The description that the model gets: what the tool does.'),
  url: string('Its address; {name} after the host is replaced by that argument.', {
    pattern: '^https?://.+$',
  }),
  method: choice(METHODS, 'The HTTP method.').byDefault('GET'),
  schema: named(
    anything(),
    'JSON Schema of the arguments. Those not in the URL go into the query (GET, DELETE) or the JSON body; x-in: query or body on a property decides otherwise, x-name renames it.',
  ).optional('no arguments'),
  headers: headerMap('Headers; may hold keys.').byDefault({}),
  query: secrets('Query parameters of every call; may hold keys.').byDefault({}),
  keywords,
  timeout: toolTimeout('Seconds for one call.').byDefault(30),
  max_bytes: count('Bytes of the response that the model gets.', 1).byDefault(262_144),
});

export const httpTools = named(
  httpTool,
  'Tools that are HTTP requests, by name.',
  '^[A-Za-z0-9_-]{1,64}$',
);

type OwnTool = ProgramForm<typeof httpTool>;

export interface HttpToolConfig extends OwnTool {
  readonly name: string;
  /** JSON Schema of the arguments, with `x-in` and `x-name` on its properties. */
  readonly schema: JsonObject;
}

type ArgumentSchema = Readonly<Record<string, unknown>>;

/** @param path of `http` in the file */
export const resolveHttpTools = (
  tools: ProgramForm<typeof httpTools>,
  path: Path,
  findings: Findings,
): readonly HttpToolConfig[] =>
  Object.entries(tools).map(([name, own]) => {
    const schema = own.schema ?? { type: 'object', properties: {} };
    checkUrl(own.url, schema, [...path, name, 'url'], findings);
    checkSchema(own, schema, [...path, name, 'schema'], findings);
    return { name, ...own, schema: schema as JsonObject };
  });

/** An argument in a URL: `{name}`, or `{+name}` which keeps its slashes. */
const PLACEHOLDER = /\{\+?([^{}]*)\}/g;

/** Arguments may stand in the path and the query only: a model must never choose the host. */
function checkUrl(url: string, schema: ArgumentSchema, path: Path, findings: Findings): void {
  const report = (message: string, suggestion?: string) =>
    findings.problems.push({ path, message, suggestion });
  const authority = /^https?:\/\/([^/?#]*)/.exec(url)?.[1] ?? '';
  if (/[{}]/.test(authority)) return void report('no argument can stand in the host');
  if (authority.includes('@')) {
    return void report('must hold no user name or password; use headers');
  }
  const plain = url.replace(PLACEHOLDER, 'x');
  if (!URL.canParse(plain)) return void report('is not a URL');
  if (url.includes('#')) report('must have no #fragment');
  if (/[{}]/.test(plain)) report('has a brace without its partner');
  const properties = propertiesOf(schema);
  for (const [whole, name = ''] of url.matchAll(PLACEHOLDER)) {
    if (Object.hasOwn(properties, name)) continue;
    const known = Object.keys(properties);
    report(`${whole} names no property of the schema`, suggest(name, known));
  }
}

function checkSchema(
  { url, method }: OwnTool,
  schema: ArgumentSchema,
  path: Path,
  findings: Findings,
): void {
  const report = (at: Path, message: string) =>
    findings.problems.push({ path: [...path, ...at], message });
  if (schema.type !== 'object') report([], 'must have type: object');
  // Arguments are checked against it before every call, so a part that cannot be checked is a problem.
  for (const { path: at, message } of schemaProblems(schema as JsonObject)) report(at, message);
  const inUrl = new Set([...url.matchAll(PLACEHOLDER)].map(([, name]) => name));
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    const location = property['x-in'];
    const at: Path = ['properties', name, 'x-in'];
    if (location === undefined) continue;
    if (location !== 'query' && location !== 'body') report(at, 'must be query or body');
    else if (inUrl.has(name)) report(at, 'is for arguments that do not stand in the URL');
    else if (location === 'body' && method === 'GET') report(at, 'a GET request has no body');
  }
}

function propertiesOf(
  schema: ArgumentSchema,
): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const isMapping = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMapping(schema.properties)) return {};
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, value]) => [name, isMapping(value) ? value : {}]),
  );
}

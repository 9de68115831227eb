/** The file's web_fetch, HTTP tools and MCP servers as the program uses them. */

import type { JsonObject } from '../../lib/json/json.ts';
import { schemaProblems } from '../../lib/json/json-schema-problems.ts';
import type {
  HttpToolConfig,
  McpServerConfig,
  ServerToolsConfig,
  WebFetchConfig,
} from '../config.ts';
import { type Environment, expandHome } from '../environment.ts';
import type { Path } from '../file/document.ts';
import { suggest } from '../file/suggest.ts';
import { Secret } from '../secret.ts';
import type { FileConfig } from './index.ts';
import { type Findings, ms } from './resolve-providers.ts';

type FileTools = FileConfig['server_tools'];
type FileHttpTool = FileTools['http'][string];
type FileMcpServer = FileTools['mcp'][string];
type Schema = Readonly<Record<string, unknown>>;

const ROOT: Path = ['server_tools'];
/** An argument in a URL: `{name}`, or `{+name}` which keeps its slashes. */
const PLACEHOLDER = /\{\+?([^{}]*)\}/g;

const secrets = (
  written: Readonly<Record<string, string>>,
  name = (key: string) => key,
): Readonly<Record<string, Secret>> =>
  Object.fromEntries(Object.entries(written).map(([key, value]) => [name(key), new Secret(value)]));
const lower = (key: string) => key.toLowerCase();

export function resolveReachingTools(
  file: FileConfig,
  environment: Environment,
  findings: Findings,
): Pick<ServerToolsConfig, 'webFetch' | 'http' | 'mcp'> {
  const { web_fetch: fetch, http, mcp } = file.server_tools;
  return {
    ...(fetch === undefined ? {} : { webFetch: resolveWebFetch(fetch) }),
    http: Object.entries(http).map(([name, tool]) => resolveHttpTool(name, tool, findings)),
    mcp: Object.entries(mcp).map(([name, server]) =>
      resolveMcpServer(name, server, environment, findings),
    ),
  };
}

function resolveWebFetch(written: NonNullable<FileTools['web_fetch']>): WebFetchConfig {
  return {
    inject: written.inject,
    timeoutMs: ms(written.timeout),
    maxBytes: written.max_bytes,
    maxText: written.max_text,
    maxRedirects: written.max_redirects,
    ...(written.max_uses === undefined ? {} : { maxUses: written.max_uses }),
    allow: written.allow,
  };
}

function resolveHttpTool(name: string, written: FileHttpTool, findings: Findings): HttpToolConfig {
  const schema = written.schema ?? { type: 'object', properties: {} };
  const path: Path = [...ROOT, 'http', name];
  checkUrl(written.url, schema, [...path, 'url'], findings);
  checkSchema(written, schema, [...path, 'schema'], findings);
  return {
    name,
    ...(written.keywords === undefined ? {} : { keywords: written.keywords }),
    description: written.description,
    method: written.method,
    url: written.url,
    schema: schema as JsonObject,
    headers: secrets(written.headers, lower),
    query: secrets(written.query),
    timeoutMs: ms(written.timeout),
    maxBytes: written.max_bytes,
  };
}

/** Arguments may stand in the path and the query only: a model must never choose the host. */
function checkUrl(url: string, schema: Schema, path: Path, findings: Findings): void {
  const say = (message: string, suggestion?: string) =>
    findings.problems.push({ path, message, suggestion });
  const behind = /^https?:\/\/([^/?#]*)/.exec(url)?.[1] ?? '';
  if (/[{}]/.test(behind)) return void say('no argument can stand in the host');
  if (behind.includes('@')) return void say('must hold no user name or password; use headers');
  const plain = url.replace(PLACEHOLDER, 'x');
  if (!URL.canParse(plain)) return void say('is not a URL');
  if (url.includes('#')) say('must have no #fragment');
  if (/[{}]/.test(plain)) say('has a brace without its partner');
  const properties = propertiesOf(schema);
  for (const [whole, name = ''] of url.matchAll(PLACEHOLDER)) {
    if (Object.hasOwn(properties, name)) continue;
    const known = Object.keys(properties);
    say(`${whole} names no property of the schema`, suggest(name, known));
  }
}

function checkSchema(
  { url, method }: FileHttpTool,
  schema: Schema,
  path: Path,
  findings: Findings,
): void {
  const say = (at: Path, message: string) =>
    findings.problems.push({ path: [...path, ...at], message });
  if (schema.type !== 'object') say([], 'must have type: object');
  // It is enforced before every call: what cannot be enforced is no rule.
  for (const { path: at, message } of schemaProblems(schema as JsonObject)) say(at, message);
  const inUrl = new Set([...url.matchAll(PLACEHOLDER)].map(([, name]) => name));
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    const place = property['x-in'];
    const at: Path = ['properties', name, 'x-in'];
    if (place === undefined) continue;
    if (place !== 'query' && place !== 'body') say(at, 'must be query or body');
    else if (inUrl.has(name)) say(at, 'is for arguments that do not stand in the URL');
    else if (place === 'body' && method === 'GET') say(at, 'a GET request has no body');
  }
}

function propertiesOf(schema: Schema): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const isMapping = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMapping(schema.properties)) return {};
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, value]) => [name, isMapping(value) ? value : {}]),
  );
}

function resolveMcpServer(
  name: string,
  written: FileMcpServer,
  environment: Environment,
  findings: Findings,
): McpServerConfig {
  const path: Path = [...ROOT, 'mcp', name];
  const { command, url } = written;
  if ((command === undefined) === (url === undefined)) {
    findings.problems.push({ path, message: 'needs either the key "command" or the key "url"' });
  }
  return {
    name,
    ...(written.keywords === undefined ? {} : { keywords: written.keywords }),
    ...(command === undefined ? {} : { command: expandHome(command, environment.userHome) }),
    args: written.args,
    env: secrets(written.env),
    // Not the directory that the gateway was started in: programs such as npx obey what lies there.
    cwd: expandHome(written.cwd ?? '~', environment.userHome),
    ...(url === undefined ? {} : { url }),
    headers: secrets(written.headers, lower),
    ...(written.tools === undefined ? {} : { tools: written.tools }),
    timeoutMs: ms(written.timeout),
  };
}

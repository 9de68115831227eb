import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import { choice, closed, count, list, type ProgramForm, seconds, text } from '../../file/schema.ts';
import { checkTarget, type ProviderNames } from '../targets.ts';
import { type HttpToolConfig, httpTools, resolveHttpTools, toolTimeout } from './http-tools.ts';
import { type McpServerConfig, mcpServers, resolveMcpServers } from './mcp-servers.ts';
import { resolveWebSearch, type WebSearchConfig, webSearch } from './web-search.ts';

const vision = closed('Descriptions of images for models that read text only.', {
  target: text('The provider/model that describes images for a text model.'),
  prompt: text('The instruction for it.').optional('asks for a description of the image'),
  timeout: seconds('Seconds for one image.').byDefault(60),
});

const webFetch = closed('Reading web pages for models that cannot do it themselves.', {
  inject: choice(
    ['force', 'selective', 'declared'],
    'When the tool is offered: always, if the user wrote a URL, or if the client declared it.',
  ).byDefault('declared'),
  timeout: toolTimeout('Seconds for one page, redirects included.').byDefault(20),
  max_bytes: count('Bytes read of one page.', 1024).byDefault(5_000_000),
  max_text: count('Characters handed to the model at a time.', 100).byDefault(40_000),
  max_redirects: count('Redirects followed.').byDefault(5),
  max_uses: count('Pages for one request.', 1).optional('limited by the tool rounds only'),
  allow: list(
    text('A host, *.domain, address or block; with :port or without.'),
    'Addresses that may be fetched although they are not on the public internet.',
  ).byDefault([]),
});

export type WebFetchConfig = ProgramForm<typeof webFetch>;

export const serverTools = closed('Tools that the gateway runs itself.', {
  web_search: webSearch.optional('off'),
  vision: vision.optional('off'),
  web_fetch: webFetch.optional('off'),
  http: httpTools.byDefault({}),
  mcp: mcpServers.byDefault({}),
});

type Own = ProgramForm<typeof serverTools>;

export interface ServerToolsConfig extends Omit<Own, 'webSearch' | 'http' | 'mcp'> {
  readonly webSearch?: WebSearchConfig;
  readonly http: readonly HttpToolConfig[];
  readonly mcp: readonly McpServerConfig[];
}

const PATH: Path = ['server_tools'];

export function resolveServerTools(
  { webSearch, http, mcp, ...own }: Own,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): ServerToolsConfig {
  if (own.vision !== undefined) {
    checkTarget(own.vision.target, [...PATH, 'vision', 'target'], providers, findings);
  }
  const searchPath = [...PATH, 'web_search'];
  return {
    ...own,
    ...(webSearch !== undefined && {
      webSearch: resolveWebSearch(webSearch, searchPath, providers, environment, findings),
    }),
    http: resolveHttpTools(http, [...PATH, 'http'], findings),
    mcp: resolveMcpServers(mcp, [...PATH, 'mcp'], findings),
  };
}

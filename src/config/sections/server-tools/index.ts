/** The section `server_tools`: tools that the gateway runs itself. */

import type { Static } from '@sinclair/typebox';
import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import { byDefault, closed, ms, optional, seconds, text } from '../../file/schema-types.ts';
import { checkTarget, type ProviderNames } from '../targets.ts';
import { type HttpToolConfig, httpTools, resolveHttpTools } from './http-tools.ts';
import { type McpServerConfig, mcpServers, resolveMcpServers } from './mcp-servers.ts';
import { resolveWebFetch, type WebFetchConfig, webFetch } from './web-fetch.ts';
import { resolveWebSearch, type WebSearchConfig, webSearch } from './web-search.ts';

const vision = closed(
  {
    target: text('The provider/model that describes images for a text model.'),
    prompt: optional(text('The instruction for it.'), 'asks for a description of the image'),
    timeout: byDefault(seconds('Seconds for one image.'), 60),
  },
  'Descriptions of images for models that read text only.',
);

export const serverTools = closed(
  {
    web_search: optional(webSearch, 'off'),
    vision: optional(vision, 'off'),
    web_fetch: optional(webFetch, 'off'),
    http: httpTools,
    mcp: mcpServers,
  },
  'Tools that the gateway runs itself.',
);

export interface ServerToolsConfig {
  readonly webSearch?: WebSearchConfig;
  readonly webFetch?: WebFetchConfig;
  readonly http: readonly HttpToolConfig[];
  readonly mcp: readonly McpServerConfig[];
  readonly vision?: {
    readonly target: string;
    readonly prompt?: string;
    readonly timeoutMs: number;
  };
}

const PATH: Path = ['server_tools'];

export function resolveServerTools(
  { web_search, vision, web_fetch, http, mcp }: Static<typeof serverTools>,
  providers: ProviderNames,
  environment: Environment,
  findings: Findings,
): ServerToolsConfig {
  if (vision !== undefined) {
    checkTarget(vision.target, [...PATH, 'vision', 'target'], providers, findings);
  }
  const searchPath = [...PATH, 'web_search'];
  return {
    ...(web_search !== undefined && {
      webSearch: resolveWebSearch(web_search, searchPath, providers, environment, findings),
    }),
    ...(vision !== undefined && {
      vision: { target: vision.target, prompt: vision.prompt, timeoutMs: ms(vision.timeout) },
    }),
    ...(web_fetch !== undefined && { webFetch: resolveWebFetch(web_fetch) }),
    http: resolveHttpTools(http, [...PATH, 'http'], findings),
    mcp: resolveMcpServers(mcp, [...PATH, 'mcp'], environment, findings),
  };
}

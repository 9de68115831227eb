/** The section `server_tools`: tools that the gateway runs itself. */

import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  byDefault,
  choice,
  closed,
  count,
  list,
  optional,
  type ProgramForm,
  seconds,
  text,
} from '../../file/schema.ts';
import { checkTarget, type ProviderNames } from '../targets.ts';
import { type HttpToolConfig, httpTools, resolveHttpTools } from './http-tools.ts';
import { type McpServerConfig, mcpServers, resolveMcpServers } from './mcp-servers.ts';
import { toolTimeout } from './tool-schema.ts';
import { resolveWebSearch, type WebSearchConfig, webSearch } from './web-search.ts';

const vision = closed(
  {
    target: text('The provider/model that describes images for a text model.'),
    prompt: optional(text('The instruction for it.'), 'asks for a description of the image'),
    timeout: byDefault(seconds('Seconds for one image.'), 60),
  },
  'Descriptions of images for models that read text only.',
);

const webFetch = closed(
  {
    inject: byDefault(
      choice(
        ['force', 'selective', 'declared'],
        'When the tool is offered: always, if the user wrote a URL, or if the client declared it.',
      ),
      'declared',
    ),
    timeout: byDefault(toolTimeout('Seconds for one page, redirects included.'), 20),
    max_bytes: byDefault(count('Bytes read of one page.', 1024), 5_000_000),
    max_text: byDefault(count('Characters handed to the model at a time.', 100), 40_000),
    max_redirects: byDefault(count('Redirects followed.'), 5),
    max_uses: optional(count('Pages for one request.', 1), 'limited by the tool rounds only'),
    allow: byDefault(
      list(
        text('A host, *.domain, address or block; with :port or without.'),
        'Addresses that may be fetched although they are not on the public internet.',
      ),
      [],
    ),
  },
  'Reading web pages for models that cannot do it themselves.',
);

export type WebFetchConfig = ProgramForm<typeof webFetch>;

export const serverTools = closed(
  {
    web_search: optional(webSearch, 'off'),
    vision: optional(vision, 'off'),
    web_fetch: optional(webFetch, 'off'),
    http: byDefault(httpTools, {}),
    mcp: byDefault(mcpServers, {}),
  },
  'Tools that the gateway runs itself.',
);

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

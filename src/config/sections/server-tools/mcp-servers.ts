/** The `mcp` of `server_tools`: MCP servers whose tools models may call. */

import { type Static, Type } from '@sinclair/typebox';
import { type Environment, expandHome } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import {
  byDefault,
  closed,
  headerValue,
  httpUrl,
  ms,
  named,
  optional,
  text,
} from '../../file/schema-types.ts';
import type { Secret } from '../../secret.ts';
import { keywords, lowerCase, secrets, toolTimeout } from './tool-schema.ts';

const mcpServer = closed(
  {
    command: optional(text('The program that speaks MCP over stdin and stdout.'), 'url'),
    args: byDefault(Type.Array(Type.String(), { description: 'Its arguments.' }), []),
    env: byDefault(
      named(Type.String(), 'Its environment, in addition to PATH, HOME and the like.'),
      {},
    ),
    cwd: optional(text('Its working directory.'), "the user's home"),
    url: optional(httpUrl('Its address (streamable HTTP).'), 'command'),
    headers: byDefault(named(headerValue(), 'Headers sent to its address; may hold keys.'), {}),
    tools: optional(
      Type.Array(text('A tool name as the server has it, or a glob.'), {
        description: 'Tools that are offered.',
      }),
      'all of them',
    ),
    keywords,
    timeout: byDefault(toolTimeout('Seconds for one call, and for the start of the server.'), 60),
  },
  'An MCP server.',
);

export const mcpServers = byDefault(
  named(mcpServer, 'MCP servers by name; their tools are mcp__NAME__TOOL.', '^[A-Za-z0-9-]{1,32}$'),
  {},
);

/** An MCP server: a program (`command`) or an address (`url`), never both. */
export interface McpServerConfig {
  readonly name: string;
  /** Offered where the latest text of the user contains one of these; always when left out. */
  readonly keywords?: readonly string[];
  readonly command?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, Secret>>;
  readonly cwd: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, Secret>>;
  /** Names or globs; all of them when left out. */
  readonly tools?: readonly string[];
  /** For one call, and for the start. */
  readonly timeoutMs: number;
}

type FileMcpServer = Static<typeof mcpServer>;

/** @param path of `mcp` in the file */
export const resolveMcpServers = (
  servers: Readonly<Record<string, FileMcpServer>>,
  path: Path,
  { userHome }: Environment,
  findings: Findings,
): readonly McpServerConfig[] =>
  Object.entries(servers).map(([name, own]) => {
    const { command, url } = own;
    if ((command === undefined) === (url === undefined)) {
      const message = 'needs either the key "command" or the key "url"';
      findings.problems.push({ path: [...path, name], message });
    }
    return {
      name,
      ...(own.keywords === undefined ? {} : { keywords: own.keywords }),
      ...(command === undefined ? {} : { command: expandHome(command, userHome) }),
      args: own.args,
      env: secrets(own.env),
      // Not the directory in which the gateway was started: programs such as npx read files there.
      cwd: expandHome(own.cwd ?? '~', userHome),
      ...(url === undefined ? {} : { url }),
      headers: secrets(own.headers, lowerCase),
      ...(own.tools === undefined ? {} : { tools: own.tools }),
      timeoutMs: ms(own.timeout),
    };
  });

import type { Findings, Path } from '../../file/problem.ts';
import {
  closed,
  headerMap,
  httpUrl,
  list,
  named,
  type ProgramForm,
  path,
  string,
  text,
} from '../../file/schema.ts';
import { keywords, secrets, toolTimeout } from './http-tools.ts';

const mcpServer = closed('An MCP server.', {
  command: path('The program that speaks MCP over stdin and stdout.').optional('url'),
  args: list(string(), 'Its arguments.').byDefault([]),
  env: secrets('Its environment, in addition to PATH, HOME and the like.').byDefault({}),
  // Not the directory in which the gateway was started: programs such as npx read files there.
  cwd: path('Its working directory.').orElse(
    "the user's home",
    ({ environment }) => environment.userHome,
  ),
  url: httpUrl('Its address (streamable HTTP).').optional('command'),
  headers: headerMap('Headers sent to its address; may hold keys.').byDefault({}),
  tools: list(
    text('A tool name as the server has it, or a glob.'),
    'Tools that are offered.',
  ).optional('all of them'),
  keywords,
  timeout: toolTimeout('Seconds for one call, and for the start of the server.').byDefault(60),
});

export const mcpServers = named(
  mcpServer,
  'MCP servers by name; their tools are mcp__NAME__TOOL.',
  '^[A-Za-z0-9-]{1,32}$',
);

/** An MCP server: a program (`command`) or an address (`url`), never both. */
export interface McpServerConfig extends ProgramForm<typeof mcpServer> {
  readonly name: string;
}

/** @param path of `mcp` in the file */
export const resolveMcpServers = (
  servers: ProgramForm<typeof mcpServers>,
  path: Path,
  findings: Findings,
): readonly McpServerConfig[] =>
  Object.entries(servers).map(([name, own]) => {
    if ((own.command === undefined) === (own.url === undefined)) {
      const message = 'needs either the key "command" or the key "url"';
      findings.problems.push({ path: [...path, name], message });
    }
    return { name, ...own };
  });

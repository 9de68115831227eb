/** The schema of tools that reach out for a model: web_fetch, the operator's HTTP tools, MCP servers. */

import { Type } from '@sinclair/typebox';
import {
  byDefault,
  choice,
  closed,
  count,
  headerValue,
  named,
  optional,
  text,
} from '../file/schema-words.ts';

/** A limit that cannot be switched off: somebody waits for the answer. */
const wait = (description: string) => Type.Number({ minimum: 0.1, maximum: 3600, description });

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const keywords = optional(
  Type.Array(text('A word or phrase; case does not matter.'), {
    minItems: 1,
    description: 'Offered only where the latest words of the user hold one of these.',
  }),
  'offered always',
);

export const webFetch = closed(
  {
    inject: byDefault(
      choice(
        ['force', 'selective', 'declared'],
        'When the tool is offered: always, where the user wrote a URL, or where the client declared it.',
      ),
      'declared',
    ),
    timeout: byDefault(wait('Seconds for one page, redirects included.'), 20),
    max_bytes: byDefault(count('Bytes read of one page.', 1024), 5_000_000),
    max_text: byDefault(count('Characters handed to the model at a time.', 100), 40_000),
    max_redirects: byDefault(count('Redirects followed.'), 5),
    max_uses: optional(count('Pages for one request.', 1), 'no limit but the tool rounds'),
    allow: byDefault(
      Type.Array(text('A host, *.domain, address or block; with :port or without.'), {
        description: 'What may be fetched although it is not on the public internet.',
      }),
      [],
    ),
  },
  'Reading of web pages for models that cannot.',
);

const httpTool = closed(
  {
    description: text('What the model is told the tool does.'),
    url: Type.String({
      pattern: '^https?://.+$',
      description: 'Where it is called; {name} behind the host is replaced by that argument.',
    }),
    method: byDefault(choice(METHODS, 'The HTTP method.'), 'GET'),
    schema: optional(
      named(
        Type.Unknown(),
        'JSON Schema of the arguments. Those not in the URL go into the query (GET, DELETE) or the JSON body; x-in: query or body on a property decides otherwise, x-name renames it.',
      ),
      'no arguments',
    ),
    headers: byDefault(named(headerValue(), 'Headers; may hold keys.'), {}),
    query: byDefault(named(Type.String(), 'Query parameters of every call; may hold keys.'), {}),
    keywords,
    timeout: byDefault(wait('Seconds for one call.'), 30),
    max_bytes: byDefault(count('Bytes of the answer that the model gets.', 1), 262_144),
  },
  'A tool that is one HTTP request.',
);

export const httpTools = byDefault(
  named(httpTool, 'Tools that are HTTP requests, by name.', '^[A-Za-z0-9_-]{1,64}$'),
  {},
);

const mcpServer = closed(
  {
    command: optional(text('The program that speaks MCP over stdin and stdout.'), 'url'),
    args: byDefault(Type.Array(Type.String(), { description: 'Its arguments.' }), []),
    env: byDefault(named(Type.String(), 'Its environment, besides PATH, HOME and the like.'), {}),
    cwd: optional(text('Its working directory.'), "the user's home"),
    url: optional(
      Type.String({
        pattern: '^https?://.+$',
        'x-mismatch': 'must begin with https:// or http://',
        'x-url': 'whole',
        description: 'Its address (streamable HTTP).',
      }),
      'command',
    ),
    headers: byDefault(named(headerValue(), 'Headers for it; may hold keys.'), {}),
    tools: optional(
      Type.Array(text('A tool name as the server has it, or a glob.'), {
        description: 'Tools that are offered.',
      }),
      'all of them',
    ),
    keywords,
    timeout: byDefault(wait('Seconds for one call, and for its start.'), 60),
  },
  'An MCP server.',
);

export const mcpServers = byDefault(
  named(mcpServer, 'MCP servers by name; their tools are mcp__NAME__TOOL.', '^[A-Za-z0-9-]{1,32}$'),
  {},
);

/** An MCP server over stdin and stdout with two tools: `read_note` knows one note, `delete_note` always fails. */

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const NAMED = {
  type: 'object' as const,
  properties: { name: { type: 'string' } },
  required: ['name'],
};

const server = new Server({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } });

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    { name: 'read_note', description: 'Reads a note.', inputSchema: NAMED },
    { name: 'delete_note', description: 'Deletes a note.', inputSchema: NAMED },
  ],
}));

server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  const name = String(params.arguments?.name);
  if (params.name !== 'read_note') {
    return { isError: true, content: [{ type: 'text', text: `${name} is locked` }] };
  }
  // The environment shows that the process got the configured variables, and nothing else.
  const text = `${name}: buy milk (${process.env.NOTES_OWNER ?? 'nobody'}, ${process.env.HOPGATE_SECRET ?? 'no secret'})`;
  return { content: [{ type: 'text', text }] };
});

await server.connect(new StdioServerTransport());

/** An MCP server over stdin and stdout, with one tool, that resists its end. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * stdin: continues when stdin ends; term: ignores SIGTERM, too; child: has a child; fork: has a grandchild in a
 * separate session. The children sleep for a given number of seconds, which identifies them.
 */
const [kind = 'stdin', seconds = '600'] = process.argv.slice(2);
setInterval(() => {}, 1000);
if (kind === 'term') process.on('SIGTERM', () => {});
if (kind === 'child') spawn('sleep', [seconds], { stdio: 'inherit' });
// The shell in between ends at once, which orphans the child.
if (kind === 'fork') spawn('sh', ['-c', `(setsid sleep ${seconds} >/dev/null 2>&1 </dev/null &)`]);

const tool = { name: kind, description: kind, inputSchema: { type: 'object', properties: {} } };
const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: kind, version: '1' },
  },
  'tools/list': { tools: [tool] },
  'tools/call': { content: [{ type: 'text', text: kind }] },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line) as { id?: number; method: string };
  if (id === undefined) return;
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: '2.0', id, result: RESULTS[method] ?? {} })}\n`,
  );
});

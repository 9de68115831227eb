/** The entry: lifts a limit that only a fresh process can lift, then loads the program and hands over. */

import type * as Start from './start.ts';

// Bun allows 256 outgoing requests at a time, open streams included, and reads the setting only when
// the process starts: so the process replaces itself once, with the same pid, before anything is loaded.
const LIMIT = 'BUN_CONFIG_MAX_HTTP_REQUESTS';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');
const program = compiled ? [process.execPath] : [process.execPath, Bun.main];
const args = process.argv.slice(2);
const serving = args[0] === undefined || args[0] === 'serve' || args[0].startsWith('--');

if (serving && process.env[LIMIT] === undefined && process.execve !== undefined) {
  const variables = { ...process.env, [LIMIT]: '65535' } as NodeJS.ProcessEnv;
  process.execve(process.execPath, [...program, ...args], variables);
}

const { start }: typeof Start = await import('./start.ts');
process.exitCode = await start(program, args, process.env);
// A server leaves handles behind; anything else ends by itself once its output is through the pipe.
if (serving) process.exit();

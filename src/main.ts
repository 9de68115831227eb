/** The entry: knows how the program was started, and hands over. Exports nothing: bytecode would take it for a server. */

import { GUARD, PDF_READER } from './lib/process/own-program.ts';
import { beginWithVariables } from './lib/process/runtime-variables.ts';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');
const program = compiled ? [process.execPath] : [process.execPath, Bun.main];
const args = process.argv.slice(2);

// What a process does not do is not loaded, least of all by the one that only replaces itself.
if (args[0] === GUARD) {
  const { guard } = await import('./lib/process/process-guard.ts');
  process.exit(await guard());
}
if (args[0] === PDF_READER) {
  const { readPdf } = await import('./lib/process/pdf-reader.ts');
  process.exit(await readPdf(Number(args[1]), Number(args[2])));
}
const serves = args[0] === undefined || args[0] === 'serve' || args[0].startsWith('--');
if (serves) beginWithVariables([...program, ...args], process.env);
const { start } = await import('./app/start.ts');
process.exitCode = await start(program, args, process.env);
// A server leaves handles behind; anything else ends by itself once its output is through the pipe.
if (serves) process.exit();

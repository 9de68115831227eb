/** The entry: knows how the program was started, and hands over. Exports nothing: bytecode would take it for a server. */

import { PDF_READER, readPdf } from './lib/process/pdf-reader.ts';
import { GUARD, guard } from './lib/process/process-guard.ts';
import { beginWithVariables } from './lib/process/runtime-variables.ts';

const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:\\~BUN');
const program = compiled ? [process.execPath] : [process.execPath, Bun.main];
const args = process.argv.slice(2);

if (args[0] === GUARD) process.exit(await guard());
if (args[0] === PDF_READER) process.exit(await readPdf(Number(args[1]), Number(args[2])));
const serves = args[0] === undefined || args[0] === 'serve' || args[0].startsWith('--');
if (serves) beginWithVariables([...program, ...args], process.env);
// Loaded here and not before: a guard needs nothing of it.
const { start } = await import('./app/start.ts');
process.exitCode = await start(program, args, process.env);
// A server leaves handles behind; anything else ends by itself once its output is through the pipe.
if (serves) process.exit();

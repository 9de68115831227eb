import { needsKey } from '../../config/sections/auth.ts';
import type { CommandSpec, Invocation } from '../command.ts';
import { loadWithoutKeys } from '../load-config.ts';
import { programPath } from '../run-program.ts';
import { askGateway } from '../running-gateway.ts';
import { reachableUrl } from '../served-models.ts';

export const UI: CommandSpec = {
  name: 'ui',
  group: 'debug',
  summary: 'open the page with the recorded exchanges in a browser',
  description: [
    "Prints the page's address and opens it in a browser if there is one. The gateway must be running.",
    'To reach the page of a gateway on another machine, use a tunnel: ssh -L 5520:127.0.0.1:5520 SERVER.',
  ],
  options: {
    print: { summary: 'only print the address' },
  },
  examples: {
    'hopgate ui': 'Opens the page.',
    'hopgate ui --print': 'Prints only the address, for a script.',
  },
  exits: { 0: 'opened or printed', 1: 'no gateway answers, or the configuration cannot be used' },
  run: (invocation) => openPage(invocation, '/ui'),
};

export const DOCS: CommandSpec = {
  name: 'docs',
  group: 'admin',
  summary: 'open the manual in a browser',
  description: [
    "Prints the manual's address and opens it in a browser if there is one. The running gateway serves the manual of its own version; it needs no key.",
  ],
  options: {
    print: { summary: 'only print the address' },
  },
  examples: {
    'hopgate docs': 'Opens the manual.',
  },
  exits: UI.exits,
  run: (invocation) => openPage(invocation, '/docs'),
};

async function openPage(invocation: Invocation, path: '/ui' | '/docs'): Promise<number> {
  const { out, err, flag, io } = invocation;
  const config = await loadWithoutKeys(invocation);
  if (config === undefined) return 1;
  const url = reachableUrl(config.listen) + path;
  out.line(url);
  const about = await askGateway(config, io.fetch, '/');
  if (about?.body?.name !== 'hopgate') {
    err.line('hopgate: no gateway answers there. "hopgate serve" starts one.');
    return 1;
  }
  if (path === '/ui' && needsKey(config.auth))
    err.line('The page asks for a key of the gateway, once for each tab.');
  const opener = flag('print') ? undefined : openerOf(invocation);
  if (opener === undefined) return 0;
  // The opener may stay as long as the browser does.
  Bun.spawn([opener, url], { stdio: ['ignore', 'ignore', 'ignore'] }).unref();
  return 0;
}

/** The program that opens an address in the browser; undefined on a machine without a desktop. */
function openerOf(invocation: Invocation): string | undefined {
  const { io } = invocation;
  if ((io.platform ?? process.platform) === 'darwin') return programPath(invocation, 'open');
  const { environment } = io;
  const desktop = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'].some(
    (name) => environment.variable(name) !== undefined,
  );
  if (!desktop) return undefined;
  return programPath(invocation, 'wslview') ?? programPath(invocation, 'xdg-open');
}

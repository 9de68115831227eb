/** Reads the process environment once, in one place, into a typed value. */

import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * What the program takes from its environment. Variables are behind a function and not data, so that
 * printing the value shows no secret.
 */
export interface Environment {
  /** A variable; undefined when unset or empty. */
  variable(name: string): string | undefined;
  /** The user's home directory. */
  readonly userHome: string;
  /** `$HOPGATE_HOME`, default `~/.hopgate`: ledger, samples, indexes, memory. */
  readonly home: string;
  /** `$HOPGATE_CONFIG`. */
  readonly configPath: string | undefined;
  /** `$XDG_CONFIG_HOME`, default `~/.config`. */
  readonly configHome: string;
  /**
   * `$HOPGATE_TOOL_TEXT_LIMIT`, characters, 0 = none; undefined when unset or not a whole number. Its older
   * name `$RCC_TOOL_TEXT_LIMIT` counts where it is not set.
   */
  readonly toolTextLimit: number | undefined;
  /** The proxy that the usual variables name for URLs of this scheme (`https:`), as fetch reads them. */
  proxyFor(scheme: string): string | undefined;
  /** Whether there is one. */
  proxies(scheme: string): boolean;
  /** Whether `no_proxy` excepts this host from every proxy. */
  noProxy(host: string): boolean;
  /** Whether output may be coloured: no `NO_COLOR`, and `TERM` is not `dumb`; `FORCE_COLOR` wins. */
  readonly color: boolean;
}

/** The environment of a set of variables; tests hand in their own. */
export function environmentFrom(
  variables: Readonly<Record<string, string | undefined>>,
  userHome: string = variables.HOME || homedir(),
): Environment {
  const variable = (name: string) =>
    (Object.hasOwn(variables, name) ? variables[name] : undefined) || undefined;
  const limit = (
    variable('HOPGATE_TOOL_TEXT_LIMIT') ??
    variable('RCC_TOOL_TEXT_LIMIT') ??
    ''
  ).trim();
  const force = variable('FORCE_COLOR');
  const either = (name: string) => variable(name) ?? variable(name.toUpperCase());
  const proxyFor = (scheme: string) => {
    // For all schemes; one that speaks SOCKS counts for nothing there.
    const all = either('all_proxy');
    return either(`${scheme.slice(0, -1)}_proxy`) ?? (/^socks/i.test(all ?? '') ? undefined : all);
  };
  return {
    variable,
    userHome,
    home: expandHome(variable('HOPGATE_HOME') ?? '~/.hopgate', userHome),
    configPath: variable('HOPGATE_CONFIG'),
    configHome: variable('XDG_CONFIG_HOME') ?? join(userHome, '.config'),
    toolTextLimit: /^\d{1,9}$/.test(limit) ? Number(limit) : undefined,
    proxyFor,
    proxies: (scheme) => proxyFor(scheme) !== undefined,
    noProxy: (host) =>
      (either('no_proxy') ?? '')
        .toLowerCase()
        .split(/[\s,]+/)
        .map((one) => one.replace(/^\*?\./, ''))
        .some((one) => one === '*' || (one !== '' && `.${host}`.endsWith(`.${one}`))),
    color:
      force === undefined
        ? variable('NO_COLOR') === undefined && variable('TERM') !== 'dumb'
        : force !== '0' && force !== 'false',
  };
}

export const processEnvironment = (): Environment => environmentFrom(process.env);

/** `~` and `~/…` as the user's home. */
export function expandHome(path: string, userHome: string): string {
  if (path === '~') return userHome;
  return path.startsWith('~/') ? join(userHome, path.slice(2)) : path;
}

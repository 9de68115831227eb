/** Which readable configurations are not served: the one place that decides, for serve, check, doctor and a reload. */

import { readFileSync, statSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { isOpenToOthers, readKeyPair, UnusableKeyPair } from '../lib/http/key-pair.ts';
import { isLoopback, plainHost } from '../lib/http/local-address.ts';
import type { Findings, Problem } from './file/problem.ts';
import { secretsIn } from './secret.ts';
import { type AuthConfig, needsKey } from './sections/auth.ts';
import type { Listen } from './sections/listen.ts';
import type { ProviderConfig } from './sections/providers.ts';

/** The parts of a configuration on which this depends. */
interface Exposure {
  readonly listen: Listen;
  readonly auth: AuthConfig;
}

/** Whether other machines can reach the server, themselves or through a proxy, and need no key. */
const isExposed = ({ listen, auth }: Exposure): boolean =>
  !needsKey(auth) && (!isLoopback(listen.host) || listen.trustedProxies !== undefined);

/** Warns of a configuration that will not be served; it can still be read, checked and compared. */
export function warnOfServing(exposure: Exposure, { warnings }: Findings): void {
  if (isExposed(exposure)) {
    warnings.push({
      path: ['listen'],
      message:
        'every client that reaches this address can use your providers: set auth.keys, or listen on 127.0.0.1',
    });
  }
  const unusable = unusableCertificate(exposure);
  if (unusable !== undefined) warnings.push({ path: ['listen', 'tls'], message: unusable });
}

/** Warns of providers whose requests come back to this gateway, which refuses them. */
export function warnOfOwnAddress(
  listen: Listen,
  providers: Readonly<Record<string, ProviderConfig>>,
  { warnings }: Findings,
): void {
  for (const { name, baseUrl } of Object.values(providers)) {
    if (!leadsTo(listen, baseUrl)) continue;
    warnings.push({
      path: ['providers', name, 'base_url'],
      message:
        'is the address that this gateway listens on: its own requests would come back, and are refused',
    });
  }
}

/** Whether a URL has the address that the server listens on. No name is looked up. */
function leadsTo({ host: own, port }: Listen, baseUrl: string): boolean {
  const url = URL.parse(baseUrl);
  if (url === null || port === 0) return false;
  if (Number(url.port || (url.protocol === 'https:' ? 443 : 80)) !== port) return false;
  const [host, listening] = [plainHost(url.hostname), plainHost(own)];
  if (host === listening) return true;
  const isAny = (name: string) => name === '0.0.0.0' || name === '::';
  if (isAny(listening)) return isLoopback(host) || isAny(host) || isThisMachine(host);
  // 127.0.0.2 is another address than 127.0.0.1, but a name may stand for both families.
  const isName = (name: string) => !/^[\d.]+$|:/.test(name);
  return isLoopback(listening) && isLoopback(host) && (isName(listening) || isName(host));
}

const isThisMachine = (host: string): boolean =>
  host === hostname().toLowerCase() ||
  Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === host));

/** Every page that a user of this machine opens could use a gateway that wants no key. */
export function checkOrigins({ listen, auth }: Exposure, { problems }: Findings): void {
  const at = listen.cors?.indexOf('*') ?? -1;
  if (at < 0 || needsKey(auth)) return;
  problems.push({
    path: ['listen', 'cors', at],
    message: '"*" is for gateways whose clients need a key: set auth.keys, or name the origins',
  });
}

/** Why the certificate cannot be served; undefined when it can, and without one. */
function unusableCertificate({ listen: { tls } }: Exposure): string | undefined {
  if (tls === undefined) return undefined;
  try {
    readKeyPair(tls.certFile, tls.keyFile);
    return undefined;
  } catch (thrown) {
    return thrown instanceof UnusableKeyPair ? thrown.message : 'the files cannot be read';
  }
}

/**
 * Why this configuration is not served, as a message; undefined when it is. A server that runs keeps its certificate
 * when the files can no longer be used, so the certificate is no reason here.
 */
export function refusalToServe(exposure: Exposure): string | undefined {
  if (!isExposed(exposure)) return undefined;
  if (isLoopback(exposure.listen.host)) {
    return (
      'refusing to serve behind listen.trusted_proxies without gateway keys: anyone who can reach the proxy could ' +
      'use your providers. Set auth.keys.'
    );
  }
  return (
    `refusing to listen on ${exposure.listen.host} without gateway keys: anyone who can reach it could ` +
    'use your providers. Set auth.keys, or listen on 127.0.0.1.'
  );
}

/**
 * What keeps `serve` from starting, as a problem at the position of the loader's warning about the same key.
 * @param warnings those of the loader for this configuration
 * @returns the problem, and the warnings without the one that it replaces
 */
export function problemOfServing(
  exposure: Exposure,
  warnings: readonly Problem[],
): { readonly problem: Problem | undefined; readonly warnings: readonly Problem[] } {
  const refusal = refusalToServe(exposure);
  const message = refusal ?? unusableCertificate(exposure);
  if (message === undefined) return { problem: undefined, warnings };
  const path = refusal === undefined ? 'listen.tls' : 'listen';
  const isSame = (warning: Problem) => warning.path === path;
  const { line, column } = warnings.find(isSame) ?? { line: 0, column: 0 };
  return {
    problem: { path, line, column, message },
    warnings: warnings.filter((warning) => !isSame(warning)),
  };
}

// Shorter ones would match ordinary words.
const MIN_CHARS = 8;

const CREDENTIAL = /auth|cookie|key|pass|secret|sig|token/i;

/** Headers, parameters and proxies are all masked in logs, but most of them are no credentials. */
function isCredential(path: readonly string[], text: string): boolean {
  const name = path.at(-1) ?? '';
  const place = path.at(-2);
  if (place === 'headers' || place === 'query') return CREDENTIAL.test(name);
  return name === 'proxy' ? text.includes('@') : true;
}

/** Warns of a file that shows its keys to other users of the machine. */
export function openFileWithKeys(config: {
  readonly source: { readonly path?: string };
}): string | undefined {
  const { source } = config;
  if (source.path === undefined || !isOpenToOthers(source.path)) return undefined;
  // A pipe can be read once.
  if (!statSync(source.path).isFile()) return undefined;
  const text = readFileSync(source.path, 'utf8');
  const places = secretsIn(config, isCredential)
    .filter((key) => key.length >= MIN_CHARS)
    .map((key) => text.indexOf(key))
    .filter((at) => at >= 0);
  if (places.length === 0) return undefined;
  const line = text.slice(0, Math.min(...places)).split('\n').length;
  return `holds a key in plain text (line ${line}), and other users of this machine can read or change the file: chmod 600, or write keys as \${VARIABLE}`;
}

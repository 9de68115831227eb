/** The part `auth.jwt`: people who show a token of an identity provider instead of a gateway key. */

import { type Environment, expandHome } from '../../environment.ts';
import type { Findings } from '../../file/problem.ts';
import {
  choice,
  closed,
  list,
  named,
  oneOrMore,
  type ProgramForm,
  seconds,
  text,
} from '../../file/schema.ts';
import type { RouteNames } from './budgets.ts';
import { type KeySettings, keySettings, resolveKeySettings } from './settings.ts';

/** Those that need no secret here: RFC 7518 §3.1 and RFC 8037. */
export const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

const claim = (what: string) => text(`The claim with ${what}.`);

export const jwt = closed(
  'People with a token from an identity provider. The settings of a key, `labels` to `budgets`, can be given here and apply to each of them.',
  {
    issuer: text('The `iss` that a token must have.'),
    audience: oneOrMore(
      text('One audience.'),
      'The `aud` that a token must have; of a list, one is enough.',
      0,
    ),
    jwks: text('The key set (JWKS) of the issuer: an https:// URL or a file.'),
    algorithms: list(
      choice(JWT_ALGORITHMS, 'A signature algorithm.'),
      'Algorithms that are accepted; those with shared secrets never are.',
      { minItems: 1 },
    ).byDefault(['RS256', 'PS256', 'ES256', 'EdDSA']),
    clock_skew: seconds("Seconds by which the issuer's clock may differ.").byDefault(60),
    claims: closed(
      'Settings that are taken from claims of the token, each given by its name or a JSON pointer ("/org/team").',
      {
        name: claim('the name for logs').optional('sub'),
        labels: named(claim('the value'), 'Labels, and the claims that give them.').byDefault({}),
        models: claim('a list of models, as `models` of a key').optional('no such limit'),
        tools: claim('a list of server tools').optional('no such limit'),
        routes: claim('a list of routes').optional('no such limit'),
        spaces: claim('a list of memory spaces').optional('no such limit'),
      },
    ).byDefault({}),
    ...keySettings,
  },
);

type Own = ProgramForm<typeof jwt>;

/** The settings of a key apply to each person; {@link settingsOfPerson} resolves them. */
export interface JwtConfig extends Omit<Own, 'jwks'> {
  readonly jwks: { readonly url: string } | { readonly file: string };
}

export function resolveJwt(
  own: Own,
  environment: Environment,
  routes: RouteNames,
  findings: Findings,
): JwtConfig {
  const path = ['auth', 'jwt'];
  const { jwks } = own;
  // Each person's settings are resolved with their first token: here only what is wrong is wanted.
  resolveKeySettings(own, { id: 'jwt:', name: 'jwt', path }, routes, findings);
  if (/^http:/i.test(jwks)) {
    const host = URL.canParse(jwks) ? new URL(jwks).hostname : '';
    if (host !== 'localhost' && host !== '127.0.0.1' && host !== '[::1]') {
      const message = 'must be https: an attacker on the network could replace the key set';
      findings.problems.push({ path: [...path, 'jwks'], message });
    }
  }
  const isUrl = /^https?:\/\//i.test(jwks);
  if (isUrl && !URL.canParse(jwks)) {
    findings.problems.push({ path: [...path, 'jwks'], message: 'is not a URL' });
  }
  return {
    ...own,
    jwks: isUrl ? { url: jwks } : { file: expandHome(jwks, environment.userHome) },
  };
}

/** What applies to one person; the configuration has been checked. */
export function settingsOfPerson(
  config: JwtConfig,
  id: string,
  name: string,
  routes: RouteNames,
): KeySettings {
  const findings: Findings = { problems: [], warnings: [] };
  return resolveKeySettings(config, { id, name, path: [] }, routes, findings);
}

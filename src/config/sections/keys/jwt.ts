/** The part `auth.jwt`: people who show a token of an identity provider instead of a gateway key. */

import { type Environment, expandHome } from '../../environment.ts';
import type { Findings } from '../../file/problem.ts';
import {
  byDefault,
  choice,
  closed,
  list,
  named,
  oneOrMore,
  optional,
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

const claim = (what: string) =>
  text(`The claim that holds ${what}: its name, or a JSON pointer ("/org/team").`);

export const jwt = closed(
  {
    issuer: text('The `iss` that a token must have.'),
    audience: oneOrMore(
      text('One audience.'),
      'The `aud` that a token must have; of a list, one is enough.',
      0,
    ),
    jwks: text('The key set (JWKS) of the issuer: an https:// URL or a file.'),
    algorithms: byDefault(
      list(
        choice(JWT_ALGORITHMS, 'A signature algorithm.'),
        'Algorithms that are accepted; those with shared secrets never are.',
        { minItems: 1 },
      ),
      ['RS256', 'PS256', 'ES256', 'EdDSA'],
    ),
    clock_skew: byDefault(seconds("Seconds by which the issuer's clock may differ."), 60),
    claims: byDefault(
      closed(
        {
          name: optional(claim('the name for logs'), 'sub'),
          labels: byDefault(
            named(claim('the value'), 'Labels, and the claims that give them.'),
            {},
          ),
          models: optional(claim('a list of models, as `models` of a key'), 'no such limit'),
          tools: optional(claim('a list of server tools'), 'no such limit'),
          routes: optional(claim('a list of routes'), 'no such limit'),
          spaces: optional(claim('a list of memory spaces'), 'no such limit'),
        },
        'Settings that are taken from the claims of a token.',
      ),
      {},
    ),
    ...keySettings,
  },
  'People with a token from an identity provider. The settings of a key given here apply to each of them.',
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

/** The part `auth.jwt`: people who show a token of an identity provider instead of a gateway key. */

import { type Static, Type } from '@sinclair/typebox';
import { type Environment, expandHome } from '../../environment.ts';
import type { Findings } from '../../file/problem.ts';
import {
  byDefault,
  choice,
  closed,
  named,
  optional,
  seconds,
  text,
} from '../../file/schema-types.ts';
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
    audience: Type.Union([text('One audience.'), Type.Array(text('One audience.'))], {
      description: 'The `aud` that a token must have; of a list, one is enough.',
    }),
    jwks: text('The key set (JWKS) of the issuer: an https:// URL or a file.'),
    algorithms: byDefault(
      Type.Array(choice(JWT_ALGORITHMS, 'A signature algorithm.'), {
        minItems: 1,
        description: 'Algorithms that are accepted; those with shared secrets never are.',
      }),
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

export interface JwtConfig {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly jwks: { readonly url: string } | { readonly file: string };
  readonly algorithms: readonly (typeof JWT_ALGORITHMS)[number][];
  readonly clockSkewMs: number;
  readonly claims: Static<typeof jwt>['claims'];
  /** What applies to each person; {@link settingsOfPerson} resolves it. */
  readonly written: Static<typeof jwt>;
}

export function resolveJwt(
  written: Static<typeof jwt>,
  environment: Environment,
  routes: RouteNames,
  findings: Findings,
): JwtConfig {
  const path = ['auth', 'jwt'];
  const { issuer, audience, jwks, algorithms, clock_skew, claims } = written;
  // Each person's settings are resolved with their first token: here only what is wrong is wanted.
  resolveKeySettings(written, { id: 'jwt:', name: 'jwt', path }, routes, findings);
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
    issuer,
    audience: typeof audience === 'string' ? [audience] : audience,
    jwks: isUrl ? { url: jwks } : { file: expandHome(jwks, environment.userHome) },
    algorithms,
    clockSkewMs: Math.round(clock_skew * 1000),
    claims,
    written,
  };
}

/** What applies to one person; the configuration has been checked. */
export function settingsOfPerson(
  { written }: JwtConfig,
  id: string,
  name: string,
  routes: RouteNames,
): KeySettings {
  const findings: Findings = { problems: [], warnings: [] };
  return resolveKeySettings(written, { id, name, path: [] }, routes, findings);
}

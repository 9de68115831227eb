/** The keys of a provider on Azure: its resource, and who asks for tokens of Entra ID where there is no API key. */

import type { Environment } from '../../environment.ts';
import type { Findings, Path } from '../../file/problem.ts';
import { string, text } from '../../file/schema.ts';
import { Secret } from '../../secret.ts';

export const azureKeys = {
  resource: string('azure: the name of the resource, from which its address follows.', {
    pattern: '^[a-z0-9][a-z0-9-]{0,63}$',
    'x-mismatch': 'must hold only a–z, 0–9 and -',
  }).optional('AZURE_OPENAI_ENDPOINT or AZURE_RESOURCE_NAME; not needed with base_url'),
  tenant_id: text('azure: the tenant of Entra ID.').optional('AZURE_TENANT_ID'),
  client_id: text('azure: the application, or the managed identity of the machine.').optional(
    'AZURE_CLIENT_ID',
  ),
  scope: text('azure: the scope of tokens of Entra ID.').optional(
    'https://cognitiveservices.azure.com/.default',
  ),
};

export type EntraIdentity =
  | {
      readonly tenantId: string;
      readonly clientId: string;
      /** A secret, or a file: of a certificate with its key, or of another service's token. */
      readonly proof:
        | { readonly secret: Secret }
        | { readonly certificateFile: string }
        | { readonly tokenFile: string };
      /** `https://login.microsoftonline.com` */
      readonly authority: string;
    }
  /** The managed identity of this machine; undefined: its only one. */
  | { readonly clientId: string | undefined };

export interface AzureConfig {
  readonly name: 'azure';
  /** Undefined: the provider has a base URL of its own. */
  readonly endpoint: string | undefined;
  readonly scope: string;
  readonly identity: EntraIdentity;
}

interface Written {
  readonly baseUrl?: string | undefined;
  readonly resource?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly scope?: string | undefined;
}

/** Azure's clouds, by the end of a resource's host. */
const CLOUDS: Readonly<Record<string, { readonly authority: string; readonly scope: string }>> = {
  '.azure.us': {
    authority: 'https://login.microsoftonline.us',
    scope: 'https://cognitiveservices.azure.us/.default',
  },
  '.azure.cn': {
    authority: 'https://login.partner.microsoftonline.cn',
    scope: 'https://cognitiveservices.azure.cn/.default',
  },
};
const PUBLIC = {
  authority: 'https://login.microsoftonline.com',
  scope: 'https://cognitiveservices.azure.com/.default',
};

/** @returns undefined, with a problem, where nothing says which resource is meant */
export function resolveAzure(
  own: Written,
  path: Path,
  environment: Environment,
  { problems }: Findings,
): AzureConfig | undefined {
  const { variable } = environment;
  const named =
    own.resource ?? (own.baseUrl === undefined ? variable('AZURE_RESOURCE_NAME') : undefined);
  const endpoint =
    own.resource === undefined && own.baseUrl === undefined
      ? (variable('AZURE_OPENAI_ENDPOINT') ?? addressOf(named))
      : addressOf(named);
  const address = own.baseUrl ?? endpoint;
  if (address === undefined) {
    const message =
      'needs the key "resource" or "base_url" (or AZURE_OPENAI_ENDPOINT or AZURE_RESOURCE_NAME in the environment)';
    problems.push({ path, key: true, message });
    return undefined;
  }
  const host = URL.canParse(address) ? new URL(address).hostname : '';
  const cloud = Object.entries(CLOUDS).find(([end]) => host.endsWith(end))?.[1] ?? PUBLIC;
  return {
    name: 'azure',
    endpoint,
    scope: own.scope ?? cloud.scope,
    identity: identityOf(own, cloud.authority, environment),
  };
}

const addressOf = (resource: string | undefined): string | undefined =>
  resource === undefined ? undefined : `https://${resource}.openai.azure.com`;

/** In the order of Azure's own libraries: an application's secret or certificate, a token of its workload, the machine. */
function identityOf(own: Written, authority: string, { variable }: Environment): EntraIdentity {
  const tenantId = own.tenantId ?? variable('AZURE_TENANT_ID');
  const clientId = own.clientId ?? variable('AZURE_CLIENT_ID');
  const secret = variable('AZURE_CLIENT_SECRET');
  const certificateFile = variable('AZURE_CLIENT_CERTIFICATE_PATH');
  const tokenFile = variable('AZURE_FEDERATED_TOKEN_FILE');
  const proof =
    secret !== undefined
      ? { secret: new Secret(secret) }
      : certificateFile !== undefined
        ? { certificateFile }
        : tokenFile !== undefined
          ? { tokenFile }
          : undefined;
  if (proof === undefined || tenantId === undefined || clientId === undefined) return { clientId };
  const host = variable('AZURE_AUTHORITY_HOST') ?? authority;
  return { tenantId, clientId, proof, authority: host.replace(/\/{1,9}$/, '') };
}

/** The address before the protocol's own paths; of a bare resource, that of its API without versions. */
export function azureBaseUrl({ endpoint = '' }: AzureConfig, written: string | undefined): string {
  const base = (written ?? endpoint).replace(/\/{1,9}$/, '');
  return /^https?:\/\/[^/]+$/.test(base) ? `${base}/openai/v1` : base;
}

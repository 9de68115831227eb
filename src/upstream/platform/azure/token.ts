/** Tokens of Entra ID by Microsoft's own library: of an application, of its workload, or of the machine. */

import { X509Certificate } from 'node:crypto';
import type { INetworkModule, NetworkRequestOptions, NodeAuthOptions } from '@azure/msal-node';
import type { EntraIdentity } from '../../../config/sections/platform/azure.ts';
import { FlatHeaders } from '../../../lib/http/headers.ts';
import { tryParse } from '../../../lib/json/json.ts';
import { sha256Hex } from '../../../lib/text/sha256.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { TargetError } from '../../target-error.ts';
import type { Transport } from '../../transport.ts';
import type { Lease } from '../renewed.ts';
import { proofsIn, saidWithout, tokenFetch, tokenRequest } from '../token-request.ts';

export interface EntraToken {
  readonly token: string;
  readonly account: string;
}

export interface EntraOptions {
  readonly provider: string;
  readonly scope: string;
  readonly identity: EntraIdentity;
  readonly transport: Transport;
}

/** Of a token whose end is not told. */
const UNKNOWN_MS = 5 * 60_000;

/** A token. Files are read each time, so that what changes in them needs no restart. @throws TargetError */
export async function fetchEntraToken(options: EntraOptions): Promise<Lease<EntraToken>> {
  const { provider, identity } = options;
  const network = new Network(options.transport);
  try {
    const { token, until = Date.now() + UNKNOWN_MS } = await ('proof' in identity
      ? applicationToken(identity, options.scope, network)
      : machineToken(identity.clientId, options.scope, network));
    if (token === '') throw new Error('there is no token in the answer');
    return { value: { token, account: accountOf(identity) }, until };
  } catch (thrown) {
    const { status } = network;
    if (status === undefined ? network.isUnreachable : status >= 500 || status === 429) {
      const what = status === undefined ? 'could not be reached in time' : `answered ${status}`;
      const words = `Provider ${provider} got no access token: ${network.host} ${what}.`;
      // A machine without an identity has nobody to ask: no passing fault.
      if ('proof' in identity || status !== undefined)
        throw new TargetError('elsewhere', 'upstream', words);
    }
    const said = messageOf(thrown);
    const why = saidWithout(said, network.proofs);
    throw new TargetError(
      'next-target',
      'upstream',
      `Provider ${provider} has no credentials: Entra ID gave no token to ${accountOf(identity)} (${why}).`,
      { code: 'provider_key_refused', retryable: false },
    );
  }
}

function accountOf(identity: EntraIdentity): string {
  if ('proof' in identity) return `the application ${identity.clientId}`;
  const { clientId } = identity;
  return clientId === undefined ? "this machine's identity" : `this machine's identity ${clientId}`;
}

interface Fetched {
  readonly token: string;
  readonly until: number | undefined;
}

/** The library would write to the console. */
const SILENT = { loggerCallback() {}, piiLoggingEnabled: false };

async function applicationToken(
  { tenantId, clientId, proof, authority }: Extract<EntraIdentity, { readonly proof: unknown }>,
  scope: string,
  networkClient: Network,
): Promise<Fetched> {
  // Loaded with the first token.
  const { ConfidentialClientApplication } = await import('@azure/msal-node');
  const tenant = `${authority}/${encodeURIComponent(tenantId)}`;
  const app = new ConfidentialClientApplication({
    auth: {
      clientId,
      authority: tenant,
      ...endpointsOf(tenant),
      ...(await proofOf(proof)),
    },
    system: { loggerOptions: SILENT, networkClient, disableInternalRetries: true },
  });
  const result = await app.acquireTokenByClientCredential({ scopes: [scope] });
  return { token: result?.accessToken ?? '', until: result?.expiresOn?.getTime() };
}

/** What the library would look up first: the same for every tenant. */
function endpointsOf(tenant: string): Partial<NodeAuthOptions> {
  const { host } = new URL(tenant);
  return {
    knownAuthorities: [host],
    authorityMetadata: JSON.stringify({
      authorization_endpoint: `${tenant}/oauth2/v2.0/authorize`,
      token_endpoint: `${tenant}/oauth2/v2.0/token`,
      issuer: `${tenant}/v2.0`,
      jwks_uri: `${tenant}/discovery/v2.0/keys`,
    }),
  };
}

async function proofOf(
  proof: Extract<EntraIdentity, { readonly proof: unknown }>['proof'],
): Promise<Partial<NodeAuthOptions>> {
  if ('secret' in proof) return { clientSecret: proof.secret.reveal() };
  if ('tokenFile' in proof)
    return { clientAssertion: (await Bun.file(proof.tokenFile).text()).trim() };
  const pem = await Bun.file(proof.certificateFile).text();
  const { raw } = new X509Certificate(pem);
  return {
    clientCertificate: {
      thumbprintSha256: sha256Hex(raw),
      privateKey: pem.slice(Math.max(0, pem.search(/-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----/))),
      x5c: pem,
    },
  };
}

async function machineToken(
  userAssignedClientId: string | undefined,
  scope: string,
  networkClient: Network,
): Promise<Fetched> {
  const { ManagedIdentityApplication } = await import('@azure/msal-node');
  const app = new ManagedIdentityApplication({
    ...(userAssignedClientId !== undefined && {
      managedIdentityIdParams: { userAssignedClientId },
    }),
    system: { loggerOptions: SILENT, networkClient, disableInternalRetries: true },
  });
  const resource = scope.replace(/\/\.default$/, '');
  // The library keeps tokens for the whole process; those that were withdrawn, too.
  const { accessToken, expiresOn } = await app.acquireToken({ resource, forceRefresh: true });
  return { token: accessToken, until: expiresOn?.getTime() };
}

/** Sends the library's requests as the provider's own go, and knows how the last one ended. */
class Network implements INetworkModule {
  host = '';
  status: number | undefined;
  isUnreachable = false;
  /** What was sent to prove who asks. */
  readonly proofs: string[] = [];

  constructor(private readonly transport: Transport) {}

  sendGetRequestAsync<T>(url: string, options?: NetworkRequestOptions) {
    return this.#send<T>('GET', url, options);
  }

  sendPostRequestAsync<T>(url: string, options?: NetworkRequestOptions) {
    return this.#send<T>('POST', url, options);
  }

  async #send<T>(
    method: 'GET' | 'POST',
    url: string,
    { headers = {}, body }: NetworkRequestOptions = {},
  ) {
    this.host = new URL(url).host;
    this.status = undefined;
    this.proofs.push(...proofsIn(body));
    try {
      // The address of a machine's identity is the machine's own.
      const answer = url.startsWith('https:')
        ? await tokenRequest(this.transport, { url, method, headers, body })
        : await local(this.transport, url, method, headers, body);
      this.status = answer.status;
      const text = new TextDecoder().decode(answer.bytes);
      return {
        status: answer.status,
        headers: FlatHeaders.from(answer.headers).record(),
        body: (tryParse(text) ?? {}) as T,
      };
    } catch (thrown) {
      this.isUnreachable = true;
      throw thrown;
    }
  }
}

async function local(
  transport: Transport,
  url: string,
  method: 'GET' | 'POST',
  headers: Record<string, string>,
  body: string | undefined,
) {
  const answer = await tokenFetch(transport, [])(url, {
    method,
    headers,
    ...(body !== undefined && { body }),
  });
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: new Uint8Array(await answer.arrayBuffer()),
  };
}

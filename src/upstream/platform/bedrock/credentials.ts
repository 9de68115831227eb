/** AWS credentials in the order of AWS' own tools: environment, profile files, web identity, roles by STS. */

import { Readable } from 'node:stream';
import type { BedrockConfig } from '../../../config/sections/platform/index.ts';
import { FlatHeaders } from '../../../lib/http/headers.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { fetchedSecrets, maskLiterals, secretLiterals } from '../../../lib/text/secret-literals.ts';
import { messageOf } from '../../../lib/text/thrown.ts';
import { TargetError } from '../../target-error.ts';
import type { Transport } from '../../transport.ts';
import type { Lease } from '../renewed.ts';
import { tokenRequest } from '../token-request.ts';

export interface AwsIdentity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

const nothing = () => {};
/** The libraries would write to the console. */
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Credentials; the files are read each time. @throws TargetError */
export async function fetchAwsIdentity(
  provider: string,
  { region, awsProfile }: BedrockConfig,
  transport: Transport,
): Promise<Lease<AwsIdentity>> {
  try {
    // Loaded with the first request.
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
    const chain = defaultProvider({
      ...(awsProfile !== undefined && { profile: awsProfile }),
      ignoreCache: true,
      logger: SILENT,
      // A machine without them is no machine at AWS: it does not wait long.
      timeout: 1000,
      maxRetries: 0,
      clientConfig: { requestHandler: requestHandler(transport), maxAttempts: 2 },
      parentClientConfig: { region },
    });
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await chain();
    return {
      value: { accessKeyId, secretAccessKey, sessionToken },
      until: expiration?.getTime(),
    };
  } catch (thrown) {
    const said = messageOf(thrown);
    const why = redactText(maskLiterals(said, secretLiterals(fetchedSecrets()))).text;
    throw new TargetError(
      'next-target',
      'upstream',
      `Provider ${provider} has no AWS credentials: ${why.slice(0, 300)}`,
      { code: 'provider_key_refused', retryable: false, cause: thrown },
    );
  }
}

/** A request of the AWS libraries, as far as it is read here. */
interface AwsRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly path: string;
  readonly method: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>> | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Sends the libraries' requests (to STS and SSO) the way that the provider's own go, its proxy included. */
function requestHandler(transport: Transport) {
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle(request: AwsRequest) {
      const { method, headers, body } = request;
      const { status, ...answer } = await tokenRequest(transport, {
        url: urlOf(request),
        method: method as 'GET' | 'POST',
        headers,
        body: typeof body === 'string' || body instanceof Uint8Array ? body : undefined,
      });
      return {
        response: {
          statusCode: status,
          headers: FlatHeaders.from(answer.headers).record(),
          body: Readable.from([Buffer.from(answer.bytes)]),
        },
      };
    },
    destroy() {},
  };
}

function urlOf({ protocol, hostname, port, path, query = {} }: AwsRequest): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map(
      (one) =>
        `${encodeURIComponent(name)}${one === null ? '' : `=${encodeURIComponent(one as string)}`}`,
    ),
  );
  const search = pairs.length === 0 ? '' : `?${pairs.join('&')}`;
  return `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}${search}`;
}

/** What an error means by the vendor's own code, where its profile knows that better than the protocol does. */

import { GatewayError } from '../conversation/errors.ts';
import type { Profile } from '../conversation/target.ts';
import { memberOf } from '../lib/json-members.ts';

/**
 * The error with the kind (and the word on retrying) that the profile gives its code; the same error
 * when the profile does not know the code, or the vendor's headers already forbade or asked for a
 * retry of the same kind. Status, message and everything else stay the vendor's.
 */
export function vendorError(profile: Profile, error: GatewayError): GatewayError {
  const known =
    error.code !== undefined && profile.errors !== undefined && error.fromUpstream
      ? memberOf(profile.errors, error.code)
      : undefined;
  if (known === undefined) return error;
  const retryable = known.retryable ?? error.retryable;
  if (known.kind === error.kind && retryable === error.retryable) return error;
  const { status, param, code, retryAfter, details, fromUpstream, cause } = error;
  return new GatewayError(known.kind, error.message, {
    status,
    param,
    code,
    retryAfter,
    details,
    fromUpstream,
    retryable,
    cause,
  });
}

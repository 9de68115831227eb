/** Classifies a vendor's error: by its words and code first, then by its status, then by general names. */

import { kindOfStatus } from '../../../conversation/http-error.ts';
import { memberOf } from '../../../lib/json/json-members.ts';
import {
  type KnownError,
  kindOfVendorError,
  type VendorErrorTexts,
} from '../../../vendors/errors/read-error.ts';

/** Error codes and types that are names. */
const NAMES: Readonly<Record<string, KnownError>> = {
  authentication_error: { kind: 'authentication' },
  permission_error: { kind: 'permission' },
  rate_limit_exceeded: { kind: 'rate_limit' },
  rate_limit_error: { kind: 'rate_limit' },
  not_found_error: { kind: 'not_found' },
  billing_error: { kind: 'billing', retryable: false },
  request_too_large: { kind: 'too_large' },
  timeout_error: { kind: 'timeout' },
  tool_use_failed: { kind: 'upstream', retryable: true },
};

/** The kind of an error. `status` is 0 for an error inside a stream. */
export function kindOfError(status: number, error: VendorErrorTexts, body: string): KnownError {
  const known = kindOfVendorError(status, error, body);
  if (known !== undefined) return known;
  const byStatus = status === 0 ? undefined : kindOfStatus(status);
  if (byStatus !== undefined && byStatus !== 'invalid_request') return { kind: byStatus };
  const byName = memberOf(NAMES, error.code ?? '') ?? memberOf(NAMES, error.type ?? '');
  if (byName !== undefined) return byName;
  if (byStatus !== undefined) return { kind: byStatus };
  return { kind: error.type === 'invalid_request_error' ? 'invalid_request' : 'upstream' };
}

/** Marks on requests by which a gateway knows one that it sent itself, as CDN-Loop does (RFC 8586). */

import type { ReadonlyHeaders } from './headers.ts';

export const LOOP_MARK = 'hopgate-loop';

/** Gateways that a request may pass; more are a ring whose members change. */
const MAX_GATEWAYS = 16;
const MAX_LENGTH = 1024;
/** A random id: nothing else crosses in this header. */
const ID = /^[a-z0-9]{12}$/;

/** The gateways that a request has passed; undefined for nearly all requests. */
export function passedGateways(headers: ReadonlyHeaders): readonly string[] | undefined {
  const value = headers.get(LOOP_MARK);
  if (value === null || value.length > MAX_LENGTH) return undefined;
  const ids = value.split(',').map((part) => part.trim());
  return ids.filter((id) => ID.test(id));
}

/** Has the request been here before? */
export function comesAround(headers: ReadonlyHeaders, id: string): boolean {
  const passed = passedGateways(headers);
  return passed !== undefined && (passed.includes(id) || passed.length >= MAX_GATEWAYS);
}

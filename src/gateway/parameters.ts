/** Drops and renames top-level parameters that a vendor does not take, as its profile says. */

import type { Notes } from '../conversation/notes.ts';
import type { Profile } from '../conversation/profile-facts.ts';
import { TURN_STATE } from '../conversation/session/turn-state.ts';
import type { Target } from '../conversation/target.ts';
import { type ByteList, wholeBytes } from '../lib/bytes/byte-list.ts';
import { FlatHeaders, type ReadonlyHeaders } from '../lib/http/headers.ts';
import { isObject, type Json, type JsonObject, topLevel } from '../lib/json/json.ts';
import {
  mayHoldRefusedBetas,
  withoutRefusedBetaFields,
  withoutRefusedBetas,
  withSafeguardsFlag,
} from './betas.ts';
import type { ClientRequest } from './client-request.ts';
import { targetText } from './response-headers.ts';
import type { TurnState } from './stream/client-lane.ts';

const encoder = new TextEncoder();

/** The body as the vendor takes it; the same reference when there is nothing to do. */
export function shapeBody(given: JsonObject, profile: Profile, notes: Notes): JsonObject {
  const body = withoutRefusedBetaFields(given, profile, notes);
  const drops = (profile.dropParams ?? []).filter((key) => body[key] !== undefined);
  const renames = Object.entries(profile.renameParams ?? {}).filter(
    ([from]) => body[from] !== undefined,
  );
  if (drops.length === 0 && renames.length === 0) return body;
  const shaped: Record<string, Json | undefined> = { ...body };
  for (const key of drops) {
    delete shaped[key];
    notes.add('parameter_dropped', key, `${profile.name} does not take it`);
  }
  for (const [from, to] of renames) {
    const value = shaped[from];
    delete shaped[from];
    // The vendor's own spelling, where the client sent both, is the client's word for this vendor.
    if (shaped[to] === undefined) shaped[to] = value;
    notes.add('parameter_mapped', from, `${profile.name} calls it ${to}`);
  }
  return shaped;
}

/**
 * The client's bytes for this target: the model name spliced in. Where a parameter has to go, what is written of the
 * values that are left.
 */
export function shapeBytes(
  request: ClientRequest,
  { model, profile }: Pick<Target, 'model' | 'profile'>,
  notes: Notes,
): Uint8Array | ByteList {
  const { dropParams, renameParams, betas = profile.refusedBetas } = profile;
  const hasRules = dropParams !== undefined || renameParams !== undefined || betas !== undefined;
  if (!hasRules || !mayNeedShape(request, profile)) return request.bytesFor(model);
  const { value, history, protocol } = request;
  if (!isObject(value)) return request.bytesFor(model);
  const shaped = shapeBody(value, profile, notes);
  if (shaped === value) return request.bytesFor(model);
  const body = { ...shaped, model };
  return history?.write(protocol.name, body) ?? encoder.encode(JSON.stringify(body));
}

/** {@link shapeBytes} in one piece. */
export const shapedWhole = (...asked: Parameters<typeof shapeBytes>): Uint8Array =>
  wholeBytes(shapeBytes(...asked));

function mayNeedShape(request: ClientRequest, profile: Profile): boolean {
  const { bytes } = request;
  if (mayHoldRefusedBetas(bytes, profile)) return true;
  const keys = [...(profile.dropParams ?? []), ...Object.keys(profile.renameParams ?? {})];
  const given = request.members;
  if (given !== undefined) return keys.some((key) => given.has(key));
  if (!keys.some((key) => bytes.includes(`"${key}"`))) return false;
  const members = topLevel(bytes);
  return members !== undefined && keys.some((key) => members.has(key));
}

/** The client's headers as the vendor takes them; the same object when there is nothing to do. */
export const shapeHeaders = (
  headers: ReadonlyHeaders,
  target: Target,
  notes: Notes,
  request: ClientRequest,
  turnState?: TurnState,
): ReadonlyHeaders => {
  const own = withoutForeignState(headers, target, turnState);
  const taken = withoutRefusedBetas(own, target.profile, notes);
  return target.protocol === 'anthropic-messages' && request.has('safeguards')
    ? withSafeguardsFlag(taken, target.profile, notes)
    : taken;
};

/** What another target gave for a turn means nothing here, and is not this vendor's to know. */
function withoutForeignState(
  headers: ReadonlyHeaders,
  target: Target,
  state: TurnState | undefined,
): ReadonlyHeaders {
  if (state?.target === undefined || state.target === targetText(target)) return headers;
  return FlatHeaders.from(headers).where((name) => name !== TURN_STATE);
}

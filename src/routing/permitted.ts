/** Refuses models, routes and targets that a key may not use, with a message that names them. */

import { GatewayError } from '../conversation/errors.ts';
import { targetName } from '../conversation/target.ts';
import type { Principal } from '../keys/principal.ts';
import { printableLine } from '../lib/text/printable-text.ts';
import type { RoutedTarget } from './request.ts';
import { type RoutingTable, reachable } from './table.ts';

const refused = (what: string, code: string, param?: string) =>
  new GatewayError('permission', `This API key may not use ${what}.`, {
    code,
    param,
    retryable: false,
  });

export const refusedModel = (name: string, param: string): GatewayError =>
  refused(`the model '${printableLine(name, 200)}'`, 'model_not_allowed', param);

/**
 * The targets of a decision that the key may use, in their order.
 * @param asked the model as the client asked for it
 * @throws GatewayError permission if none is left, or if the key may not use the route
 */
export function permittedTargets(
  { policy }: Principal,
  asked: string,
  routeName: string | undefined,
  targets: readonly RoutedTarget[],
): readonly RoutedTarget[] {
  if (routeName !== undefined && !policy.allowsRoute(routeName)) {
    throw refused(`the route '${printableLine(routeName, 200)}'`, 'route_not_allowed');
  }
  if (!policy.allowsModel(asked)) {
    throw refusedModel(asked, 'model');
  }
  const allowed: RoutedTarget[] = [];
  for (const routed of targets) if (policy.allowsTarget(asked, routed.target)) allowed.push(routed);
  if (allowed.length === targets.length) return targets;
  if (allowed.length > 0) return allowed;
  throw refusedModel(targetName(targets[0]!.target), 'model');
}

/** Can a request for this model reach any target that the key may use? */
export function mayReach({ policy }: Principal, asked: string, table: RoutingTable): boolean {
  if (!policy.allowsModel(asked)) return false;
  return reachable(asked, table).some(
    ({ routeName, target }) =>
      (routeName === undefined || policy.allowsRoute(routeName)) &&
      policy.allowsTarget(asked, target),
  );
}

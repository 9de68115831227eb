/** The router: chooses the provider and model for a request, as a pure function of its facts and the rules. */

export {
  type Explanation,
  explain,
  explainText,
  type RestingTarget,
} from './explain.ts';
export { requestFacts } from './facts.ts';
export { type ModelItem, models } from './models.ts';
export { targetsForNamed } from './named-models.ts';
export { mayReach, permittedTargets } from './permitted.ts';
export { type Fact, plainRequest, type RoutedTarget, type RouteRequest } from './request.ts';
export { contextOf, withRoomFirst } from './room.ts';
export { type RoutingTable, route, routingTable } from './table.ts';
export { profileFor, standInOf, targetOf, targetWithTools } from './targets.ts';
export { modelsWith, openProviders, targetFor } from './vendor-models.ts';
export { targetsOfPaused, targetsWithState } from './vendor-state.ts';

/** Explains a routing decision: every rule with its conditions, and why it decided or not. */

import type { Category } from '../config/sections/categories.ts';
import type { RouteTo } from '../config/sections/routes.ts';
import { targetName } from '../conversation/target.ts';
import type { RouteDecision, RouteRequest } from './request.ts';
import { followAliases, type RoutingTable, route, withModel } from './table.ts';

export interface ExplainedCondition {
  readonly key: string;
  readonly wanted: string;
  readonly got: string;
  readonly holds: boolean;
}

export interface ExplainedRule {
  readonly index: number;
  readonly name: string;
  readonly matched: boolean;
  /** This rule decided. */
  readonly used: boolean;
  readonly conditions: readonly ExplainedCondition[];
  readonly to: readonly string[];
}

/** A target that a running gateway leaves out, or partly. */
export interface RestingTarget {
  /** `provider/model`. */
  readonly target: string;
  /** No key of it is used now: other targets come first. */
  readonly passedOver: boolean;
  /** What rests, why and until when, as text. */
  readonly rests: readonly string[];
  /** Facts learnt from the model's refusals; requests follow them. */
  readonly learnt?: readonly string[];
}

export interface Explanation {
  readonly asked: string;
  /** The name that was routed. */
  readonly model: string;
  readonly aliases: readonly string[];
  readonly category: Category;
  readonly rules: readonly ExplainedRule[];
  readonly decision: RouteDecision;
  /** What rests of the targets that were chosen; empty where no gateway runs. */
  readonly resting: readonly RestingTarget[];
}

/**
 * Checks a request against every rule, also those after the deciding one. Reads all facts.
 * @param resting what rests in a running gateway
 */
export function explain(
  request: RouteRequest,
  table: RoutingTable,
  resting: readonly RestingTarget[] = [],
): Explanation {
  const decision = route(request, table);
  const chosen = new Set(
    decision.ok ? decision.targets.map(({ target }) => targetName(target)) : [],
  );
  const { model, aliases } = followAliases(request.model, table.config);
  const routed = withModel(request, model);
  return {
    asked: request.model,
    model,
    aliases,
    category: table.classify(routed),
    rules: table.rules.map(({ config, conditions }, index) => {
      const explained = conditions.map((condition) => ({
        key: condition.key,
        wanted: condition.wanted,
        got: condition.got(routed),
        holds: condition.holds(routed),
      }));
      return {
        index,
        name: config.name,
        matched: explained.every(({ holds }) => holds),
        used: decision.reason.kind === 'rule' && decision.reason.index === index,
        conditions: explained,
        to: config.to.map((one) => `${one.target}${shareOf(one, config.to)}`),
      };
    }),
    decision,
    resting: resting.filter(({ target }) => chosen.has(target)),
  };
}

/** The share of a route's requests that try this target first; '' when its targets have no weights. */
function shareOf(one: RouteTo, to: readonly RouteTo[]): string {
  const { weight } = one;
  if (to.length < 2 || to.every((other) => other.weight === undefined)) {
    return weight === undefined ? '' : ` (weight ${weight})`;
  }
  const all = to.reduce((sum, other) => sum + (other.weight ?? 1), 0);
  const share = Math.round(((weight ?? 1) / all) * 1000) / 10;
  return ` (weight ${weight ?? 1}, ${share} % of the requests begin here)`;
}

/** The explanation as text, one line for each rule and condition. */
export function explainText(explanation: Explanation): string {
  const { asked, aliases, category, rules, decision, resting } = explanation;
  const lines = [`model     ${[asked, ...aliases].join(' → ')}`, `category  ${category}`];
  if (rules.length > 0) lines.push('routes');
  for (const rule of rules) {
    const verdict = rule.used ? 'decides' : rule.matched ? 'matches' : 'no';
    lines.push(`  ${rule.index + 1}. ${rule.name}: ${verdict} → ${rule.to.join(', ')}`);
    for (const { key, wanted, got, holds } of rule.conditions) {
      lines.push(`     ${holds ? '✓' : '✗'} ${key} ${wanted} (is: ${got})`);
    }
  }
  lines.push(`why       ${why(decision)}`);
  if (decision.ok) {
    for (const [index, { target }] of decision.targets.entries()) {
      const profile = target.profile.name === 'none' ? '' : `, profile ${target.profile.name}`;
      const label = index === 0 ? 'target   ' : 'then     ';
      const name = targetName(target);
      const rests = resting.find((one) => one.target === name);
      const passed = rests?.passedOver
        ? ', cooling down: passed over while another target serves'
        : '';
      lines.push(`${label} ${name} (${target.protocol}${profile}${passed})`);
      for (const why of rests?.rests ?? []) lines.push(`          cools down: ${why}`);
      for (const fact of rests?.learnt ?? []) lines.push(`          learnt: ${fact}`);
    }
  }
  return lines.join('\n');
}

function why(decision: RouteDecision): string {
  const { reason } = decision;
  if (!decision.ok) return decision.error.message;
  switch (reason.kind) {
    case 'direct':
      return `the name addresses the provider ${reason.name}`;
    case 'rule':
      return `route "${reason.name}" is the first that matches`;
    default:
      return `no route matches, and ${reason.name} lists the name`;
  }
}

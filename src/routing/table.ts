/** The routing table: a configuration compiled once, used for every request. */

import type { Config } from '../config/config.ts';
import type { Category } from '../config/sections/categories.ts';
import type { RouteConfig } from '../config/sections/routes.ts';
import { GatewayError } from '../conversation/errors.ts';
import { suggest } from '../lib/text/did-you-mean.ts';
import { globTest, isGlob } from '../lib/text/glob.ts';
import { classifier } from './category.ts';
import { type Classify, type Condition, compileWhen } from './conditions.ts';
import { models } from './models.ts';
import type { Fact, RouteDecision, RoutedTarget, RouteReason, RouteRequest } from './request.ts';
import { contextOf } from './room.ts';
import {
  expander,
  isWeighted,
  LONG_NAME,
  MAX_REMEMBERED,
  splitTarget,
  targetOf,
} from './targets.ts';

export interface Rule {
  readonly config: RouteConfig;
  readonly conditions: readonly Condition[];
  /** The targets for a requested model name, in order. */
  readonly targets: (requested: string, affinity: string) => readonly RoutedTarget[];
  /** How many targets share the sessions by weight; 0: the first one has them all. */
  readonly equals: number;
}

export interface RoutingTable {
  readonly config: Config;
  /** The facts that some rule reads; the others are never computed. `model` is always among them. */
  readonly needs: ReadonlySet<Fact>;
  readonly rules: readonly Rule[];
  readonly classify: Classify;
  readonly listed: readonly ProviderModels[];
  /** Every model name that the configuration spells out; computed at the first call. */
  readonly knownNames: () => readonly string[];
  /** By requested name: what the name alone decides. */
  readonly decided: Map<string, NameDecision>;
}

/** Everything that follows from the requested model name alone. */
interface NameDecision {
  readonly model: string;
  readonly aliases: readonly string[];
  /** Set when the name is `provider/model`. */
  readonly direct: RouteDecision | undefined;
  /** The rules whose conditions on the name hold, with their other conditions. */
  readonly rules: readonly {
    readonly rule: Rule;
    readonly index: number;
    readonly others: readonly Condition[];
  }[];
}

interface ProviderModels {
  readonly provider: string;
  readonly names: ReadonlySet<string>;
  readonly globs: readonly ((text: string) => boolean)[];
  /** Takes any name at all. */
  readonly any: boolean;
}

/** Compiles a configuration. Pure; a checked configuration always compiles. */
export function routingTable(config: Config): RoutingTable {
  const classify = classifier(config.categories);
  const rules = config.routes.map((route): Rule => {
    const targets = expander(route.to, config.providers);
    const windowFor = (model: string) => {
      const [first] = targets(model, '');
      return first && contextOf(first);
    };
    return {
      config: route,
      conditions: compileWhen(route.when ?? {}, classify, windowFor),
      targets,
      equals: isWeighted(route.to) ? route.to.filter(({ weight = 1 }) => weight > 0).length : 0,
    };
  });
  const needs = new Set<Fact>(['model']);
  for (const { config: route, conditions } of rules) {
    for (const condition of conditions) for (const fact of condition.facts) needs.add(fact);
    if (isWeighted(route.to)) needs.add('affinity');
  }
  const listed = Object.values(config.providers).map(
    (provider): ProviderModels => ({
      provider: provider.name,
      names: new Set(provider.models.filter((name) => !isGlob(name))),
      globs: provider.models.filter((name) => isGlob(name) && name !== '*').map(globTest),
      any: provider.models.includes('*'),
    }),
  );
  let ids: readonly string[] | undefined;
  const knownNames = () => {
    ids ??= models(config).map(({ id }) => id);
    return ids;
  };
  return { config, needs, rules, classify, listed, knownNames, decided: new Map() };
}

/**
 * The targets for a request. Aliases are followed first. Then decides: `provider/model`, which addresses
 * that provider; else the first rule that matches; else the providers that list the name (and, if there
 * are no rules at all, those that take any name). Deterministic, and never throws; a model that no
 * provider takes is `not_found` with a hint.
 * @param named a route that decides whatever its conditions say
 */
export function route(request: RouteRequest, table: RoutingTable, named?: string): RouteDecision {
  if (named !== undefined) return routeNamed(named, request, table);
  const { model, aliases, direct, rules } = decisionForName(table, request.model);
  if (direct !== undefined) return direct;
  if (model !== '' && request.model.length <= MAX_NAME) {
    const renamed = aliases.length === 0 ? request : withModel(request, model);
    for (const { rule, index, others } of rules) {
      if (!allHold(others, renamed)) continue;
      const affinity = rule.equals > 0 ? request.affinity : '';
      const targets = rule.targets(model, affinity);
      if (targets.length > 0)
        return new RuleDecision(rule, index, targets, renamed, aliases, table);
    }
    const listed = decisionByListing(model, aliases, table);
    if (listed !== undefined) return listed;
  }
  const reason: RouteReason = { kind: 'none', name: '', matched: [], aliases };
  return { ok: false, error: notFound(request.model, table), reason };
}

function decisionByListing(
  model: string,
  aliases: readonly string[],
  table: RoutingTable,
): RouteDecision | undefined {
  const { providers } = table.config;
  const listing = providersListing(model, table);
  if (listing.length === 0) return undefined;
  const targets = listing.map((name) => targetOf(providers[name]!, model));
  return decisionWithoutRule('listed', listing[0]!, targets, aliases);
}

function routeNamed(name: string, request: RouteRequest, table: RoutingTable): RouteDecision {
  const index = table.rules.findIndex((rule) => rule.config.name === name);
  const rule = table.rules[index];
  const { model, aliases } = followAliases(request.model, table.config);
  const affinity = table.needs.has('affinity') ? request.affinity : '';
  // A name with a provider in front is that provider's: elsewhere the model alone means something.
  const bare = splitTarget(model, table.config.providers)?.model ?? model;
  const targets = rule?.targets(bare, affinity) ?? [];
  if (rule !== undefined && targets.length > 0) {
    return new RuleDecision(rule, index, targets, request, aliases, table);
  }
  const reason: RouteReason = { kind: 'none', name: '', matched: [], aliases };
  return { ok: false, error: notFound(request.model, table), reason };
}

/** Every target that a requested name can reach, whatever else the request says, with the rule that leads there. */
export function reachable(
  requested: string,
  table: RoutingTable,
): readonly { readonly routeName: string | undefined; readonly target: RoutedTarget['target'] }[] {
  const { model, direct, rules } = decisionForName(table, requested);
  const without = (targets: readonly RoutedTarget[]) =>
    targets.map(({ target }) => ({ routeName: undefined, target }));
  if (direct !== undefined) return direct.ok ? without(direct.targets) : [];
  if (model === '' || requested.length > MAX_NAME) return [];
  const found: {
    readonly routeName: string | undefined;
    readonly target: RoutedTarget['target'];
  }[] = [];
  for (const { rule, others } of rules) {
    const targets = rule.targets(model, '');
    for (const { target } of targets) found.push({ routeName: rule.config.name, target });
    // Every request with this name ends here.
    if (others.length === 0 && targets.length > 0) return found;
  }
  const { providers } = table.config;
  const listing = providersListing(model, table);
  return [...found, ...without(listing.map((name) => targetOf(providers[name]!, model)))];
}

function decisionForName(table: RoutingTable, requested: string): NameDecision {
  if (requested.length > MAX_NAME) return TOO_LONG;
  const known = table.decided.get(requested);
  if (known !== undefined) return known;
  const named = decideName(table, requested);
  if (requested.length > LONG_NAME) return named;
  if (table.decided.size >= MAX_REMEMBERED) table.decided.clear();
  table.decided.set(requested, named);
  return named;
}

/** Characters of a name; the longest names of vendors have a tenth of that. */
const MAX_NAME = 1024;
const TOO_LONG: NameDecision = { model: '', aliases: [], direct: undefined, rules: [] };

function decideName({ config, rules }: RoutingTable, requested: string): NameDecision {
  const { model, aliases } = followAliases(requested, config);
  const named = splitTarget(model, config.providers);
  if (named !== undefined) {
    const targets = [targetOf(named.provider, named.model)];
    const direct = decisionWithoutRule('direct', named.provider.name, targets, aliases);
    return { model, aliases, direct, rules: [] };
  }
  const candidates = rules.flatMap((rule, index) => {
    const own = rule.conditions.filter(({ byName }) => byName !== undefined);
    if (!own.every(({ byName }) => byName?.(model))) return [];
    const others = rule.conditions.filter(({ byName }) => byName === undefined);
    return [{ rule, index, others }];
  });
  return { model, aliases, direct: undefined, rules: candidates };
}

function allHold(conditions: readonly Condition[], request: RouteRequest): boolean {
  for (const condition of conditions) if (!condition.holds(request)) return false;
  return true;
}

const decisionWithoutRule = (
  kind: 'direct' | 'listed',
  name: string,
  targets: readonly RoutedTarget[],
  aliases: readonly string[],
): RouteDecision => ({
  ok: true,
  targets,
  routeName: undefined,
  equals: 0,
  reason: { kind, name, matched: [], aliases },
});

/** The decision of a rule. Its reason is computed when it is read, which an ordinary request never does. */
class RuleDecision {
  readonly ok = true;
  readonly targets: readonly RoutedTarget[];
  readonly #rule: Rule;
  readonly #index: number;
  readonly #request: RouteRequest;
  readonly #aliases: readonly string[];
  readonly #table: RoutingTable;

  constructor(
    rule: Rule,
    index: number,
    targets: readonly RoutedTarget[],
    request: RouteRequest,
    aliases: readonly string[],
    table: RoutingTable,
  ) {
    this.targets = targets;
    this.#rule = rule;
    this.#index = index;
    this.#request = request;
    this.#aliases = aliases;
    this.#table = table;
  }

  get routeName(): string {
    return this.#rule.config.name;
  }

  get equals(): number {
    return this.#rule.equals;
  }

  get reason(): RouteReason {
    const request = this.#request;
    const { config, conditions } = this.#rule;
    return {
      kind: 'rule',
      name: config.name,
      index: this.#index,
      matched: conditions.map(({ key, wanted, got }) => `${key} ${wanted} = ${got(request)}`),
      aliases: this.#aliases,
      ...categoryOf(conditions, this.#table, request),
    };
  }
}

function categoryOf(
  conditions: readonly Condition[],
  table: RoutingTable,
  request: RouteRequest,
): { category?: Category } {
  return conditions.some(({ key }) => key === 'category')
    ? { category: table.classify(request) }
    : {};
}

/** The providers that list a model: by exact name, then by glob, then by `*`, each in the order of the file. */
function providersListing(model: string, table: RoutingTable): readonly string[] {
  const exact = table.listed.filter(({ names }) => names.has(model));
  const globbed = table.listed.filter(({ globs }) => globs.some((test) => test(model)));
  const open = table.rules.length === 0 ? table.listed.filter(({ any }) => any) : [];
  return [...new Set([...exact, ...globbed, ...open].map(({ provider }) => provider))];
}

/** The name that a requested one stands for, and the aliases that lead to it. */
export function followAliases(
  requested: string,
  config: Config,
): { readonly model: string; readonly aliases: readonly string[] } {
  let model = requested;
  const aliases: string[] = [];
  while (
    Object.hasOwn(config.aliases, model) &&
    splitTarget(model, config.providers) === undefined &&
    aliases.length < 100
  ) {
    model = config.aliases[model]!;
    aliases.push(model);
  }
  if (config.modelList.claudeAliases && model.startsWith('claude-')) {
    const rest = model.slice('claude-'.length);
    const taken = splitTarget(model, config.providers) !== undefined;
    if (!taken && splitTarget(rest, config.providers) !== undefined) {
      aliases.push(rest);
      model = rest;
    }
  }
  return { model, aliases };
}

/** The request with another model name; its other facts stay lazy. */
export function withModel(request: RouteRequest, model: string): RouteRequest {
  return Object.create(request, { model: { value: model, enumerable: true } }) as RouteRequest;
}

function notFound(requested: string, table: RoutingTable): GatewayError {
  const shown = requested.length > 200 ? `${requested.slice(0, 200)}…` : requested;
  const near = requested.length > 200 ? undefined : suggest(requested, table.knownNames());
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  const message =
    requested === ''
      ? 'The request names no model.'
      : requested.length > MAX_NAME
        ? `The model "${shown}" does not exist: no name has ${requested.length} characters.`
        : `The model "${shown}" does not exist: no route and no provider takes it.${hint}`;
  return new GatewayError('not_found', message, { code: 'model_not_found', param: 'model' });
}

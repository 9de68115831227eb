/** The routing table: a configuration compiled once, asked on every request. */

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
import { expander, LONG_NAME, MOST_NAMES, splitTarget, targetOf } from './targets.ts';

export interface Rule {
  readonly config: RouteConfig;
  readonly conditions: readonly Condition[];
  /** The places for an asked name, in order; see {@link expand}. */
  readonly targets: (asked: string, affinity: string) => readonly RoutedTarget[];
}

export interface RoutingTable {
  readonly config: Config;
  /** The facts that some rule looks at; the others are never read. `model` is always among them. */
  readonly needs: ReadonlySet<Fact>;
  readonly rules: readonly Rule[];
  readonly classify: Classify;
  /** What each provider lists. */
  readonly listed: readonly Listed[];
  /** Every name that can be spelled out, made when it is first asked for. */
  readonly known: () => readonly string[];
  /** What the names alone decide, remembered. */
  readonly named: Map<string, Named>;
}

/** All that follows from the name that was asked for. */
interface Named {
  readonly model: string;
  readonly aliases: readonly string[];
  /** The name is `provider/model`. */
  readonly direct: RouteDecision | undefined;
  /** The rules that take the name, with what else they ask for. */
  readonly rules: readonly {
    readonly rule: Rule;
    readonly index: number;
    readonly others: readonly Condition[];
  }[];
}

interface Listed {
  readonly provider: string;
  readonly names: ReadonlySet<string>;
  readonly globs: readonly ((text: string) => boolean)[];
  /** Takes any name at all. */
  readonly any: boolean;
}

/** Compiles a configuration. Pure; a checked configuration always compiles. */
export function routingTable(config: Config): RoutingTable {
  const classify = classifier(config.categories);
  const rules = config.routes.map(
    (route): Rule => ({
      config: route,
      conditions: compileWhen(route.when ?? {}, classify),
      targets: expander(route.to, config.providers),
    }),
  );
  const needs = new Set<Fact>(['model']);
  for (const { config: route, conditions } of rules) {
    for (const condition of conditions) for (const fact of condition.facts) needs.add(fact);
    if (route.to.some((one) => one.weight !== undefined)) needs.add('affinity');
  }
  const listed = Object.values(config.providers).map(
    (provider): Listed => ({
      provider: provider.name,
      names: new Set(provider.models.filter((name) => !isGlob(name))),
      globs: provider.models.filter((name) => isGlob(name) && name !== '*').map(globTest),
      any: provider.models.includes('*'),
    }),
  );
  let ids: readonly string[] | undefined;
  const known = () => {
    ids ??= models(config).map(({ id }) => id);
    return ids;
  };
  return { config, needs, rules, classify, listed, known, named: new Map() };
}

/**
 * The places for a request, in this order: aliases are followed; `provider/model` addresses that
 * provider; else the first rule that matches; else the providers that list the name (and, where
 * there are no rules at all, those that take any). Deterministic, and never throws; a model that
 * nobody takes is `not_found` with a hint.
 */
export function route(request: RouteRequest, table: RoutingTable): RouteDecision {
  const { model, aliases, direct, rules } = namedIn(table, request.model);
  if (direct !== undefined) return direct;
  if (model !== '' && request.model.length <= LONGEST_NAME) {
    const asked = aliases.length === 0 ? request : withModel(request, model);
    for (const { rule, index, others } of rules) {
      if (!allHold(others, asked)) continue;
      const affinity = table.needs.has('affinity') ? request.affinity : '';
      const targets = rule.targets(model, affinity);
      if (targets.length > 0) return new Ruled(rule, index, targets, asked, aliases, table);
    }
    const { providers } = table.config;
    const takers = takersOf(model, table);
    if (takers.length > 0) {
      const targets = takers.map((name) => targetOf(providers[name]!, model));
      return unruled('listed', takers[0]!, targets, aliases);
    }
  }
  const reason: RouteReason = { kind: 'none', name: '', matched: [], aliases };
  return { ok: false, error: notFound(request.model, table), reason };
}

function namedIn(table: RoutingTable, asked: string): Named {
  if (asked.length > LONGEST_NAME) return TOO_LONG;
  const known = table.named.get(asked);
  if (known !== undefined) return known;
  const named = nameIn(table, asked);
  if (asked.length > LONG_NAME) return named;
  if (table.named.size >= MOST_NAMES) table.named.clear();
  table.named.set(asked, named);
  return named;
}

/** Characters of a name; the longest ones that vendors have are a tenth of it. */
const LONGEST_NAME = 1024;
const TOO_LONG: Named = { model: '', aliases: [], direct: undefined, rules: [] };

function nameIn({ config, rules }: RoutingTable, asked: string): Named {
  const { model, aliases } = followAliases(asked, config);
  const place = splitTarget(model, config.providers);
  if (place !== undefined) {
    const targets = [targetOf(place.provider, place.model)];
    const direct = unruled('direct', place.provider.name, targets, aliases);
    return { model, aliases, direct, rules: [] };
  }
  const open = rules.flatMap((rule, index) => {
    const own = rule.conditions.filter(({ byName }) => byName !== undefined);
    if (!own.every(({ byName }) => byName?.(model))) return [];
    const others = rule.conditions.filter(({ byName }) => byName === undefined);
    return [{ rule, index, others }];
  });
  return { model, aliases, direct: undefined, rules: open };
}

function allHold(conditions: readonly Condition[], asked: RouteRequest): boolean {
  for (const condition of conditions) if (!condition.holds(asked)) return false;
  return true;
}

const unruled = (
  kind: 'direct' | 'listed',
  name: string,
  targets: readonly RoutedTarget[],
  aliases: readonly string[],
): RouteDecision => ({
  ok: true,
  targets,
  rule: undefined,
  reason: { kind, name, matched: [], aliases },
});

/** Why is put into words only when somebody asks: nobody does on the way of a request. */
class Ruled {
  readonly ok = true;
  readonly targets: readonly RoutedTarget[];
  readonly #rule: Rule;
  readonly #index: number;
  readonly #asked: RouteRequest;
  readonly #aliases: readonly string[];
  readonly #table: RoutingTable;

  constructor(
    rule: Rule,
    index: number,
    targets: readonly RoutedTarget[],
    asked: RouteRequest,
    aliases: readonly string[],
    table: RoutingTable,
  ) {
    this.targets = targets;
    this.#rule = rule;
    this.#index = index;
    this.#asked = asked;
    this.#aliases = aliases;
    this.#table = table;
  }

  get rule(): string {
    return this.#rule.config.name;
  }

  get reason(): RouteReason {
    const asked = this.#asked;
    const { config, conditions } = this.#rule;
    return {
      kind: 'rule',
      name: config.name,
      index: this.#index,
      matched: conditions.map(({ key, wanted, got }) => `${key} ${wanted} = ${got(asked)}`),
      aliases: this.#aliases,
      ...categoryOf(conditions, this.#table, asked),
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

/** Exact names before globs, those before `*`, each in the order of the file. */
function takersOf(model: string, table: RoutingTable): readonly string[] {
  const exact = table.listed.filter(({ names }) => names.has(model));
  const globbed = table.listed.filter(({ globs }) => globs.some((test) => test(model)));
  const open = table.rules.length === 0 ? table.listed.filter(({ any }) => any) : [];
  return [...new Set([...exact, ...globbed, ...open].map(({ provider }) => provider))];
}

/** The name that an asked one stands for, and every name on the way. */
export function followAliases(
  asked: string,
  config: Config,
): { readonly model: string; readonly aliases: readonly string[] } {
  let model = asked;
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
    const behind = model.slice('claude-'.length);
    const taken = splitTarget(model, config.providers) !== undefined;
    if (!taken && splitTarget(behind, config.providers) !== undefined) {
      aliases.push(behind);
      model = behind;
    }
  }
  return { model, aliases };
}

/** The request under another name, its other facts still unread. */
export function withModel(request: RouteRequest, model: string): RouteRequest {
  return Object.create(request, { model: { value: model, enumerable: true } }) as RouteRequest;
}

function notFound(asked: string, table: RoutingTable): GatewayError {
  const shown = asked.length > 200 ? `${asked.slice(0, 200)}…` : asked;
  const near = asked.length > 200 ? undefined : suggest(asked, table.known());
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  const message =
    asked === ''
      ? 'The request names no model.'
      : asked.length > LONGEST_NAME
        ? `The model "${shown}" does not exist: no name has ${asked.length} characters.`
        : `The model "${shown}" does not exist: no route and no provider takes it.${hint}`;
  return new GatewayError('not_found', message, { code: 'model_not_found', param: 'model' });
}

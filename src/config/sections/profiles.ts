import { type Facts, PROFILE_FACTS } from '../../conversation/profile-facts.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { suggest } from '../../lib/text/did-you-mean.ts';
import { PROFILES } from '../../vendors/index.ts';
import type { ProfileFacts } from '../../vendors/vendor.ts';
import type { Findings, Path } from '../file/problem.ts';
import {
  closed,
  type MayLack,
  Node,
  named,
  type ProgramForm,
  type Schema,
  text,
} from '../file/schema.ts';

type FactNodes = {
  readonly [Name in keyof Facts]-?: Node<NonNullable<Facts[Name]>, NonNullable<Facts[Name]>> &
    MayLack;
};

/** The facts of a profile without its name. Their names are in camelCase, as the manual lists them. */
export const profileFacts = Object.fromEntries(
  Object.entries(PROFILE_FACTS as Readonly<Record<string, Schema>>).map(([name, fact]) => [
    name,
    new Node(fact).optional(),
  ]),
) as FactNodes;

export const profiles = named(
  closed('Facts about a vendor.', {
    extends: text('The profile that this one starts from.').optional(
      'the built-in one of the same name, if any',
    ),
    ...profileFacts,
    models: named(
      closed('Facts about these models.', profileFacts),
      'Facts about single models, by glob of their names. Later entries override earlier ones.',
    ).optional('the same facts for all models'),
  }),
  'Vendor quirks by name; they override the built-in ones.',
);

export type Profiles = Readonly<Record<string, ProfileFacts>>;

/** Profiles on the way from one to the first that it extends. */
const MAX_PARENTS = 50;

export function resolveProfiles(own: ProgramForm<typeof profiles>, findings: Findings): Profiles {
  const done: Record<string, ProfileFacts> = { ...PROFILES };
  const resolved = new Map<string, ProfileFacts>();
  const resolve = (name: string, seen: readonly string[]): ProfileFacts => {
    const before = resolved.get(name);
    if (before !== undefined) return before;
    const problems = findings.problems.length;
    const facts = extended(name, seen);
    // Not remembered with a problem, so that a circle is reported for each profile in it.
    if (findings.problems.length === problems) resolved.set(name, facts);
    return facts;
  };
  const extended = (name: string, seen: readonly string[]): ProfileFacts => {
    const written = memberOf(own, name);
    if (written === undefined) return memberOf(PROFILES, name) ?? { name };
    const { extends: parent, models, ...facts } = written;
    const path: Path = ['profiles', name, 'extends'];
    let base: ProfileFacts = memberOf(PROFILES, name) ?? { name };
    if (parent !== undefined && parent !== name) {
      if (seen.length > MAX_PARENTS) {
        findings.problems.push({ path, message: `extends more than ${MAX_PARENTS} others` });
      } else if (seen.includes(parent)) {
        findings.problems.push({ path, message: 'goes round in a circle' });
      } else if (!Object.hasOwn(own, parent) && !Object.hasOwn(PROFILES, parent)) {
        const known = [...Object.keys(PROFILES), ...Object.keys(own)];
        const suggestion = suggest(parent, known);
        findings.problems.push({ path, message: `there is no profile "${parent}"`, suggestion });
      } else base = resolve(parent, [...seen, parent]);
    }
    const all = { ...base.models, ...models };
    const builtIn = base.builtIn ?? base.name;
    return {
      ...base,
      ...facts,
      ...(Object.keys(all).length > 0 && { models: all }),
      ...(builtIn !== name && { builtIn }),
      name,
    };
  };
  for (const name of Object.keys(own)) done[name] = resolve(name, [name]);
  return done;
}

/** The profile of a name. An unknown name is a problem at `path`, and gives a profile without facts. */
export function profileNamed(
  name: string,
  profiles: Profiles,
  path: Path,
  findings: Findings,
): ProfileFacts {
  const profile = memberOf(profiles, name);
  if (profile !== undefined) return profile;
  const suggestion = suggest(name, Object.keys(profiles));
  findings.problems.push({ path, message: `there is no profile "${name}"`, suggestion });
  return { name: 'none' };
}

/** How many requests the tries of a report belong to: from rows, since totals count tries alone. */

import { GatewayError } from '../conversation/errors.ts';
import type { SpendReader } from './schema.ts';
import {
  bucketOf,
  columnOf,
  groupNames,
  keyCondition,
  keyValues,
  placeOf,
  type RequestCounts,
  totalOf,
  type UsageGroup,
  type UsageQuery,
} from './usage.ts';

interface Counted {
  readonly name: string | number | null;
  readonly bucket: number;
  readonly tries: number;
  readonly requests: number;
}

const COUNTS = `CAST(count(*) AS bigint) AS tries, CAST(count(DISTINCT request) AS bigint) AS requests`;

/**
 * Reads every row of the time: for commands, not for a gateway that serves. A request that went to two models or
 * targets counts for both, and once in the total.
 */
export async function requestCounts(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<RequestCounts> {
  try {
    return await counted(reader, query, groups);
  } catch (thrown) {
    // A database that takes too long over it has given the totals all the same.
    if (!(thrown instanceof GatewayError)) throw thrown;
    return { groups: groups.map(() => undefined), total: undefined };
  }
}

async function counted(
  reader: SpendReader,
  query: UsageQuery,
  groups: readonly UsageGroup[],
): Promise<RequestCounts> {
  const { names } = reader;
  const { by, from, to, step } = query;
  const nameOf = await groupNames(reader, query);
  const isSession = by === 'session';
  const named = isSession ? ` AND session IN ${names.names}` : '';
  const values = {
    from,
    to,
    ...keyValues(query),
    ...(isSession && { names: JSON.stringify(groups.map(({ name }) => name)) }),
  };
  const rows = `(SELECT time - time % 3600000 AS start, ${columnOf(query)} AS name, request FROM ${names.rows}
    WHERE time >= $from AND time < $to${keyCondition(query)}${named}) AS counted`;
  const found = await reader.all<Counted>(
    `SELECT name, ${bucketOf(step, names)} AS bucket, ${COUNTS} FROM ${rows} GROUP BY bucket, name`,
    values,
  );
  const [all] = await reader.all<Counted>(`SELECT ${COUNTS} FROM ${rows}`, values);
  const byGroup = new Map<string, { tries: number; requests: number }>();
  for (const { name, bucket, tries, requests } of found) {
    const place = placeOf(nameOf(name), step === undefined ? undefined : bucket);
    const one = byGroup.get(place) ?? { tries: 0, requests: 0 };
    // A key has one set of labels, so no request is in two of them.
    byGroup.set(place, { tries: one.tries + tries, requests: one.requests + requests });
  }
  const ofGroup = ({ name, start, sums }: UsageGroup) => {
    const one = byGroup.get(placeOf(name, start));
    return one?.tries === sums.tries ? one.requests : undefined;
  };
  const isWhole = all?.tries === totalOf(groups).tries;
  return { groups: groups.map(ofGroup), total: isWhole ? all.requests : undefined };
}
